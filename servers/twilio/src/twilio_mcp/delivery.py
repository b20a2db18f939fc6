"""Tools for delivery: failed messages by reason, and waiting for final states."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .answers import number, rows, status_of, text
from .errors import explained

__all__ = ["check_delivery", "find_failed_messages"]

_OVER: Final = frozenset({"delivered", "undelivered", "failed", "read", "canceled", "received"})
_FAILED: Final = frozenset({"failed", "undelivered"})
_GONE: Final = (404, 410)
_LOOK: Final = 1.0  # seconds between two polls
_GROUPS: Final = 20  # maximum reasons, and recipients per reason
_SAID: Final = 200  # characters of Twilio's message

Sids = Annotated[list[Annotated[str, Field(pattern=r"^(SM|MM)[0-9a-fA-F]{32}$")]], Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Messages that failed for one reason; `to` has at most twenty recipients."""

    code: int
    why: str
    what_to_do: str
    times: int
    to: list[str]


@dataclass(frozen=True, slots=True)
class FailedMessages:
    """Undelivered messages by reason.

    `looked_at` is the number of messages read; `more` is true if older ones were not read. `left_out` counts failures for
    reasons beyond the twenty most frequent.
    """

    looked_at: int
    more: bool
    left_out: int
    failed: list[FailedGroup]


@dataclass(frozen=True, slots=True)
class Delivery:
    """State of a message; `over` is true if it is final. If `status` is "", it is unknown, and `why` has the reason."""

    sid: str
    to: str
    status: str
    over: bool
    why: str


async def find_failed_messages(
    ctx: Context,
    days: Annotated[int, Field(ge=1, le=30)] = 7,
    most: Annotated[int, Field(ge=1, le=1000)] = 1000,
) -> FailedMessages:
    """Find which messages of the latest days did not arrive and why, grouped by reason, with what to do about each.

    Args:
        days: length of the period in days.
        most: messages to read at most, the latest first.
    """
    since = (datetime.now(UTC) - timedelta(days=days)).date()
    asked: dict[str, Any] = {"DateSentSince": str(since), "PageSize": most}
    found = await ctx.call("list_messages", **asked)
    messages = rows(found, "messages", "list_messages")
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        if message.get("status") in _FAILED:
            groups[number(message, "error_code")].append(message)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    shown = [_group(*one) for one in ordered[:_GROUPS]]
    left_out = sum(len(group) for _, group in ordered[_GROUPS:])
    return FailedMessages(len(messages), bool(found.get("next_page_uri")), left_out, shown)


async def check_delivery(
    sids: Sids, ctx: Context, waitSeconds: Annotated[int, Field(ge=0, le=60)] = 0
) -> list[Delivery]:
    """Report whether messages arrived, and wait a little for pending ones.

    Args:
        sids: SIDs of the messages, from sending them.
        waitSeconds: maximum time to wait for final states.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + waitSeconds
    states: dict[str, Delivery] = {}
    wanted = list(dict.fromkeys(sids))
    while True:
        pending = [sid for sid in wanted if sid not in states or not states[sid].over]
        states |= {state.sid: state for state in await asyncio.gather(*(_look(ctx, sid) for sid in pending))}
        over = sum(state.over for state in states.values())
        await ctx.report_progress(over, len(wanted), f"{over} of {len(wanted)} are final")
        if over == len(wanted) or loop.time() + _LOOK > until:
            return [states[sid] for sid in wanted]
        await asyncio.sleep(_LOOK)


async def _look(ctx: Context, sid: str) -> Delivery:
    try:
        message = await ctx.call("get_message", Sid=sid)
    except ToolError as error:
        said = str(error)
        return Delivery(sid, "", "", status_of(said) in _GONE, " ".join(said.splitlines()))
    if not isinstance(message, dict) or not text(message, "status"):
        return Delivery(sid, "", "", over=False, why=f"get_message returned no status: {str(message)[:_SAID]}")
    code, status = number(message, "error_code"), text(message, "status")
    why = "; ".join(explained(code, text(message, "error_message")[:_SAID])) if code else ""
    return Delivery(sid, text(message, "to"), status, status in _OVER, why)


def _group(code: int, messages: list[dict[str, Any]]) -> FailedGroup:
    why, what = explained(code, text(messages[0], "error_message")[:_SAID])
    people = list(dict.fromkeys(text(message, "to") for message in messages))
    return FailedGroup(code, why, what, len(messages), people[:_GROUPS])
