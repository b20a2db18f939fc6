"""What is wrong with a line on stdout that is no JSON-RPC message: the cause in words, and what to do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from mcpfactory_pipeline.checks.exchange import MAX_DEPTH, is_nested_deeper

__all__ = ["OVERSIZE_LINE", "noise_cause", "noise_hint"]

OVERSIZE_LINE: Final = "a line of more than 16 MB"
_CONTROL: Final = re.compile(
    rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]"
)  # not those that texts have: tabs, line ends, escapes of terminals


class _Cause(NamedTuple):
    words: str
    hint: str
    fits: Callable[[bytes], bool]


def noise_cause(line: bytes) -> str:
    """Return in a few words what a line is that is no message."""
    return next(cause.words for cause in _CAUSES if cause.fits(line))


def noise_hint(causes: tuple[str, ...]) -> str:
    """Return what to do about causes, the first of which has more to it than a stray print."""
    known = {cause.words: cause.hint for cause in _CAUSES} | {OVERSIZE_LINE: _SHORTER}
    return next((known[cause] for cause in causes if cause in known), "")


def _is_utf16(line: bytes) -> bool:
    return line.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"{\x00" in line and line.count(b"\x00") * 3 > len(line))


def _is_foreign_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_several(line: bytes) -> bool:
    text = line.decode(errors="replace").strip()
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list) and text[end:].lstrip()[:1] in ("{", "[")


def _is_deep(line: bytes) -> bool:
    try:
        return is_nested_deeper(json.loads(line), MAX_DEPTH)
    except RecursionError:
        return True
    except ValueError:
        return False


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_SHORTER: Final = "answer in pages, or less: clients do not read a message of that size"
_UTF8: Final = "write UTF-8, whatever the locale says (Python: sys.stdout.reconfigure(encoding='utf-8'))"
# The first that fits is told.
_CAUSES: Final[tuple[_Cause, ...]] = (
    _Cause("UTF-16", _UTF8, _is_utf16),
    _Cause("binary data", "put bytes into content as base64, and write nothing but messages to stdout", lambda line: _CONTROL.search(line) is not None),
    _Cause("text that is not UTF-8", _UTF8, _is_foreign_text),
    _Cause("two messages on a line", "end each message with a line break, and let one thread write at a time", _is_several),
    _Cause("headers as of the Language Server Protocol", "write a message as one line, without headers", lambda line: line.lower().startswith(b"content-length:")),
    _Cause("JSON that is nested too deeply to be read", "return less nested data", _is_deep),
    _Cause("JSON that is no JSON-RPC 2.0 message", 'every message has "jsonrpc": "2.0"', _is_json),
    _Cause("a message over several lines", "write JSON without line breaks (no indentation)", lambda line: line.strip()[:1] in (b"{", b"}") or line.lstrip().startswith(b'"jsonrpc"')),
    _Cause("text", "", lambda _line: True),
)  # fmt: skip
