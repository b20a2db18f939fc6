"""Sending one text to several people, with an outcome per recipient."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from mcpfactory_runtime import Context, McpError, ToolError
from pydantic import Field

from .answers import is_refusal, retry_after, status_of, text
from .consent import Sending, agree, agreed
from .segments import segments

__all__ = ["check_channels", "send_to_many"]

_AT_ONCE: Final = 4  # concurrent requests
_TRIES: Final = 3  # per recipient, after 429
_LONGEST_WAIT: Final = 10.0  # seconds; if Retry-After is longer, the remaining recipients are not tried
_UNSURE: Final = "It may have been sent: check with list_messages before you send it again."
_WHATSAPP: Final = "whatsapp:"

People = Annotated[
    list[Annotated[str, Field(pattern=r"^(whatsapp:)?\+[1-9][0-9]{6,14}$")]], Field(min_length=1, max_length=500)
]
Outcome = Literal["taken", "refused", "unknown", "not tried"]


@dataclass(frozen=True, slots=True)
class Sent:
    """Outcome of a text to one recipient.

    `outcome` is `unknown` without a readable response: the text may have been sent. `sid` is empty unless it was taken.
    """

    to: str
    outcome: Outcome
    sid: str = ""
    status: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SentToMany:
    """Counts by outcome, and all texts; those that were not taken come first."""

    taken: int
    refused: int
    unknown: int
    not_tried: int
    segments_each: int
    messages: list[Sent]


async def send_to_many(
    to: People,
    body: Annotated[str, Field(min_length=1, max_length=1600)],
    ctx: Context,
    fromNumber: str = "",
    messagingServiceSid: str = "",
    confirm: str = "",
) -> SentToMany:
    """Send one text to several people. Above a number of people, the user is asked before anything is sent.

    Args:
        to: the people's numbers in E.164 form; each gets the text once.
        body: content of the text.
        fromNumber: sender, a number of the account; or give messagingServiceSid.
        messagingServiceSid: messaging service that selects the sender.
        confirm: code from a refusal, after the user has agreed; only if the client cannot ask the user.
    """
    if bool(fromNumber) == bool(messagingServiceSid):
        raise ToolError("Give either fromNumber or messagingServiceSid.")
    people = list(dict.fromkeys(to))
    check_channels(people, fromNumber)
    await agree(ctx, Sending(fromNumber or messagingServiceSid, tuple(sorted(people)), body), confirm)
    sender = {"From": fromNumber} if fromNumber else {"MessagingServiceSid": messagingServiceSid}
    with agreed():
        messages = await _Round(ctx, body, sender, len(people)).all(people)
    counted = Counter(message.outcome for message in messages)
    return SentToMany(
        counted["taken"],
        counted["refused"],
        counted["unknown"],
        counted["not tried"],
        segments(body),
        sorted(messages, key=lambda message: message.outcome == "taken"),
    )


def check_channels(people: list[str], sender: str) -> None:
    """Refuse a mix of channels: WhatsApp recipients need a WhatsApp sender, others a number.

    Raises:
        ToolError: the channels differ.
    """
    by_whatsapp = {number.startswith(_WHATSAPP) for number in people}
    if len(by_whatsapp) > 1:
        raise ToolError("Nothing was sent: some recipients begin with whatsapp: and some do not; send two messages.")
    if sender and sender.startswith(_WHATSAPP) not in by_whatsapp:
        raise ToolError(
            "Nothing was sent: recipients and sender have different channels.\n"
            "hint: prefix both with whatsapp:, or neither"
        )


class _Round:
    """Sending of one text to several people; an error that concerns all of them stops it."""

    def __init__(self, ctx: Context, body: str, sender: dict[str, str], count: int) -> None:
        self._ctx, self._body, self._sender, self._count = ctx, body, sender, count
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self._done = 0
        self._stopped = ""

    async def all(self, people: list[str]) -> list[Sent]:
        """Send to each recipient; the first alone, so that a general error costs only one request."""
        return [await self._one(people[0]), *await asyncio.gather(*map(self._one, people[1:]))]

    async def _one(self, number: str) -> Sent:
        async with self._limit:
            sent = await self._sent(number)
        self._done += 1
        await self._ctx.report_progress(self._done, self._count, f"{self._done} of {self._count} texts")
        return sent

    async def _sent(self, number: str) -> Sent:
        for left in reversed(range(_TRIES)):
            if self._stopped:
                return Sent(number, "not tried", problem=self._stopped)
            try:
                found = await self._ctx.call("send_message", To=number, Body=self._body, **self._sender)
            except (ToolError, McpError) as error:
                said = str(error)
                wait = retry_after(said)
                if status_of(said) == 429 and left and wait <= _LONGEST_WAIT:
                    await asyncio.sleep(wait)
                    continue
                return self._failed(number, said)
            sid = text(found, "sid") if isinstance(found, dict) else ""
            if not sid:
                return Sent(number, "unknown", problem=f"Twilio's response has no message SID. {_UNSURE}")
            return Sent(number, "taken", sid, text(found, "status"))
        raise AssertionError("the last try returns")

    def _failed(self, number: str, said: str) -> Sent:
        status, problem = status_of(said), " ".join(said.splitlines())
        if status in (401, 429):
            self._stopped = f"Not tried, because Twilio refused another one with {status}: {problem}"
        if is_refusal(said):
            return Sent(number, "refused", problem=problem)
        return Sent(number, "unknown", problem=problem if _UNSURE in problem else f"{problem} {_UNSURE}")
