"""The attempts on all surfaces but documents: what is tried, what is expected, and what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.attacks import answers, connections, logins, places, questions, strangers, surroundings, texts, wires


@dataclass(frozen=True)
class Attempt:
    """`carry_out` tries it below a folder of its own and returns what was answered; it raises `HarmError` where it succeeds."""

    surface: str
    expected: str
    carry_out: Callable[[Path], str]


ATTEMPTS: Final[dict[str, Attempt]] = {
    f"{surface}: {name}": Attempt(surface, expected, carry_out)
    for surface, rows in (
        ("questions", questions.ROWS),
        ("surroundings", surroundings.ROWS),
        ("connections", connections.ROWS),
        ("answers of APIs", answers.ROWS),
        ("logins", logins.ROWS),
        ("texts", texts.ROWS),
        ("documents of agents", places.AGENTS),
        ("names", places.NAMES),
        ("settings and results of jobs", places.SETTINGS),
        ("addresses of APIs", places.ADDRESSES),
        ("redirects", places.REDIRECTS),
        ("moved credentials", places.ORIGINS),
        ("templates", places.TEMPLATES),
        ("web pages", wires.PAGES),
        ("tokens", wires.TOKENS),
        ("messages", wires.MESSAGES),
        ("sealed states", wires.STATES),
        ("dashboard", wires.DASHBOARD),
        ("packages", wires.PACKAGES),
        ("strangers", strangers.ROWS),
    )
    for name, (expected, carry_out) in rows.items()
}
