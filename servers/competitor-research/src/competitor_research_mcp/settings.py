"""Settings of the server, from environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import __version__

__all__ = ["AGENT", "Settings", "read_settings"]

AGENT: Final = "competitor-research-mcp"  # product token for robots.txt
_PREFIX: Final = "COMPETITOR_RESEARCH_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the server.

    Attributes:
        database: file of the watch list, snapshots and cached pages.
        user_agent: User-Agent header, with an optional contact.
        delay: seconds between two requests to a host; a longer Crawl-delay takes precedence.
        timeout: seconds per request, and for parsing a page.
        max_bytes: maximum size of a page after decompression; the rest is not read.
        private: hosts (`host:port` or `host`) that are permitted at private addresses.
    """

    database: Path
    user_agent: str = f"{AGENT}/{__version__}"
    delay: float = 1.0
    timeout: float = 30.0
    max_bytes: int = 3_000_000
    private: frozenset[str] = frozenset()


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read the settings from environment variables.

    Raises:
        ValueError: a number is invalid or out of range.
    """
    contact = environ.get(f"{_PREFIX}CONTACT", "").strip()
    return Settings(
        database=_database(environ),
        user_agent=f"{AGENT}/{__version__}" + (f" (+{_printable(contact)})" if contact else ""),
        delay=_number(environ, "DELAY", 1.0, 0, 600),
        timeout=_number(environ, "TIMEOUT", 30.0, 0.1, 600),
        max_bytes=int(_number(environ, "MAX_BYTES", 3_000_000, 1_000, 50_000_000)),
        private=frozenset(environ.get(f"{_PREFIX}ALLOW_PRIVATE", "").lower().replace(",", " ").split()),
    )


def _database(environ: Mapping[str, str]) -> Path:
    if chosen := environ.get(f"{_PREFIX}DB", ""):
        return Path(chosen).expanduser()
    base = environ.get("XDG_DATA_HOME") or environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".local" / "share") / "competitor-research" / "research.sqlite"


def _number(environ: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = environ.get(f"{_PREFIX}{name}", "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ValueError(f"{_PREFIX}{name} is {text!r}\nhint: set it to a number from {least:g} to {most:g}")
    return value


def _printable(text: str) -> str:
    return "".join(char for char in text if " " <= char <= "~")
