"""Line numbers of JSON pointers into a text, for problems.

The text is parsed again only if there are problems.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from json import JSONDecoder
from typing import Final

import yaml

from mcpfactory_codegen.ir import Problem
from mcpfactory_codegen.read.document import Document, DocumentFile
from mcpfactory_codegen.read.parse import decode_text, strip_json_comments
from mcpfactory_runtime.schemas.walk import unescape

_BETWEEN: Final = re.compile(r"[\s,:]*")

Event = tuple[str, str, int]
"""Kind, text, and line of the start of an event.

Kinds are `{`, `[`, `s` for a scalar, and `}` for the end of an object or array.
"""
_SIGNS: Final = {
    yaml.ScalarEvent: "s", yaml.AliasEvent: "s", yaml.MappingStartEvent: "{", yaml.SequenceStartEvent: "[",
    yaml.MappingEndEvent: "}", yaml.SequenceEndEvent: "}",
}  # fmt: skip


@dataclass(slots=True)
class _Wanted:
    pointers: list[str] = field(default_factory=list)
    below: dict[str, _Wanted] = field(default_factory=dict)


_NOTHING: Final = _Wanted()


def add_line_numbers(document: Document, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Add line numbers to the problems, or 0 for an unknown line."""
    problems = tuple(problems)
    wanted: dict[str, set[str]] = {}
    for one in problems:
        part, pointer = _located_part(one.pointer, document)
        if pointer:
            wanted.setdefault(part, set()).add(pointer)
    parts = {**document.parts, **document.overlays}
    found = {part: find_line_numbers(parts[part], pointers) for part, pointers in wanted.items() if part in parts}

    def line(problem: Problem) -> int:
        part, pointer = _located_part(problem.pointer, document)
        return found.get(part, {}).get(pointer, 0)

    return tuple(replace(one, line=line(one)) for one in problems)


def _located_part(pointer: str, document: Document) -> tuple[str, str]:
    part, separator, inside = pointer.rpartition("#/")
    if pointer.startswith("/"):
        return document.main, pointer
    return (part, f"/{inside}") if separator else ("", "")


def find_line_numbers(part: DocumentFile, pointers: Iterable[str]) -> dict[str, int]:
    """Return the line numbers, from 1, of JSON pointers into a file. A missing node gets the line of its parent."""
    root = _Wanted()
    for pointer in pointers:
        node = root
        for token in pointer.split("/")[1:]:
            node = node.below.setdefault(unescape(token), _Wanted())
        node.pointers.append(pointer)
    text, _ = decode_text(part.raw)
    if part.format == "graphql":
        return _definitions(text, root)
    if part.format == "yaml":
        return _walk(_yaml(text), root)
    try:
        offsets = _Json(text).offsets(root)
    except (ValueError, TypeError, IndexError):  # the JSON contains comments or trailing commas
        text = strip_json_comments(text)
        offsets = _Json(text).offsets(root)
    starts = [match.end() for match in re.finditer("\n", text)]
    return {pointer: bisect_right(starts, offset) + 1 for pointer, offset in offsets.items()}


class _Json:
    """Scanner of a JSON text. The fast standard decoder skips values without a wanted pointer."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, int] = {}
        self._decoded = JSONDecoder(strict=False).raw_decode

    def offsets(self, root: _Wanted) -> dict[str, int]:
        """Return the offsets of the keys or items at the wanted pointers."""
        self._value(self._next(0), root)
        return self._found

    def _next(self, at: int) -> int:
        match = _BETWEEN.match(self._text, at)
        assert match is not None
        return match.end()

    def _value(self, at: int, wanted: _Wanted) -> int:
        sign = self._text[at]
        if not wanted.below or sign not in "{[":
            return self._decoded(self._text, at)[1]
        at, index = self._next(at + 1), 0
        while self._text[at] not in "}]":
            here, key = at, str(index)
            if sign == "{":
                key, at = self._decoded(self._text, at)
                at = self._next(at)
            below = wanted.below.get(key, _NOTHING)
            _note(below, here, self._found)
            at = self._next(self._value(at, below))
            index += 1
        return at + 1


def _yaml(text: str) -> Iterator[Event]:
    if text.lstrip()[:1] in {"{", "["}:
        text = text.replace("\t", " ")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while not isinstance(event := loader.get_event(), (yaml.StreamEndEvent, yaml.DocumentEndEvent)):
            if sign := _SIGNS.get(type(event)):
                yield sign, getattr(event, "value", ""), event.start_mark.line + 1
    except yaml.YAMLError:
        return  # the document was parsed from a repaired text, so that the lines after this error are unknown
    finally:
        loader.dispose()


def _walk(events: Iterator[Event], root: _Wanted) -> dict[str, int]:
    found: dict[str, int] = {}
    # stack of the enclosing containers: the wanted children, True for a mapping, and a list index
    outer: list[tuple[_Wanted, bool, int]] = []
    node, mapping, index = _NOTHING, False, 0
    current: _Wanted | None = root
    key_line = depth = 0
    is_value = True  # True if the next event is a value, not a key
    for kind, text, line in events:
        if depth:  # skip a container without wanted nodes
            depth += (kind in "{[") - (kind == "}")
        elif kind == "}":
            node, mapping, index = outer.pop()
            is_value = False
        elif mapping and not is_value:
            current, key_line, is_value = node.below.get(text), line, True
            continue
        else:
            if outer and not mapping:
                current, key_line = node.below.get(str(index)), line
                index += 1
            is_value = False
            if current is not None and current is not root:
                _note(current, key_line, found)
            if kind in "{[":
                if current is None or not current.below:
                    depth = 1
                else:
                    outer.append((node, mapping, index))
                    node, mapping, index = current, kind == "{", 0
        if not depth and not outer:
            break
    return found


def _definitions(text: str, root: _Wanted) -> dict[str, int]:
    """Return the lines of wanted types and fields in a GraphQL schema, with pointers such as `/Type/field`."""
    found: dict[str, int] = {}
    current = _NOTHING
    for number, line in enumerate(text.splitlines(), 1):
        if match := _DEFINITION.match(line):
            current = root.below.get(match[1], _NOTHING)
            _note(current, number, found)
        elif current is not _NOTHING and (match := _FIELD.match(line)):
            _note(current.below.get(match[1], _NOTHING), number, found)
    return found


_DEFINITION: Final = re.compile(r"(?:extend )?(?:type|interface|input|enum|union|scalar)\s+(\w+)")
_FIELD: Final = re.compile(r"\s+(\w+)\s*[(:]")


def _note(wanted: _Wanted, line: int, found: dict[str, int]) -> None:
    """Store `line` for the wanted pointers at this position, and as a fallback for all pointers below."""
    found.update(dict.fromkeys(wanted.pointers, line))
    for below in wanted.below.values():
        _note(below, line, found)
