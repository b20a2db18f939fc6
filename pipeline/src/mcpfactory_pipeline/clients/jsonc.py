"""JSON with comments and trailing commas, as editors write it: where each value stands, so that one can be changed in place.

What is not JSON but for comments and trailing commas is refused: guessing would change somebody's settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.clients.errors import UnreadableError

__all__ = ["parse", "put", "take"]

_DEEPEST: Final = 100
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_DECODER: Final = json.JSONDecoder()
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class _Node:
    """A value and where it stands. `comma` is where the comma after the last member is; None when there is none."""

    value: Any
    start: int
    end: int
    members: tuple[_Member, ...] = ()
    comma: int | None = None


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int  # of the key
    node: _Node


def parse(text: str) -> Any:
    """Return the data. An empty text is an empty object. Raises `UnreadableError`."""
    return _scan(text).value if text.strip() else {}


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the value at the path, all other bytes as they were; objects on the way are made when they are not there.

    Raises `UnreadableError`, also when something on the path is not an object.
    """
    text = text if text.strip() else "{}" + text
    node = _scan(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise UnreadableError(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        member = _member(node, key)
        if member is None:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert(text, node, key, value)
        if depth == len(path) - 1:
            lead = _lead(text, member.start)
            pretty = lead is not None or "\n" in text[member.node.start : member.node.end]
            new = _render(text, value, _indent(text, member.start)) if pretty else _compact(value)
            return text[: member.node.start] + new + text[member.node.end :]
        node = member.node
    raise ValueError("an empty path")


def take(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at the path; the objects around it stay, and so do comments. Raises `UnreadableError`."""
    node = _scan(text)
    for key in path[:-1]:
        member = _member(node, key)
        if member is None:
            return text
        node = member.node
    member = _member(node, path[-1])
    return text if member is None else _remove(text, node, member)


def _member(node: _Node, key: str) -> _Member | None:
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        raise UnreadableError(f"{key!r} is there {len(found)} times")
    return found[0] if found else None


def _insert(text: str, node: _Node, key: str, value: Any) -> str:
    """Return a new last member: after the comments behind the last one, in the manner of its siblings."""
    close = node.end - 1
    inside = text[node.start + 1 : close]
    tail = len(inside.rstrip(" \t\r\n")) + node.start + 1  # the end of what stands before the closing brace
    spread = not node.members or _lead(text, node.members[0].start) is not None or "\n" in text[tail:close]
    name = json.dumps(key, ensure_ascii=False)
    if not spread:
        last = node.members[-1].node.end
        if node.comma is not None:
            return f"{text[:tail]} {name}: {_compact(value)},{text[tail:]}"
        return f"{text[:last]},{text[last:tail]} {name}: {_compact(value)}{text[tail:]}"
    end = _newline(text)
    outer = _indent(text, node.start)
    indent = _indent(text, node.members[0].start) if node.members else outer + _unit(text)
    entry = f"{end}{indent}{name}: {_render(text, value, indent)}"
    if node.members and node.comma is None:
        last = node.members[-1].node.end
        return f"{text[:last]},{text[last:tail]}{entry}{text[tail:]}"
    comma = "," if node.comma is not None else ""
    rest = text[tail:] if node.members or "\n" in text[tail:close] else f"{end}{outer}{text[close:]}"
    return f"{text[:tail]}{entry}{comma}{rest}"


def _remove(text: str, node: _Node, member: _Member) -> str:
    """Return the other way round: the member with the blank before it, and the comma that it needed."""
    place = node.members.index(member)
    start, end = len(text[: member.start].rstrip(" \t\r\n")), member.node.end
    if len(node.members) == 1:
        comma = end if node.comma is None else node.comma + 1
        inside = text[node.start + 1 : start] + text[end:comma].rstrip(",") + text[comma : node.end - 1]
        return text[: node.start + 1] + (inside if inside.strip() else "") + text[node.end - 1 :]
    if place < len(node.members) - 1 or node.comma is not None:
        comma = _past_blank(text, end)
        return text[:start] + text[end:comma] + text[comma + 1 :]
    comma = _past_blank(text, node.members[place - 1].node.end)
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _past_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _lead(text: str, place: int) -> str | None:
    """Return the blank before a place when nothing else is before it on its line, else None."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line if not line.strip() else None


def _indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _render(text: str, value: Any, indent: str) -> str:
    """Objects spread over lines, lists on one."""
    if not isinstance(value, Mapping) or not value:
        return _compact(value)
    end, inner = _newline(text), indent + _unit(text)
    rows = (f"{inner}{_compact(key)}: {_render(text, item, inner)}" for key, item in value.items())
    return "{" + end + f",{end}".join(rows) + f"{end}{indent}}}"


def _scan(text: str) -> _Node:
    return _Scanner(text).whole()


@dataclass(slots=True)
class _Scanner:
    text: str
    at: int = field(default=0)

    def whole(self) -> _Node:
        self._blank()
        node = self._value(0)
        self._blank()
        if self.at != len(self.text):
            raise self._wrong("nothing more is expected")
        return node

    def _blank(self) -> None:
        self.at = _past_blank(self.text, self.at)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _wrong(self, what: str) -> UnreadableError:
        return UnreadableError(f"line {self.text.count(chr(10), 0, self.at) + 1}: {what}")

    def _value(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise self._wrong(f"more than {_DEEPEST} levels")
        start, sign = self.at, self._peek()
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        if sign == '"':
            return _Node(self._string(), start, self.at)
        found = _SCALAR.match(self.text, start)
        if found is None:
            raise self._wrong("a value is expected")
        self.at = found.end()
        try:
            return _Node(json.loads(found[0]), start, self.at)
        except ValueError as error:  # a number of more digits than Python reads
            raise self._wrong(str(error)) from error

    def _string(self) -> str:
        try:
            value, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            raise self._wrong(error.msg) from error
        return str(value)

    def _object(self, depth: int) -> _Node:
        members: list[_Member] = []
        start, comma = self.at, None
        self.at += 1
        while True:
            self._blank()
            if self._peek() == "}":
                self.at += 1
                value = {member.key: member.node.value for member in members}
                return _Node(value, start, self.at, tuple(members), comma)
            if members and comma is None:
                raise self._wrong("a comma or } is expected")
            place = self.at
            if self._peek() != '"':
                raise self._wrong("a name in quotes is expected")
            key = self._string()
            self._blank()
            if self._peek() != ":":
                raise self._wrong("a colon is expected")
            self.at += 1
            self._blank()
            members.append(_Member(key, place, self._value(depth + 1)))
            comma = self._comma()

    def _list(self, depth: int) -> _Node:
        items: list[_Node] = []
        start, comma = self.at, None
        self.at += 1
        while True:
            self._blank()
            if self._peek() == "]":
                self.at += 1
                return _Node([item.value for item in items], start, self.at)
            if items and comma is None:
                raise self._wrong("a comma or ] is expected")
            items.append(self._value(depth + 1))
            comma = self._comma()

    def _comma(self) -> int | None:
        self._blank()
        if self._peek() != ",":
            return None
        self.at += 1
        return self.at - 1
