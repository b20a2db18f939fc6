"""What the person who runs the server decides, by environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import __version__

__all__ = ["AGENT", "Settings", "read_settings"]

AGENT: Final = "competitor-research-mcp"  # the product token that robots.txt files name
_PREFIX: Final = "COMPETITOR_RESEARCH_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where data is kept, and how politely pages are fetched.

    Attributes:
        database: file of the watch list, snapshots and cached pages.
        user_agent: sent with each request; names this server, and whom to write to.
        delay: seconds between two requests to one host; a longer Crawl-delay of its robots.txt wins.
        timeout: seconds for one page, redirects included.
        max_bytes: of a page, after decompression; the rest is not read.
        private: hosts (`host:port` or `host`) that may be at private addresses.
    """

    database: Path
    user_agent: str = f"{AGENT}/{__version__}"
    delay: float = 1.0
    timeout: float = 30.0
    max_bytes: int = 3_000_000
    private: frozenset[str] = frozenset()


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings that an environment says; what is missing has its default.

    Raises:
        ValueError: a variable is no number where one is needed, or out of its range; the message names it.
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
        raise ValueError(f"{_PREFIX}{name} is {text!r}\nhint: a number from {least:g} to {most:g}")
    return value


def _printable(text: str) -> str:
    return "".join(char for char in text if " " <= char <= "~")
