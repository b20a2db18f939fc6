"""Asking a person before many are written to: how many may be without a question, the question, and agreement where a client cannot ask."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from mcpfactory_runtime import Context, McpError, ToolError

from .segments import segments

__all__ = ["ASK_ABOVE", "Sending", "agree", "agreed", "is_agreed"]

ASK_ABOVE: Final = "TWILIO_ASK_ABOVE"
_ASK_ABOVE: Final = 5  # people who are written to without a question
_WINDOW: Final = 600.0  # seconds in which they are counted together
_CODES: Final = 100  # refusals whose codes are remembered
_FORM: Final = {"type": "object", "properties": {"send": {"type": "boolean", "title": "Send"}}, "required": ["send"]}


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
_refused: dict[str, Sending] = {}  # the code that a refusal gave, and what it is for
_asked: dict[
    Sending, None
] = {}  # what a question is open for: the tool is run again with the answer, which then decides
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
    if sending not in _asked and _few(sending.people):
        return
    what = sending.sentence()
    if _can_ask(ctx):
        _asked[sending] = None
        if len(_asked) > _CODES:
            del _asked[next(iter(_asked))]
        try:
            await _ask(ctx, what)
        except ToolError:  # a no; a question that is still open ends the call by another exception
            _asked.pop(sending, None)
            raise
        _asked.pop(sending, None)
    elif confirm is None:
        raise ToolError(
            f"Nothing was sent: a person must agree to this, and this client cannot ask. ({what})\n"
            "hint: take send_to_many, whose refusal gives a code for confirm, or wait ten minutes"
        )
    elif _refused.get(confirm.strip()) == sending:
        del _refused[confirm.strip()]  # it serves once
    else:
        code = token_hex(4)
        _refused[code] = sending
        if len(_refused) > _CODES:
            del _refused[next(iter(_refused))]
        raise ToolError(
            f"Nothing was sent: a person must agree to this, and this client cannot ask. ({what})\n"
            f"hint: show them sender, people and text; once they agree, call again with the same and confirm: {code!r}"
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


def _can_ask(ctx: Context) -> bool:
    declared = ctx.client_capabilities.get("elicitation")
    return isinstance(declared, dict) and (not declared or "form" in declared)


async def _ask(ctx: Context, what: str) -> None:
    try:
        answer = await ctx.elicit(f"{what}. Each segment is billed. Go ahead?", _FORM, key=what)
    except McpError as error:
        raise ToolError(f"Nothing was sent: the person could not be asked ({error}).") from None
    content: Any = answer.content
    if not answer.accepted:
        raise ToolError("The person did not agree. Nothing was sent.")
    if not (isinstance(content, dict) and content.get("send") is True):
        raise ToolError("The answer was accepted without `send` being true, which is no agreement. Nothing was sent.")
