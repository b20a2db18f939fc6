"""Tool names: from the operationId when it says something, else from method and path.

Gather, then resolve: each operation proposes its candidates in order, plainest first; in each phase, whoever is alone
with a proposal that is still free gets it, and the others go on to their next one. The last candidates carry a digest
of method and path, so that the phases end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.text import VERSION, digest, plural, shorten, singular, words

__all__ = ["TOOL_LIMIT", "may_be_tool", "name_tools"]


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
