"""What the code of a server says of itself without being run: variables that it reads, and what it is written with. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["environment_names", "framework", "framework_words"]

_READS: Final = re.compile(
    r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["']([A-Z][A-Z0-9_]{2,60})["']|process\.env(?:\.([A-Z][A-Z0-9_]{2,60})\b|\[["']([A-Z][A-Z0-9_]{2,60})["']\])"""
)
# What programs read that is no setting of a server.
_COMMON: Final = re.compile(
    r"HOME|PATH|USER|SHELL|TERM|TMPDIR|TEMP|TMP|LANG|LC_\w+|XDG_\w+|PYTHON\w*|NODE_\w+|NPM_\w+|CI|DEBUG|NO_COLOR|FORCE_COLOR|TZ|APPDATA|LOCALAPPDATA|USERPROFILE|SYSTEMROOT|COLUMNS|PORT|HOSTNAME|EDITOR|VIRTUAL_ENV"
)
_LARGEST: Final = 1 << 21  # bytes of one file that are looked at
_FRAMEWORKS: Final = {
    "fastmcp": "FastMCP",
    "mcp": "the official SDK",
    "mcpfactory-runtime": "the runtime",
    "@modelcontextprotocol/sdk": "the official SDK",
    "@modelcontextprotocol/server": "the official SDK",
}


def environment_names(files: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    """Return the variables that files of Python and JavaScript name where they read the environment, sorted."""
    found: set[str] = set()
    for name, data in files:
        if name.endswith((".py", ".js", ".mjs", ".cjs", ".ts")) and len(data) <= _LARGEST:
            found |= {one for groups in _READS.findall(data.decode(errors="replace")) for one in groups if one}
    return tuple(sorted(name for name in found if not _COMMON.fullmatch(name)))


def framework(names: Iterable[str]) -> str:
    """Return what a server is written with, by the names of what it depends on; "" when that says nothing."""
    known = set(names)
    return next((words for name, words in _FRAMEWORKS.items() if name in known), "")


def framework_words(names: Iterable[str]) -> tuple[str, ...]:
    """Return the same as a sentence of what was found; none when nothing is known."""
    found = framework(names)
    return (f"written with {found}",) if found else ()
