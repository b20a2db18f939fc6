"""In-place edits of JSON with comments and trailing commas. Other deviations from JSON are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Never

from mcpfactory_pipeline.delivery.clients.config_files import ConfigSyntaxError

_DEEPEST: Final = 100
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = r'"(?:\\.|[^"\\])*"'
_COMMENT: Final = re.compile(rf"{_STRING}|(?P<comment>//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
# A trailing comma is a comma before a closing bracket. Without a preceding value, the comma is an error.
# Blanks before anything except a comma are skipped in one step, for speed.
_TRAILING: Final = re.compile(
    rf"{_STRING}|[ \t\r\n]++(?!,)|(?P<no_value>[\[{{,:]?)[ \t\r\n]*+(?P<comma>,)(?=[ \t\r\n]*+[\]}}])", re.DOTALL
)


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a valid JSON value")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    members: tuple[_Member, ...]
    comma: int | None

    def member(self, key: str) -> _Member | None:
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise ConfigSyntaxError(f"{key!r} appears {len(found)} times")
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class _Document:
    """A JSON text in three forms of equal length. `plain` has no comments, and `strict` is valid JSON."""

    text: str
    plain: str
    strict: str
    data: Any

    @classmethod
    def read(cls, text: str) -> _Document:
        plain = _COMMENT.sub(lambda found: re.sub(r"[^\r\n]", " ", found[0]) if found["comment"] else found[0], text)
        strict = _TRAILING.sub(
            lambda found: f"{found[0][:-1]} " if found["comma"] and not found["no_value"] else found[0], plain
        )
        depth = 0
        for bracket in re.findall(r"[\[\]{}]", re.sub(_STRING, "", strict, flags=re.DOTALL)):
            depth += 1 if bracket in "[{" else -1
            if depth > _DEEPEST:
                raise ConfigSyntaxError(f"the file has more than {_DEEPEST} levels")
        try:
            return cls(text, plain, strict, _DECODER.decode(strict))
        except json.JSONDecodeError as error:
            raise ConfigSyntaxError(f"line {error.lineno}: {error.msg}") from error
        except ValueError as error:  # the text contains NaN, or a number with too many digits
            raise ConfigSyntaxError(str(error)) from error

    def after_blank(self, place: int) -> int:
        """Skip blanks and comments, and return the new position."""
        found = _SPACE.match(self.plain, place)
        return found.end() if found else place

    def object_at(self, place: int) -> _Object | None:
        """Return the object at the position, or None for another kind of value."""
        if self.strict[place] != "{":
            return None
        members: list[_Member] = []
        at = self.after_blank(place + 1)
        while self.plain[at] not in "},":
            key, end = _DECODER.raw_decode(self.strict, at)
            value = self.after_blank(self.after_blank(end) + 1)
            _, end = _DECODER.raw_decode(self.strict, value)
            members.append(_Member(key, at, value, end))
            at = self.after_blank(end)
            if self.strict[at] == ",":
                at = self.after_blank(at + 1)
        comma = at if self.plain[at] == "," else None
        return _Object(place, (at if comma is None else self.after_blank(at + 1)) + 1, tuple(members), comma)


def parse(text: str) -> Any:
    """Return the parsed data. An empty text is an empty object."""
    return _Document.read(text).data if text.strip() else {}


def insert(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the value at the path. Missing parents are created, and all other bytes stay unchanged."""
    document = _Document.read(text if text.strip() else "{}" + text)
    text, at = document.text, document.after_blank(0)
    for depth, key in enumerate(path):
        node = document.object_at(at)
        if node is None:
            raise ConfigSyntaxError(f"{'.'.join(path[:depth]) or 'the file'} is not an object")
        member = node.member(key)
        if member is None:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert(text, node, key, value)
        if depth == len(path) - 1:
            spread = _lead(text, member.start) is not None or "\n" in text[member.value : member.end]
            new = _render(text, value, _indent(text, member.start)) if spread else _compact(value)
            return text[: member.value] + new + text[member.end :]
        at = member.value
    raise ValueError("the path is empty")


def remove(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at the path. Comments are kept."""
    document = _Document.read(text)
    at = document.after_blank(0)
    for depth, key in enumerate(path):
        node = document.object_at(at)
        member = node.member(key) if node else None
        if node is None or member is None:
            break
        if depth == len(path) - 1:
            return _remove(document, node, member)
        at = member.value
    return text


def _insert(text: str, node: _Object, key: str, value: Any) -> str:
    close = node.end - 1
    inside = text[node.start + 1 : close]
    # position of the blanks before the closing brace
    tail = len(inside.rstrip(" \t\r\n")) + node.start + 1
    spread = not node.members or _lead(text, node.members[0].start) is not None or "\n" in text[tail:close]
    name = json.dumps(key, ensure_ascii=False)
    if not spread:
        last = node.members[-1].end
        if node.comma is not None:
            return f"{text[:tail]} {name}: {_compact(value)},{text[tail:]}"
        return f"{text[:last]},{text[last:tail]} {name}: {_compact(value)}{text[tail:]}"
    end = _newline(text)
    outer = _indent(text, node.start)
    indent = _indent(text, node.members[0].start) if node.members else outer + _unit(text)
    entry = f"{end}{indent}{name}: {_render(text, value, indent)}"
    if node.members and node.comma is None:
        last = node.members[-1].end
        return f"{text[:last]},{text[last:tail]}{entry}{text[tail:]}"
    comma = "," if node.comma is not None else ""
    rest = text[tail:] if node.members or "\n" in text[tail:close] else f"{end}{outer}{text[close:]}"
    return f"{text[:tail]}{entry}{comma}{rest}"


def _remove(document: _Document, node: _Object, member: _Member) -> str:
    text, place = document.text, node.members.index(member)
    start, end = len(text[: member.start].rstrip(" \t\r\n")), member.end
    if len(node.members) == 1:
        comma = end if node.comma is None else node.comma + 1
        inside = text[node.start + 1 : start] + text[end:comma].rstrip(",") + text[comma : node.end - 1]
        return text[: node.start + 1] + (inside if inside.strip() else "") + text[node.end - 1 :]
    if place < len(node.members) - 1 or node.comma is not None:
        comma = document.after_blank(end)
        return text[:start] + text[end:comma] + text[comma + 1 :]
    comma = document.after_blank(node.members[place - 1].end)
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _lead(text: str, place: int) -> str | None:
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
    if not isinstance(value, Mapping) or not value:
        return _compact(value)
    end, inner = _newline(text), indent + _unit(text)
    rows = (f"{inner}{_compact(key)}: {_render(text, item, inner)}" for key, item in value.items())
    return "{" + end + f",{end}".join(rows) + f"{end}{indent}}}"
