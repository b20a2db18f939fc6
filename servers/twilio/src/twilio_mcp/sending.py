"""Tools about messages: many at once with a person's consent, what did not arrive and why, and waiting until one did."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context, McpError, ToolError
from pydantic import Field

from .errors import explained

__all__ = ["check_delivery", "find_failed_messages", "send_to_many"]

ASK_ABOVE: Final = "TWILIO_ASK_ABOVE"
_ASK_ABOVE: Final = 5  # people who are written to without a question
_AT_ONCE: Final = 4
_OVER: Final = frozenset({"delivered", "undelivered", "failed", "read", "canceled", "received"})
_FAILED: Final = frozenset({"failed", "undelivered"})
_LOOK: Final = 1.0  # seconds between two looks

People = Annotated[
    list[Annotated[str, Field(pattern=r"^(whatsapp:)?\+[1-9]\d{6,14}$")]], Field(min_length=1, max_length=500)
]
Sids = Annotated[list[Annotated[str, Field(pattern=r"^(SM|MM)[0-9a-fA-F]{32}$")]], Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a text to one person; `sid` is "" when it was refused."""

    to: str
    sid: str
    status: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SentToMany:
    """How many texts were taken, and each of them."""

    taken: int
    refused: int
    segments_each: int
    messages: list[Sent]


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Messages that failed for one reason."""

    code: int
    why: str
    what_to_do: str
    times: int
    to: list[str]


@dataclass(frozen=True, slots=True)
class FailedMessages:
    """What did not arrive; `looked_at` is how many messages were read."""

    looked_at: int
    failed: list[FailedGroup]


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of one message; `over` says that it will not change any more."""

    sid: str
    to: str
    status: str
    over: bool
    why: str


async def send_to_many(
    to: People,
    body: Annotated[str, Field(min_length=1, max_length=1600)],
    ctx: Context,
    fromNumber: str = "",
    messagingServiceSid: str = "",
    confirm: str = "",
) -> SentToMany:
    """Send one text to several people. Above a number of them a person is asked before anything is sent.

    Args:
        to: the numbers, in E.164 form; each gets it once.
        body: the text.
        fromNumber: a number of the account; or give messagingServiceSid.
        messagingServiceSid: the service that chooses the sender.
        confirm: where nobody can be asked, the sentence that the refusal names, once a person has agreed to it.
    """
    if bool(fromNumber) == bool(messagingServiceSid):
        raise ToolError("Give fromNumber or messagingServiceSid: one of the two.")
    people = list(dict.fromkeys(to))
    segments = _segments(body)
    if len(people) > _limit():
        await _consent(ctx, f"Send {len(people)} texts of {segments} segments each", body, confirm)
    sender = {"From": fromNumber} if fromNumber else {"MessagingServiceSid": messagingServiceSid}
    limit = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def one(number: str) -> Sent:
        nonlocal done
        async with limit:
            try:
                found = await ctx.call("send_message", To=number, Body=body, **sender)
                sent = Sent(number, found["sid"], found.get("status", ""))
            except ToolError as error:
                sent = Sent(number, "", "refused", str(error).partition("\n")[0])
        done += 1
        await ctx.report_progress(done, len(people), f"{done} of {len(people)} texts")
        return sent

    messages = await asyncio.gather(*map(one, people))
    taken = sum(bool(message.sid) for message in messages)
    return SentToMany(taken, len(messages) - taken, segments, sorted(messages, key=lambda message: bool(message.sid)))


async def find_failed_messages(
    ctx: Context,
    days: Annotated[int, Field(ge=1, le=30)] = 7,
    most: Annotated[int, Field(ge=1, le=1000)] = 1000,
) -> FailedMessages:
    """Say which messages of the latest days did not arrive, grouped by reason, with what to do about each.

    Args:
        days: how far back.
        most: messages that are read, the latest first.
    """
    since = (datetime.now(UTC) - timedelta(days=days)).date()
    asked: dict[str, Any] = {"DateSentSince": str(since), "PageSize": most}
    found = await ctx.call("list_messages", **asked)
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for message in found["messages"]:
        if message.get("status") in _FAILED:
            groups[message.get("error_code") or 0].append(message)
    failed = []
    for code, messages in groups.items():
        why, what = explained(code, messages[0].get("error_message") or "")
        people = list(dict.fromkeys(message["to"] for message in messages))
        failed.append(FailedGroup(code, why, what, len(messages), people[:20]))
    return FailedMessages(len(found["messages"]), sorted(failed, key=lambda one: (-one.times, one.code)))


async def check_delivery(
    sids: Sids, ctx: Context, waitSeconds: Annotated[int, Field(ge=0, le=60)] = 0
) -> list[Delivery]:
    """Say of messages whether they arrived, and wait a little for those on their way.

    Args:
        sids: the messages, as sending them gave them.
        waitSeconds: how long is waited for all to be over.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + waitSeconds
    while True:
        found = await asyncio.gather(*(ctx.call("get_message", Sid=sid) for sid in sids))
        states = [_delivery(message) for message in found]
        over = sum(state.over for state in states)
        await ctx.report_progress(over, len(states), f"{over} of {len(states)} are over")
        if over == len(states) or loop.time() + _LOOK > until:
            return states
        await asyncio.sleep(_LOOK)


async def _consent(ctx: Context, what: str, body: str, confirm: str) -> None:
    if confirm == what:
        return
    schema = {"type": "object", "properties": {"send": {"type": "boolean", "title": what}}, "required": ["send"]}
    try:
        answer = await ctx.elicit(f"{what}? Each segment is billed.\n\n{body}", schema, key="send")
    except McpError:
        raise ToolError(
            f"A person must agree to this, and this client cannot ask. Ask them, then give confirm: {what!r}."
        ) from None
    if not (answer.accepted and answer.content["send"]):
        raise ToolError("The person did not agree. Nothing was sent.")


def _limit() -> int:
    given = os.environ.get(ASK_ABOVE, "")
    return int(given) if given.isdigit() else _ASK_ABOVE


def _segments(body: str) -> int:
    """Return how many texts Twilio bills: 160 signs of GSM-7 or 70 others fit one, 153 or 67 each of several."""
    alone, several = (160, 153) if body.isascii() else (70, 67)
    return 1 if len(body) <= alone else -(-len(body) // several)


def _delivery(message: dict[str, Any]) -> Delivery:
    status = message.get("status", "")
    code = message.get("error_code")
    why = "; ".join(explained(code, message.get("error_message") or "")) if code else ""
    return Delivery(message["sid"], message.get("to", ""), status, status in _OVER, why)
