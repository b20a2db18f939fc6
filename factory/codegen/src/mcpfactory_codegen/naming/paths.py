"""What a path says: its nouns, and with the method and the summary a verb: `GET /books/{id}` is get book."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.verbs import ACTIONS, READING, VERBS, kind, summary_verb
from mcpfactory_codegen.text import VERSION, plural, singular, words

__all__ = ["PATH_PREFIXES", "PathWords", "path_words"]


PATH_PREFIXES: Final = frozenset({"api", "rest", "apis"})
"""Segments that many paths begin with, and that name nothing."""

_ROOM: Final = 48
"""Characters that verb and nouns of a path may take while the operation needs no more of them to be told apart."""
_NEAREST: Final = 2  # segments that are named in any case
_PARAMETER: Final = re.compile(r"\{([^{}]*)\}|(?<=/):(\w+)")
_EXTENSION: Final = re.compile(r"(?<=[\w}])\.(json|xml|csv|txt|html|htm|yaml|yml|php|aspx|do)\Z", re.I)

_ON_ITEM: Final = {"GET": "get", "PUT": "update", "PATCH": "update", "DELETE": "delete", "POST": "update"}
_ON_COLLECTION: Final = {"GET": "list", "PUT": "set", "PATCH": "update", "DELETE": "delete", "POST": "create"}
_REST: Final = {"HEAD": "check", "OPTIONS": "options", "TRACE": "trace", "QUERY": "query"}


@dataclass(frozen=True, slots=True)
class PathWords:
    """`near`: verb and nouns, none twice in a row, those of the last segments where all are too many; `whole`: with the nouns of all segments.

    `written` are the nouns in the path's own spelling, plurals and all. `parameters` are the words of the path's
    parameters, `rest` its other words: versions and prefixes, an extension, what follows `#`.
    """

    verb: str
    near: tuple[str, ...]
    whole: tuple[str, ...]
    written: tuple[str, ...]
    parameters: tuple[str, ...]
    rest: tuple[str, ...]


def path_words(operation: ApiOperation, room: int = _ROOM) -> PathWords:
    """Return the words of an operation's path, with a verb that agrees with its summary; `near` has `room` characters."""
    path, _, fragment = re.sub(r"[?#]", "\0", operation.path, count=1).partition("\0")
    extension = _EXTENSION.search(path)
    path = _EXTENSION.sub("", path)
    segments, rest, on_item = _segments(path)
    parameters = [word for pair in _PARAMETER.findall(path) for word in words(pair[0] or pair[1])]
    rest += words(extension.group(1) if extension else "")
    if "=" in fragment or not segments:
        rest += words(fragment)
    elif words(fragment):
        segments.append(words(fragment))  # two operations of one path: `PUT /files/{id}#add_shared_link`
        on_item = False
    verb, ordered = _phrase(operation, segments, on_item)
    near = ordered
    while len(near) > _NEAREST and len("_".join((verb, *_flat(near)))) > room:
        near = near[1:]
    return PathWords(
        verb,
        (verb, *_once(_flat(near))),
        (verb, *_flat(ordered)),
        _flat(segments),
        tuple(dict.fromkeys(parameters)),
        tuple(dict.fromkeys(rest)),
    )


def _flat(segments: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(word for segment in segments for word in segment)


def _once(nouns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without those that the next one says again: /marketing/marketing-events is marketing events."""
    pairs = zip(nouns, (*nouns[1:], ""), strict=False)
    return tuple(word for word, after in pairs if singular(word) != singular(after))


def _segments(path: str) -> tuple[list[tuple[str, ...]], list[str], bool]:
    """Return the literal segments of a path as words, those that name nothing, and whether a parameter ends it."""
    segments = [segment for segment in path.split("/") if segment]
    literal: list[tuple[str, ...]] = []
    rest: list[str] = []
    for segment in segments:
        parts = words(_PARAMETER.sub(" ", f"/{segment}"))
        if VERSION.match(segment) or segment.lower() in PATH_PREFIXES:
            rest += parts
        elif parts:
            literal.append(parts)
    return (
        literal,
        rest,
        bool(segments) and segments[-1].startswith(("{", ":")) and not words(_PARAMETER.sub(" ", f"/{segments[-1]}")),
    )


def _phrase(
    operation: ApiOperation, segments: list[tuple[str, ...]], on_item: bool
) -> tuple[str, list[tuple[str, ...]]]:
    """Return the verb, and the nouns by segment."""
    method = operation.method
    said = summary_verb(operation.summary, reading=method == "GET")
    if not segments:
        verb = _REST.get(method) or {**_ON_ITEM, "POST": "post"}.get(method, method.lower())
        return _agreed(verb, said, many=False), [("item",)] if on_item else [("root",)]
    last, before = segments[-1], [tuple(singular(word) for word in segment) for segment in segments[:-1]]
    if _is_action(last, operation, said, on_item=on_item):
        return last[0], [*before, last[1:]] if last[1:] else before
    if method in _REST:
        return _REST[method], [*before, last]
    if on_item:
        one = (*last[:-1], singular(last[-1]))
        verb = _agreed(_ON_ITEM.get(method, method.lower()), said, many=False)
        return verb, [*before, one if verb != "list" else last]
    many = plural(last[-1])
    verb = _ON_COLLECTION.get(method, method.lower())
    if method == "GET" and not many:
        verb = "get"
    verb = _agreed(verb, said, many=many)
    if method == "POST" and kind(verb) != "read":
        last = (*last[:-1], singular(last[-1]))
    return verb, [*before, last]


def _is_action(last: tuple[str, ...], operation: ApiOperation, said: tuple[str, ...], *, on_item: bool) -> bool:
    """Whether the last segment says what is done; before a parameter the summary must say it, too."""
    method = operation.method
    if last[0] in said and last[0] in VERBS:
        return True
    if on_item or method not in {"POST", "PUT", "GET"}:
        return False
    if "#" in operation.path:
        return last[0] in VERBS
    return last[0] in (READING if method == "GET" else ACTIONS)


def _agreed(verb: str, said: tuple[str, ...], *, many: bool) -> str:
    """Return the method's verb, unless the summary says that the operation does something else."""
    if not said or kind(verb) in {kind(one) for one in said}:
        return verb
    if verb == "set" and "create" in said:
        return verb  # PUT creates or replaces
    first = said[0]
    return "list" if first == "get" and many else first
