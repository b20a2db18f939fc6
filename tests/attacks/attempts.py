"""The attempts on all surfaces but documents: what is tried, what is expected, and what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.attacks import connections, logins, questions, surroundings, texts

__all__ = ["ATTEMPTS", "Attempt"]


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
        ("logins", logins.ROWS),
        ("texts", texts.ROWS),
    )
    for name, (expected, carry_out) in rows.items()
}
