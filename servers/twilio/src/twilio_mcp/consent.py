"""Consent of the user before messages to many recipients."""

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
_ASK_ABOVE: Final = 5  # recipients that need no consent
_WINDOW: Final = 600.0  # seconds for which recipients are counted


@dataclass(frozen=True, slots=True)
class Sending:
    """Sender, recipients and content of a message. A consent applies to exactly these."""

    sender: str
    people: tuple[str, ...]
    body: str
    media: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Describe the sending in one sentence, for the question."""
        count, each = len(self.people), segments(self.body)
        first = ", ".join(self.people[:3]) + (f" and {count - 3} more" if count > 3 else "")
        media = f" with {len(self.media)} media" if self.media else ""
        start = self.body[:300] + ("…" if len(self.body) > 300 else "")
        return (
            f"Send {count} text{'s' * (count != 1)} of {each} segment{'s' * (each != 1)} each{media} "
            f"from {self.sender} to {first}: {start!r}"
        )


_unasked: deque[tuple[float, str]] = deque()  # (monotonic time, recipient) of messages without consent in this process
_AGREED: ContextVar[bool] = ContextVar("_AGREED", default=False)


@contextmanager
def agreed() -> Iterator[None]:
    """Skip the question for single messages within the block, because the user has agreed to all of them."""
    token = _AGREED.set(True)
    try:
        yield
    finally:
        _AGREED.reset(token)


def is_agreed() -> bool:
    """Return True within a block of `agreed`."""
    return _AGREED.get()


async def agree(ctx: Context, sending: Sending, confirm: str | None = None) -> None:
    """Ask for consent, if the recipients of the last ten minutes exceed the limit.

    Args:
        ctx: context of the call, to ask the user.
        sending: message to agree to.
        confirm: code from a refusal, if the client cannot ask; None if the tool has no such argument.

    Raises:
        ToolError: consent is missing, or TWILIO_ASK_ABOVE is invalid.
    """
    await ctx.consent(
        f"{sending.sentence()}. Each segment is billed.",
        *astuple(sending),
        confirm=confirm,
        otherwise="Nothing was sent",
        hint="use send_to_many, whose refusal has a code for confirm, or wait ten minutes",
        unless=lambda: _few(sending.people),
    )


def _few(people: tuple[str, ...]) -> bool:
    """Count recipients, each once, if they are within the limit; return False otherwise."""
    limit, now = _limit(), time.monotonic()
    while _unasked and now - _unasked[0][0] > _WINDOW:
        _unasked.popleft()
    if len({person for _, person in _unasked}.union(people)) > limit:
        return False
    _unasked.extend((now, person) for person in people)
    return True


def _limit() -> int:
    """Return the number of recipients that need no consent.

    Raises:
        ToolError: TWILIO_ASK_ABOVE is invalid.
    """
    given = os.environ.get(ASK_ABOVE, "").strip()
    if not given:
        return _ASK_ABOVE
    if not (given.isascii() and given.isdigit()):
        raise ToolError(
            f"Nothing was sent: {ASK_ABOVE} is {given[:20]!r}, which is not a number of people.\n"
            "hint: the operator must set it to 0 (always ask) or more, or unset it"
        )
    return int(given)
