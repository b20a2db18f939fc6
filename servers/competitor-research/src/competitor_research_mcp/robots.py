"""Parsing and matching of robots.txt (RFC 9309)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

__all__ = ["ALL", "NOTHING", "Robots", "parse_robots"]

MAX_BYTES: Final = 512_000  # RFC 9309 §2.5 requires at least 500 KiB
_MOST_RULES: Final = 5_000  # per file
_LONGEST_DELAY: Final = 60.0  # seconds; with longer delays, calls would time out
_PLAIN: Final = "!%&'()+,-./:;=?@_~"


@dataclass(frozen=True, slots=True)
class Rule:
    """A path pattern that allows or disallows URLs."""

    allow: bool
    pattern: str


@dataclass(frozen=True, slots=True)
class Robots:
    """Rules of a host for one program.

    Attributes:
        rules: rules of the group that names the program, otherwise of the group `*`.
        delay: Crawl-delay in seconds, or 0.
        sitemaps: URLs of sitemaps in the file.
        group: "named", "everyone", or "none" if no group applies.
    """

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0
    sitemaps: tuple[str, ...] = ()
    group: str = "none"

    def rule_for(self, url: str) -> Rule | None:
        """Return the deciding rule for a URL: the longest match; if two are equal, `Allow` wins."""
        parts = urlsplit(url)
        path = _encoded((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        if path == "/robots.txt":
            return None
        found = [rule for rule in self.rules if _matches(rule.pattern, path)]
        return max(found, key=lambda rule: (len(rule.pattern), rule.allow), default=None)

    def allows(self, url: str) -> bool:
        """Return True if the URL may be fetched."""
        rule = self.rule_for(url)
        return rule is None or rule.allow


@dataclass(slots=True)
class _Group:
    agents: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    delay: float = 0.0


ALL: Final = Robots()
"""For hosts without the file (RFC 9309 §2.3.1.3): everything is allowed."""

NOTHING: Final = Robots((Rule(allow=False, pattern="/"),), group="everyone")
"""For hosts whose file is unreachable (§2.3.1.4): nothing is allowed."""


def parse_robots(text: str, agent: str) -> Robots:
    """Return the rules of a robots.txt for the product token `agent`."""
    groups: list[_Group] = []
    sitemaps: list[str] = []
    naming = False  # True after a user-agent line: the next one extends its group
    count = 0
    for line in text.removeprefix("\ufeff").splitlines():
        name, colon, value = line.partition("#")[0].partition(":")
        key, value = name.strip().lower(), value.strip()
        if not colon or count >= _MOST_RULES:
            continue
        if key == "user-agent":
            if not naming:
                groups.append(_Group())
            groups[-1].agents.append(value.lower())
            naming = True
        elif key == "sitemap":
            sitemaps.append(value)
        elif groups and key in ("allow", "disallow", "crawl-delay"):
            naming = False
            count += 1
            _add(groups[-1], key, value)
    named = [group for group in groups if agent.lower() in (one.split("/")[0].strip() for one in group.agents)]
    chosen = named or [group for group in groups if "*" in group.agents]
    return Robots(
        tuple(rule for group in chosen for rule in group.rules),
        max((group.delay for group in chosen), default=0.0),
        tuple(dict.fromkeys(sitemaps)),
        "named" if named else "everyone" if chosen else "none",
    )


def _add(group: _Group, key: str, value: str) -> None:
    if key == "crawl-delay":
        seconds = re.fullmatch(r"\d{1,6}(?:\.\d{1,3})?", value)
        group.delay = max(group.delay, min(float(value), _LONGEST_DELAY)) if seconds else group.delay
    elif value.startswith(("/", "*")):  # an empty Disallow is the same as no rule
        group.rules.append(Rule(key == "allow", _pattern(value)))


def _matches(pattern: str, path: str) -> bool:
    """Return True if a pattern matches the start of a path; `*` matches any text, a final `$` the end. Runs in linear time."""
    ended = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for piece in rest[:-1] if ended else rest:
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    if not ended:
        return True
    return path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= at if rest else at == len(path)


def _pattern(value: str) -> str:
    """Normalize the path of a rule. `*` and a final `$` stay special; if they are percent-encoded, they are literal (§2.2.3)."""
    end = "$" if value.endswith("$") else ""
    before, *rest = value.removesuffix("$").split("*")
    query = "?" in before
    pieces = [_encoded(before)]
    for piece in rest:
        pieces.append(_encoded(piece, query=query))
        query = query or "?" in piece
    return "*".join(pieces) + end


def _encoded(path: str, *, query: bool = False) -> str:
    """Normalize the percent-encoding of a path, so that equivalent paths are equal.

    An encoded slash differs from a slash in the path, but not in the query (examples of §2.2.2).
    """
    before, mark, after = ("", "", path) if query else path.partition("?")
    kept = re.sub("%2f", "%252F", before, flags=re.IGNORECASE)
    return quote(unquote_to_bytes(kept + mark + after), safe=_PLAIN)
