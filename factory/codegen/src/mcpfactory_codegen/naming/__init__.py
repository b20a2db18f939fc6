"""Names of the generated code, chosen in one pass over the whole API.

Every operation, argument, module and variable has a distinct name. A name depends only on the operation (operationId,
method, path, summary) and on operations that would have the same name. A name never depends on a counter or on the
order of the document. If a name is too long, the frequency of its words in the API also matters.

If several operations propose a name, the operation whose operationId is exactly that name gets the name. The second
priority is the operation whose path segments are in the paths of all others. The losing operations get longer names,
made from words of their path, their method, and finally a digest of method and path.

A published server keeps the tool names that its callers use (`pinned`). Each document of a server is named separately.
A name that two documents share gets their labels as prefixes, as in `messaging_list_services` and
`verify_list_services`. The document without a label keeps its names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from mcpfactory_codegen.inputs import inputs, name_arguments
from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.naming.environment_variables import name_variables, variable_prefix
from mcpfactory_codegen.naming.tools import TOOL_LIMIT, name_tools
from mcpfactory_codegen.text import (
    VERSION,
    choose_unique_names,
    digest,
    identifier,
    join_and_shorten,
    snake_case,
    words,
)

# names that generated modules already use
_RESERVED_FUNCTIONS: Final = frozenset(
    {"api", "str", "int", "float", "bool", "list", "dict", "tuple", "type", "print", "object"}
)
_RESERVED_CONSTANTS: Final = frozenset({"UNSET"})


@dataclass(frozen=True, slots=True)
class OperationNames:
    """The names of one operation. `arguments` maps (place, name in the request) to the argument name."""

    tool: str
    module: str
    function: str
    constant: str
    arguments: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a whole API.

    `operations` has names by operation key. `variables` has the environment variables of each security scheme. All
    variables start with `prefix`.
    """

    server: str
    operations: Mapping[str, OperationNames]
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefix: str = ""


def name_api(api: Api, *, server: str = "", pinned: Mapping[str, str] | None = None, prefix: str = "") -> Names:
    """Return the names of an API.

    An empty `server` name is replaced by a name from the API's title. `pinned` maps operation keys ("GET /books/{id}")
    to tool names to keep. Invalid names in `pinned` are ignored. `prefix` is the variable prefix of an existing server.
    """
    # if several operations have the same key, only the first operation gets a name
    operations = tuple({one.key: one for one in reversed(api.operations)}.values())[::-1]
    tools = name_labeled_tools(operations, pinned or {})
    modules = name_labeled_modules(operations)
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
    server = server or snake_case(api.title).replace("_", "-") or "api"
    prefix = prefix or variable_prefix(server)
    return Names(server, named, name_variables(api.security_schemes, server, prefix), prefix)


