"""In-place edits of TOML tables."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from mcpfactory_pipeline.delivery.clients.config_files import ConfigSyntaxError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_HEADER: Final = re.compile(r"^[ \t]*\[[^\n]*", re.MULTILINE)
_NO_STATEMENT: Final = re.compile(r"\n[ \t\r]*(?:#[^\n]*)?\n?\Z")  # a blank line or a comment at the end


def parse(text: str) -> dict[str, Any]:
    """Return the parsed data."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigSyntaxError(str(error)) from error


def insert(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Insert or replace the table at the path, and return the new text."""
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


def remove(text: str, path: Sequence[str]) -> str:
    """Remove the table, its sub-tables, and the preceding blank lines, and return the new text."""
    for start, stop in reversed(_regions(text, path)):
        before, after = text[:start], text[stop:]
        newline = "\r\n" if before.endswith("\r\n") else "\n"
        if before.endswith(("\n\n", "\n\r\n")) and (not after or after.startswith(("\n", "\r\n"))):
            before = before.removesuffix(newline)
        if not after and not text.endswith("\n"):  # keep the file without a final newline
            before = before.removesuffix(newline)
        text = before + after
    return text


def _regions(text: str, path: Sequence[str]) -> list[tuple[int, int]]:
    parse(text)
    starts: list[int] = []
    for found in _HEADER.finditer(text):
        if _is_whole(text[starts[-1] if starts else 0 : found.start()]):
            starts.append(found.start())
    regions = pairwise([*starts, len(text)])
    return [
        (start, _last_statement(text, start, end))
        for start, end in regions
        if _keys(text[start:end].partition("\n")[0].strip())[: len(path)] == list(path)
    ]


def _is_whole(part: str) -> bool:
    try:
        tomllib.loads(part)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _last_statement(text: str, start: int, end: int) -> int:
    """Return the end of a table's last statement."""
    while (found := _NO_STATEMENT.search(text, start, end)) and found.start() + 1 < end:
        if not _is_whole(text[start : found.start() + 1]):
            break
        end = found.start() + 1
    return end


def _keys(header: str) -> list[str]:
    data: Any = parse(header)
    keys = []
    while data:
        key, data = next(iter(data.items()))
        keys.append(key)
        data = data[0] if isinstance(data, list) else data
    return keys


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
