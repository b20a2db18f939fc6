"""Tables of a TOML text, changed in place: one is put at the end, or taken out with its sub-tables."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.clients.errors import UnreadableError

__all__ = ["parse", "put", "take"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# What may stand in a statement: texts over several lines first, as their quotes begin like the others.
_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header, a key with its value, a comment or a blank line; `end` is after its newline."""

    start: int
    end: int
    text: str


def parse(text: str) -> dict[str, Any]:
    """Return the data. Raises `UnreadableError`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError(str(error)) from error


def put(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with the table at the path: in place of the one that is there, else at the end; all other bytes as they were.

    Raises `UnreadableError`.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    block = end.join([f"[{'.'.join(map(_key, path))}]", *(f"{_key(k)} = {_value(v)}" for k, v in value.items())])
    regions = _regions(text, path)
    if regions:
        start, stop = regions[0]
        tail = end if text[start:stop].endswith("\n") else ""
        for other, other_end in reversed(regions[1:]):
            text = text[:other] + text[other_end:]
        return text[:start] + block + tail + text[stop:]
    if not text:
        return block + end
    return text + end + block + end if text.endswith("\n") else text + end + end + block


def take(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at the path, its sub-tables, and the blank line before each. Raises `UnreadableError`."""
    for start, stop in reversed(_regions(text, path)):
        before, after = text[:start], text[stop:]
        newline = "\r\n" if before.endswith("\r\n") else "\n"
        if before.endswith(("\n\n", "\n\r\n")) and (not after or after.startswith(("\n", "\r\n"))):
            before = before.removesuffix(newline)
        if not after and not text.endswith("\n"):  # the last line has no end: neither had the one before
            before = before.removesuffix(newline)
        text = before + after
    return text


def _regions(text: str, path: Sequence[str]) -> list[tuple[int, int]]:
    """Where the table and its sub-tables stand: from the header to the end of the last statement."""
    found: list[tuple[int, int]] = []
    mine = False
    for statement in _statements(text):
        body = statement.text.strip()
        if body.startswith("["):
            mine = _header(body)[: len(path)] == list(path)
            if mine:
                found.append((statement.start, statement.end))
        elif mine and body and not body.startswith("#"):
            found[-1] = (found[-1][0], statement.end)
    return found


def _header(line: str) -> list[str]:
    data: Any = parse(line)
    path = []
    while data:
        key, data = next(iter(data.items()))
        path.append(key)
        data = data[0] if isinstance(data, list) else data
    return path


def _statements(text: str) -> Iterator[_Statement]:
    parse(text)
    start = at = depth = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:  # cannot be in a text that tomllib reads
            raise UnreadableError(f"line {text.count(chr(10), 0, at) + 1}: not understood")
        at = token.end()
        sign = token[0]
        depth += (sign in "[{") - (sign in "]}") if len(sign) == 1 else 0
        if sign == "\n" and depth == 0:
            yield _Statement(start, at, text[start:at])
            start = at
    if start < len(text):
        yield _Statement(start, len(text), text[start:])


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
