"""Every name that generated code needs, chosen in one pass over the whole API.

Rules, in this order:
1. Total and unique: every operation, argument, module and variable has a name, and no two share one.
2. A name depends on its own operation (operationId, method, path) and on those that would have had the same name;
   never on the order of the document, and never on a counter. Reordering, adding or renaming elsewhere changes nothing.
3. Operations that would share a name all get longer ones, from words of their own path, their method, and in the end a
   digest of method and path. Nobody keeps the plain name by having come first.
4. `pinned` names win: a server that was published keeps the names that its callers know.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcpfactory_codegen.inputs import PLACES, Input, inputs
from mcpfactory_codegen.ir import Api, ApiOperation, ApiSecurityScheme
from mcpfactory_codegen.text import VERSION, digest, identifier, is_identifier, plural, shorten, singular, snake, words
from mcpfactory_runtime.upstream.settings import SHARED

__all__ = [
    "ENVIRONMENT_PARTS",
    "MOST_OPERATIONS",
    "TOOL_LIMIT",
    "Names",
    "OperationNames",
    "may_be_argument",
    "may_be_tool",
    "name_api",
    "name_arguments",
    "name_modules",
    "name_tools",
    "name_variables",
    "variable_prefix",
]


# Names that mean something else inside a generated module.
_RESERVED_FUNCTIONS: Final = frozenset(
    {"api", "str", "int", "float", "bool", "list", "dict", "tuple", "type", "print", "object"}
)
_RESERVED_CONSTANTS: Final = frozenset({"UNSET"})


@dataclass(frozen=True, slots=True)
class OperationNames:
    """The names of one operation. `arguments` maps (place, wire name) to the tool's argument."""

    tool: str
    module: str
    function: str
    constant: str
    arguments: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Names:
    """`operations` by `Operation.key`; `variables`: the environment variables of each security scheme, by its name.

    `prefix` leads them all, and those of the server's settings.
    """

    server: str
    operations: Mapping[str, OperationNames]
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefix: str = ""


def name_api(api: Api, *, server: str = "", pinned: Mapping[str, str] | None = None) -> Names:
    """Name everything in `api`.

    `server` leads the names of environment variables ("" takes the API's title); `pinned` maps operation keys
    ("GET /books/{id}") to tool names that must stay. A pinned name that no tool may have is ignored.
    """
    operations = _unique(api.operations)
    tools = name_tools(operations, pinned or {})
    modules = name_modules(operations)
    functions = _functions(tools, modules)
    named = {}
    for operation in operations:
        key = operation.key
        named[key] = OperationNames(
            tool=tools[key],
            module=modules[key],
            function=functions[key],
            constant=_constant(functions[key]),
            arguments=name_arguments(inputs(operation, api).items, [_constant(functions[key])]),
        )
    server = server or snake(api.title).replace("_", "-") or "api"
    return Names(server, named, name_variables(api.security_schemes, server), variable_prefix(server))


def _unique(operations: Iterable[ApiOperation]) -> tuple[ApiOperation, ...]:
    """Return the first operation of each identity: a second one cannot be called apart from it."""
    return tuple({operation.key: operation for operation in reversed(tuple(operations))}.values())[::-1]


