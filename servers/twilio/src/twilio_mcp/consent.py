"""Asking a person before many are written to: how many may be without a question, and what the question says."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass
from typing import Final

from mcpfactory_runtime import Context, ToolError

from .segments import segments

__all__ = ["ASK_ABOVE", "Sending", "agree", "agreed", "is_agreed"]

ASK_ABOVE: Final = "TWILIO_ASK_ABOVE"
_ASK_ABOVE: Final = 5  # people who are written to without a question
_WINDOW: Final = 600.0  # seconds in which they are counted together


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent, by whom, and to whom: what a person agrees to, and nothing else."""

    sender: str
    people: tuple[str, ...]
    body: str
    media: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Say what will be done."""
        count, each = len(self.people), segments(self.body)
        first = ", ".join(self.people[:3]) + (f" and {count - 3} more" if count > 3 else "")
        media = f" with {len(self.media)} media" if self.media else ""
        start = self.body[:300] + ("…" if len(self.body) > 300 else "")
        return (
            f"Send {count} text{'s' * (count != 1)} of {each} segment{'s' * (each != 1)} each{media} "
            f"from {self.sender} to {first}: {start!r}"
        )


_unasked: deque[tuple[float, str]] = deque()  # when, and to whom, this process sent without a question
_AGREED: ContextVar[bool] = ContextVar("_AGREED", default=False)


@contextmanager
def agreed() -> Iterator[None]:
    """Let single messages go within: a person has agreed to all of them."""
    token = _AGREED.set(True)
    try:
        yield
    finally:
        _AGREED.reset(token)


def is_agreed() -> bool:
    """Return whether a person has agreed to all that is sent here."""
    return _AGREED.get()


async def agree(ctx: Context, sending: Sending, confirm: str | None = None) -> None:
    """Return when so many may be written to without a question, or a person agrees.

    Args:
        ctx: who is asked.
        sending: what a person would agree to.
        confirm: where nobody can be asked, the code that the refusal gave; None where the tool has no such argument.

    Raises:
        ToolError: nobody agreed.
    """
    await ctx.consent(
        f"{sending.sentence()}. Each segment is billed.",
        *astuple(sending),
        confirm=confirm,
        otherwise="Nothing was sent",
        hint="take send_to_many, whose refusal gives a code for confirm, or wait ten minutes",
        unless=lambda: _few(sending.people),
    )


def _few(people: tuple[str, ...]) -> bool:
    """Count people who are written to without a question, each once, if they may be."""
    limit, now = _limit(), time.monotonic()
    while _unasked and now - _unasked[0][0] > _WINDOW:
        _unasked.popleft()
    if len({person for _, person in _unasked}.union(people)) > limit:
        return False
    _unasked.extend((now, person) for person in people)
    return True


def _limit() -> int:
    """Return how many people may be written to without a question.

    Raises:
        ToolError: the owner's setting is no such number.
    """
    given = os.environ.get(ASK_ABOVE, "").strip()
    if not given:
        return _ASK_ABOVE
    if not (given.isascii() and given.isdigit()):
        raise ToolError(
            f"Nothing was sent: {ASK_ABOVE} is {given[:20]!r}, which is no number of people.\n"
            "hint: the person who runs this server sets it to 0 (always ask) or more, or leaves it out"
        )
    return int(given)