def _functions(tools: Mapping[str, str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return a Python function for each tool: its name as an identifier, unique within its module."""
    plain = {key: identifier(tool, prefix="tool", reserved=_RESERVED_FUNCTIONS) for key, tool in tools.items()}
    claims: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, name in plain.items():
        claims[modules[key], name].append(key)
    for (_, name), keys in claims.items():
        if len(keys) > 1:  # pinned names can become equal when their characters are replaced for Python
            for key in keys:
                plain[key] = name if tools[key] == name else identifier(f"{name} {key}", prefix="tool")
    return plain


def _constant(function: str) -> str:
    name = function.upper()
    return name + "_" if name in _RESERVED_CONSTANTS else name


# --- modules: one per first tag, or per first word of the path for operations without tags ---
#
# A group of more than `MAX_OPERATIONS_PER_MODULE` is divided by the next words of its paths.
# Groups that are still too large are divided by digests, so that the order of operations does not matter.


MAX_OPERATIONS_PER_MODULE: Final = 60
_MODULE_LIMIT: Final = 48
_DEPTH: Final = 6
# file names that Windows forbids
_RESERVED_MODULES: Final = frozenset({"con", "aux", "nul", "prn", "com1", "lpt1"})


def name_modules(operations: Sequence[ApiOperation]) -> dict[str, str]:
    """Return the module of every operation, by operation key. Module names are ASCII identifiers, but not keywords."""
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
    return name if len(name) <= _MODULE_LIMIT else join_and_shorten(words(name), _MODULE_LIMIT, text)


def _literal(path: str) -> list[str]:
    return [part for part in path.split("/") if words(part) and not part.startswith("{") and not VERSION.match(part)]


def _divide(
    group: str, operations: list[ApiOperation], depth: int, modules: dict[str, str], others: frozenset[str]
) -> None:
    if len(operations) <= MAX_OPERATIONS_PER_MODULE:
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
        if len(parts) == 1 or (name == group and len(parts[word]) > MAX_OPERATIONS_PER_MODULE):
            _divide(group, parts[word], depth + 1, modules, others)
        else:
            _divide(name, parts[word], depth + 1, modules, others)


# --- several documents: names with labels ---


_LABELLED_MODULE_LIMIT: Final = 64


def name_labeled_tools(operations: Sequence[ApiOperation], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return the tool name of every operation, by key, unique over all documents."""
    plain = _each(operations, lambda some: name_tools(some, pinned))
    labels = {operation.key: operation.label for operation in operations}
    if not any(labels.values()):
        return plain
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key in sorted(plain, key=lambda key: (pinned.get(key) != plain[key], bool(labels[key]), key)):
        stays = pinned.get(key) == plain[key] or not labels[key]
        if stays and plain[key].lower() not in taken:
            names[key] = plain[key]
            taken.add(plain[key].lower())
    # a name that two documents propose stays reserved, even if pinned names avoid the conflict
    wanted = Counter(name.lower() for name in _each(operations, lambda some: name_tools(some, {})).values())
    taken |= {name for name, claims in wanted.items() if claims > 1}
    return names | choose_unique_names(
        {key: _candidates(key, labels[key], plain[key]) for key in plain if key not in names}, taken
    )


def _fitted(parts: Sequence[str], kept: int) -> str:
    """Join words by `_`.

    Above the limit, drop words after the first `kept` words, because the last words are more specific.
    """
    rest = list(parts)
    while len("_".join(rest)) > TOOL_LIMIT and len(rest) > kept + 1:
        rest.pop(kept)
    return "_".join(rest)[:TOOL_LIMIT].rstrip("_")


def _candidates(key: str, label: str, plain: str) -> Iterator[str]:
    """Yield candidate names of an operation, from `plain` to names with the label and ever longer digests."""
    yield plain
    parts = [*words(label), *plain.split("_")]
    yield _fitted(parts, len(words(label)) + 1)
    for length in count(8, 2):
        yield join_and_shorten(parts, TOOL_LIMIT - length - 1, key) + "_" + digest(key, length)


def name_labeled_modules(operations: Sequence[ApiOperation]) -> dict[str, str]:
    """Return the module of every operation, by key, with the document's label as prefix."""
    labels = {operation.key: operation.label for operation in operations}
    plain = _each(operations, name_modules)
    return {key: _led(labels[key], module) if labels[key] else module for key, module in plain.items()}


def _led(label: str, module: str) -> str:
    lead, parts = words(label), words(module)
    name = identifier(module if parts[: len(lead)] == lead else f"{label} {module}", prefix="group")
    return name if len(name) <= _LABELLED_MODULE_LIMIT else join_and_shorten(words(name), _LABELLED_MODULE_LIMIT, name)


def _each(
    operations: Sequence[ApiOperation], name: Callable[[Sequence[ApiOperation]], dict[str, str]]
) -> dict[str, str]:
    """Call a naming function for each document separately, and merge the results."""
    documents: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        documents[operation.label].append(operation)
    return {key: found for some in documents.values() for key, found in name(some).items()}
