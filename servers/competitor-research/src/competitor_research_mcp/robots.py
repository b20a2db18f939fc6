"""robots.txt (RFC 9309): which paths of a host a program may ask for, and how long it waits between two requests. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

__all__ = ["ALL", "NOTHING", "Robots", "parse_robots"]

MAX_BYTES: Final = 512_000  # RFC 9309 §2.5: at least 500 KiB are read
_MOST_RULES: Final = 5_000
_LONGEST_DELAY: Final = 60.0  # seconds; hosts that ask for more are asked that rarely by nobody who waits for an answer
_PLAIN: Final = "!%&'()+,-./:;=?@_~"


@dataclass(frozen=True, slots=True)
class Rule:
    """A path pattern, and whether what it matches may be fetched."""

    allow: bool
    pattern: str


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for one program.

    Attributes:
        rules: those of the group that names the program, or else of the group for all (`*`).
        delay: seconds between two requests, as Crawl-delay says; 0 without one.
        sitemaps: addresses of sitemaps that the file names.
        group: "named", "everyone", or "none" when no group is for this program.
    """

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0
    sitemaps: tuple[str, ...] = ()
    group: str = "none"

    def rule_for(self, url: str) -> Rule | None:
        """Return the rule that decides about an address: the longest pattern that matches, of two equal ones the one that allows."""
        parts = urlsplit(url)
        path = _encoded((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        if path == "/robots.txt":
            return None
        found = [rule for rule in self.rules if _matches(rule.pattern, path)]
        return max(found, key=lambda rule: (len(rule.pattern), rule.allow), default=None)

    def allows(self, url: str) -> bool:
        """Return whether the address may be fetched."""
        rule = self.rule_for(url)
        return rule is None or rule.allow


@dataclass(slots=True)
class _Group:
    agents: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    delay: float = 0.0


ALL: Final = Robots()
"""Of a host without the file (RFC 9309 §2.3.1.3): everything may be fetched."""

NOTHING: Final = Robots((Rule(allow=False, pattern="/"),), group="everyone")
"""Of a host whose file cannot be had at the moment (§2.3.1.4): nothing may be fetched."""


def parse_robots(text: str, agent: str) -> Robots:
    """Return what a robots.txt says to the program with the product token `agent`."""
    groups: list[_Group] = []
    sitemaps: list[str] = []
    naming = False  # whether the line before named a program, too: then this one belongs to the same group
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
    elif value.startswith(("/", "*")):  # an empty Disallow allows everything, as no rule does
        group.rules.append(Rule(key == "allow", _pattern(value)))


def _matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path from its beginning: `*` is anything, a `$` at the end is the end. Linear in both."""
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
    """Return the path of a rule as addresses are compared with it: `*`, and `$` at the end, stay special, and are plain characters where they are encoded (§2.2.3)."""
    end = "$" if value.endswith("$") else ""
    before, *rest = value.removesuffix("$").split("*")
    query = "?" in before
    pieces = [_encoded(before)]
    for piece in rest:
        pieces.append(_encoded(piece, query=query))
        query = query or "?" in piece
    return "*".join(pieces) + end


def _encoded(path: str, *, query: bool = False) -> str:
    """Return a path in one of its percent-encoded forms, so that two that mean the same compare equal.

    An encoded slash is no slash in a path; behind the `?` both mean the same (the examples of §2.2.2).
    """
    before, mark, after = ("", "", path) if query else path.partition("?")
    kept = re.sub("%2f", "%252F", before, flags=re.IGNORECASE)
    return quote(unquote_to_bytes(kept + mark + after), safe=_PLAIN)