def _functions(tools: Mapping[str, str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return a Python function for each tool: its name made an identifier, unique within its module."""
    plain = {key: identifier(tool, prefix="tool", reserved=_RESERVED_FUNCTIONS) for key, tool in tools.items()}
    claims: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, name in plain.items():
        claims[modules[key], name].append(key)
    for (_, name), keys in claims.items():
        if len(keys) > 1:  # only names that were pinned differ in more than their identifier shows
            for key in keys:
                plain[key] = name if tools[key] == name else identifier(f"{name} {key}", prefix="tool")
    return plain


def _constant(function: str) -> str:
    name = function.upper()
    return name + "_" if name in _RESERVED_CONSTANTS else name


# --- Tool names: from the operationId when it says something, else from method and path ---
#
# Gather, then resolve: each operation proposes its candidates in order, plainest first; in each phase, whoever is alone
# with a proposal that is still free gets it, and the others go on to their next one. The last candidates carry a digest
# of method and path, so that the phases end.


TOOL_LIMIT: Final = 64
"""Characters: what the strictest clients accept."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_PATH_PREFIXES: Final = frozenset({"api", "rest", "apis"})
_MACHINE_MADE: Final = re.compile(
    r"(operation|op|route|handler|endpoint|api|path|method|unnamed|id)?[_-]?[0-9a-f]*\Z", re.I
)
_METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options", "trace", "query"})
_BARE: Final = _METHODS | frozenset(
    {"list", "create", "update", "read", "index", "show", "find", "add", "remove", "fetch", "search", "all", "destroy"}
    | {"store", "edit", "save", "set", "new", "replace", "retrieve", "upsert", "do", "run", "execute", "call"}
)

_ON_ITEM: Final = {"GET": "get", "PUT": "update", "PATCH": "update", "DELETE": "delete", "POST": "update"}
_ON_COLLECTION: Final = {"GET": "list", "PUT": "set", "PATCH": "update", "DELETE": "delete", "POST": "create"}
_EXACT: Final = {"PUT": "replace", "PATCH": "patch", "POST": "post", "GET": "get", "DELETE": "delete"}
_REST: Final = {"HEAD": "check", "OPTIONS": "options", "TRACE": "trace", "QUERY": "query"}
_ACTION_WORDS: Final = """
    accept activate add apply approve archive assign attach authorize ban batch block cancel capture check claim clear
    clone close complete confirm convert copy deactivate decline detach disable dismiss dispatch download duplicate enable
    execute expire export fail finalize follow fork freeze generate import increment install invite invoke join leave link
    lock login logout mark merge migrate move mute notify open pause pay pin ping preview process promote publish purge
    query rebuild receive redeliver refresh refund register reject release reload remove rename renew reopen reorder replace
    replay report request rerun resend reset resolve restart restore resume retry return reveal revert revoke rotate run
    save schedule search send set share sign simulate snooze split star start stop submit subscribe suspend sync test
    toggle transfer translate trigger unarchive unassign unban unblock undo unfollow unfreeze uninstall unlink unlock unmute
    unpin unpublish unshare unstar unsubscribe upgrade upload validate verify void withdraw
"""
_ACTIONS: Final = frozenset(_ACTION_WORDS.split())

_READING: Final = frozenset({"search", "export", "download", "query", "preview", "validate", "verify", "compare"})


def may_be_tool(name: str) -> bool:
    """Whether every client accepts the name."""
    return _NAME.match(name) is not None


def name_tools(operations: Sequence[ApiOperation], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return the tool name of every operation, by its key; unique without regard to case, `[A-Za-z0-9_-]{1,64}`."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for operation in sorted(operations, key=lambda operation: operation.key):
        name = pinned.get(operation.key, "")
        if _NAME.match(name) and name.lower() not in taken:
            names[operation.key] = name
            taken.add(name.lower())
    waiting = [(operation.key, _tool_candidates(operation)) for operation in operations if operation.key not in names]
    while waiting:
        proposals = [(key, next(candidates), candidates) for key, candidates in waiting]
        claims = Counter(name for _, name, _ in proposals)
        free = {name for name, count in claims.items() if count == 1 and name not in taken}
        names |= {key: name for key, name, _ in proposals if name in free}
        waiting = [(key, candidates) for key, name, candidates in proposals if name not in free]
        taken |= claims.keys()  # a name that was refused to several stays free of latecomers, too
    return names


def _tool_candidates(operation: ApiOperation) -> Iterator[str]:
    """Proposals of one operation, plainest first; endless, and in the end unlike those of any other."""
    key = operation.key
    base, rest, parameters = _plain_words(operation)
    method = operation.method.lower()
    forms = [base, [*base, *rest]]
    if parameters:
        forms.append([*base, *rest, "by", *parameters])
    if not _meaningful(operation):
        exact = _EXACT.get(operation.method, method)
        forms.append([exact, *(base if base[0] in _ACTIONS else base[1:]), *rest])
    forms.append([*base, *rest, "via", method])
    last: list[str] = []
    for form in forms:
        if form and form != last:
            yield shorten(form, TOOL_LIMIT, key)
            last = form
    for length in (8, 16, 32):
        yield shorten(base, TOOL_LIMIT - length - 1, key) + "_" + digest(key, length)
    while True:  # unreachable unless SHA-256 collides
        length += 1
        yield digest(key, min(length, TOOL_LIMIT)) + "_" * max(0, length - TOOL_LIMIT)


def _plain_words(operation: ApiOperation) -> tuple[list[str], list[str], list[str]]:
    """Return the plain name's words, the path's words that it lacks, and the words of the path's parameters."""
    nouns, _ = _segments(operation.path)
    everything = [singular(word) for segment in nouns for word in segment]
    base = _meaningful(operation) or _from_path(operation)
    seen = {singular(word) for word in base}
    rest = [word for word in dict.fromkeys(everything) if word not in seen]
    parameters = [word for name in re.findall(r"\{([^{}]*)\}", operation.path) for word in words(name)]
    return list(base), rest, list(dict.fromkeys(parameters))


def _meaningful(operation: ApiOperation) -> list[str]:
    """Return the operationId's words, without what frameworks add; [] when it is missing or says less than method and path."""
    parts = list(words(operation.operation_id))
    if not parts or _MACHINE_MADE.match("".join(parts)) or not any(part.isalpha() for part in parts):
        return []
    path = list(words(operation.path))
    method = operation.method.lower()
    for tail in ([*path, method], [method, *path]):
        if len(parts) > len(tail) > 1 and parts[-len(tail) :] == tail:
            parts = parts[: -len(tail)]  # `read_item_items__item_id__get` is the function read_item
            break
    if len(parts) > 2 and parts[0] != "controller":
        parts = [word for word in parts if word != "controller"]
    if parts[0] in _METHODS and _only_path_words(parts[0], parts[1:], operation.path):
        return []
    if parts[-1] in _METHODS and _only_path_words(parts[-1], parts[:-1], operation.path):
        return []
    if len(parts) == 1 and parts[0] in _BARE:
        return []
    return parts


def _only_path_words(verb: str, parts: list[str], path: str) -> bool:
    """Whether `parts` repeat the path's words, perhaps without its prefix, so that the path says it better.

    `getUserBooks` on /user/books stays: somebody chose it. What repeats the path's parameters too, or says no more
    than `post`, was made by a machine.
    """
    if verb in {"get", "delete"} and "{" not in path:
        return False
    every = [word for word in words(path) if word not in _PATH_PREFIXES]
    return bool(parts) and parts in (list(words(path)), every, [word for word in every if not VERSION.match(word)])


def _segments(path: str) -> tuple[list[tuple[str, ...]], bool]:
    """Return the literal segments of a path as words, without versions and prefixes; and whether a parameter ends it."""
    segments = [segment for segment in re.split(r"[?#]", path, maxsplit=1)[0].split("/") if segment]
    literal = []
    for segment in segments:
        parts = words(re.sub(r"\{[^{}]*\}", " ", segment))
        if parts and not (VERSION.match(segment) or segment.lower() in _PATH_PREFIXES):
            literal.append(parts)
    return literal, bool(segments) and segments[-1].startswith("{")


def _from_path(operation: ApiOperation) -> list[str]:
    """Verb and noun from method and path: `GET /books/{id}` → get book; `POST /books/{id}/publish` → publish book."""
    nouns, on_item = _segments(operation.path)
    method = operation.method
    if not nouns:
        return [_REST.get(method) or _ON_ITEM.get(method, method.lower()), "item" if on_item else "root"]
    last = list(nouns[-1])
    before = [singular(word) for word in nouns[-2]] if len(nouns) > 1 else []
    if not on_item and last[0] in (_READING if method == "GET" else _ACTIONS) and method in {"POST", "PUT", "GET"}:
        return last + before
    if method in _REST:
        return [_REST[method], *before, *last]
    if on_item:
        return [_ON_ITEM.get(method, method.lower()), *before, *_singular_last(last)]
    many = plural(last[-1])
    verb = _ON_COLLECTION.get(method, method.lower())
    if method == "GET" and not many:
        verb = "get"
    return [verb, *before, *(_singular_last(last) if method == "POST" else last)]


def _singular_last(parts: list[str]) -> list[str]:
    return [*parts[:-1], singular(parts[-1])]


# --- Argument names: the API's own spelling where Python allows it, so that models see the words of its documentation ---
#
# `bookId` stays `bookId`; `X-Request-Id` becomes `x_request_id`. When two places use one name, the first of path, query,
# querystring, header, cookie, body keeps it and the others say their place: `limit` and `body_limit`.


_ARGUMENT_LIMIT: Final = 64
_RESERVED_ARGUMENTS: Final = frozenset({"api", "self", "cls", "_", "match", "case"})
_WHOLE: Final = {"body": "body", "form": "form", "querystring": "querystring"}


def may_be_argument(name: str) -> bool:
    """Whether a generated function can take an argument of this name."""
    return (
        is_identifier(name)
        and not name.startswith("__")
        and name not in _RESERVED_ARGUMENTS
        and len(name) <= _ARGUMENT_LIMIT
    )


def name_arguments(items: Iterable[Input], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return the argument of each input, by (place, wire name); unique within the operation and none of `taken`."""
    waiting = sorted(items, key=lambda item: (PLACES.index(item.place), item.name))
    order = [item.slot for item in waiting]
    names: dict[tuple[str, str], str] = {}
    used = set(taken)
    for phase in range(3):
        for place in PLACES:
            claims: dict[str, list[Input]] = defaultdict(list)
            for item in waiting:
                if item.place == place and item.slot not in names:
                    claims[_argument_candidate(item, phase)].append(item)
            for name, claimants in sorted(claims.items()):
                exact = [item for item in claimants if item.name == name] or claimants
                if name not in used and len(exact) == 1:
                    names[exact[0].slot] = name
                    used.add(name)
    for slot in order:
        if slot not in names:  # two names that differ only in what an identifier cannot show, twice over
            names[slot] = f"{slot[0]}_{digest(slot[1], 16)}"
    return names


def _argument_candidate(item: Input, phase: int) -> str:
    plain = _plain_argument(item)
    if phase == 0:
        return plain
    if phase == 1:
        return _shortened(f"{item.place}_{plain.rstrip('_')}", item)
    return _shortened(f"{item.place}_{plain.rstrip('_')}", item, 7) + "_" + digest(item.name, 6)


def _plain_argument(item: Input) -> str:
    if not item.name:
        return _WHOLE.get(item.place, item.place)
    if is_identifier(item.name) and not item.name.startswith("__"):
        name = item.name + "_" if item.name in _RESERVED_ARGUMENTS else item.name
    else:
        name = identifier(item.name, prefix=item.place, reserved=_RESERVED_ARGUMENTS)
    return _shortened(name, item)


def _shortened(name: str, item: Input, room: int = 0) -> str:
    if len(name) <= _ARGUMENT_LIMIT - room:
        return name
    return shorten(words(name), _ARGUMENT_LIMIT - room, item.name)


# --- Module names: one module a group of operations, by first tag or else by first word of the path ---
#
# A group of more than `MOST_OPERATIONS` operations is divided by the next words of its paths, and where those do not tell enough
# apart by digests of method and path, so that a module stays readable and no operation moves because of the order.


MOST_OPERATIONS: Final = 60
_MODULE_LIMIT: Final = 48
_DEPTH: Final = 6
_RESERVED_MODULES: Final = frozenset(
    {"con", "aux", "nul", "prn", "com1", "lpt1"}
)  # no file of Windows may be called so


def name_modules(operations: Sequence[ApiOperation]) -> dict[str, str]:
    """Return the module of every operation, by its key: ASCII identifiers, no keywords."""
    groups: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        groups[_group(operation)].append(operation)
    modules: dict[str, str] = {}
    for group in sorted(groups):
        _divide(group, groups[group], 0, modules, frozenset(groups))
    return modules


def _group(operation: ApiOperation) -> str:
    text = next(iter(operation.tags), "")
    if not words(text):
        literal = _literal(operation.path)
        text = literal[0] if literal else (text or "default")
    return _module(text)


def _module(text: str) -> str:
    name = identifier(text, prefix="group", reserved=_RESERVED_MODULES)
    return name if len(name) <= _MODULE_LIMIT else shorten(words(name), _MODULE_LIMIT, text)


def _literal(path: str) -> list[str]:
    return [part for part in path.split("/") if words(part) and not part.startswith("{") and not VERSION.match(part)]


def _divide(
    group: str, operations: list[ApiOperation], depth: int, modules: dict[str, str], others: frozenset[str]
) -> None:
    if len(operations) <= MOST_OPERATIONS:
        modules |= {operation.key: group for operation in operations}
        return
    parts: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        literal = _literal(operation.path)
        if depth < _DEPTH:
            word = literal[depth] if depth < len(literal) else ""
        else:
            word = digest(operation.key, depth - _DEPTH + 1)
        parts[word].append(operation)
    for word in sorted(parts):
        redundant = not word or words(word) == () or words(group)[-len(words(word)) :] == words(word)
        name = group if redundant else _module(f"{group} {word}")
        if name != group and name in others:
            name = _module(f"{group} {word} {digest(group + '/' + word, 6)}")
        if len(parts) == 1 or (name == group and len(parts[word]) > MOST_OPERATIONS):
            _divide(group, parts[word], depth + 1, modules, others)
        else:
            _divide(name, parts[word], depth + 1, modules, others)


# --- Environment variables of a server: its settings, `<SERVER>_BASE_URL` and the like, and its credentials ---
#
# Credentials are `<SERVER>_<SCHEME>_<PART>`, without the words that say nothing: `bearerAuth` of the server bookshop is
# BOOKSHOP_TOKEN; a scheme with a name of its own keeps it: BOOKSHOP_ADMIN_TOKEN. Parts are never names of settings.


ENVIRONMENT_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "apiKey": ("API_KEY",),
    "basic": ("USERNAME", "PASSWORD"),
    "bearer": ("TOKEN",),
    "oauth2": ("TOKEN", "CLIENT_ID", "CLIENT_SECRET"),
    "mutualTLS": ("CLIENT_CERT", "CLIENT_KEY"),
}
"""What each kind of scheme needs to know."""

_SAYING_NOTHING: Final = """
    api key apikey auth authentication authorization authorisation authz http https bearer basic token tokens access
    oauth oauth1 oauth2 oidc openid connect security scheme header query cookie jwt default credentials code flow
    application client user x id mutual tls mtls certificate
"""
_EMPTY_WORDS: Final = frozenset(_SAYING_NOTHING.split())


def variable_prefix(server: str) -> str:
    """Return what the names of all variables of a server begin with."""
    prefix = "_".join(words(server)).upper() or "API"
    return f"MCP_{prefix}" if prefix[0].isdigit() or prefix == SHARED else prefix


def name_variables(schemes: Sequence[ApiSecurityScheme], server: str) -> dict[str, tuple[str, ...]]:
    """Return the variables of each scheme, in the order of `ENVIRONMENT_PARTS`; no two schemes share one."""
    prefix = variable_prefix(server)
    named: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    waiting = [(scheme, _stems(scheme, server)) for scheme in schemes]
    while waiting:
        proposals = [(scheme, _variables(scheme, prefix, next(stems)), stems) for scheme, stems in waiting]
        claims = Counter(variable for _, variables, _ in proposals for variable in variables)
        waiting = []
        for scheme, variables, stems in proposals:
            if all(claims[variable] == 1 and variable not in taken for variable in variables):
                named[scheme.name] = variables
            else:
                waiting.append((scheme, stems))
        taken |= claims.keys()
    return {scheme.name: named[scheme.name] for scheme in schemes}


def _stems(scheme: ApiSecurityScheme, server: str) -> Iterator[str]:
    every = words(scheme.name)
    telling = [word for word in every if word not in _EMPTY_WORDS | set(words(server))]
    yield "_".join(telling)
    yield "_".join(every)
    length = 6
    while True:
        yield "_".join([*every, digest(scheme.name, length)])
        length += 2


def _variables(scheme: ApiSecurityScheme, prefix: str, stem: str) -> tuple[str, ...]:
    lead = f"{prefix}_{stem.upper()}" if stem else prefix
    variables = []
    for part in ENVIRONMENT_PARTS[scheme.kind]:
        if f"_{lead}".endswith(f"_{part}"):
            variables.append(lead)  # `api_key` is BOOKSHOP_API_KEY, not BOOKSHOP_API_KEY_API_KEY
        else:
            variables.append(f"{lead}_{part}")
    return tuple(variables)
