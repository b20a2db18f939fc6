"""Tools for leads: reading a conversation, and finding unanswered leads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context
from pydantic import Field

from .answers import amount, members, record, rows, text, time

__all__ = ["find_unanswered", "read_conversation"]

_PAGE: Final = 100  # largest page of the API


@dataclass(frozen=True, slots=True)
class Line:
    """A message; `did` lists actions of the bot, such as a booking."""

    when: str
    who: str
    channel: str
    text: str
    did: list[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages with a lead, the oldest first; `whole` is False if older messages may be missing."""

    lead: str
    name: str
    source: str
    bots: list[str]
    last_failure: str
    whole: bool
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A lead who wrote last."""

    lead: str
    name: str
    source: str
    hours: float
    wrote: str


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Leads without an answer for one reason; `longest` has at most twenty, the longest waiting first."""

    reason: str
    leads: int
    longest: list[Waiting]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Leads without an answer, by reason.

    `looked_at` of `total` leads who wrote last were read; `without_time` names at most fifty of them whose time of
    writing is unknown.
    """

    looked_at: int
    total: int
    without_time: list[str]
    groups: list[WaitingGroup]


async def read_conversation(leadId: str, ctx: Context, most: Annotated[int, Field(ge=1, le=100)] = 40) -> Conversation:
    """Read what was said with a lead, in order, with what the bot did and why its last answer failed.

    Args:
        leadId: ID of the lead.
        most: number of latest messages to return.
    """
    lead = record(await ctx.call("get_lead", leadId=leadId), "get_lead")
    found = rows(await ctx.call("list_messages", leadId=leadId, maxCount=_PAGE), "list_messages")
    messages = sorted(found, key=lambda one: text(one, "timestamp"))
    lines = [_line(message) for message in messages[-most:]]
    bots = [text(one, "botId") for one in members(lead, "instances")]
    whole = len(messages) < _PAGE and len(messages) <= most
    failure = text(lead, "mostRecentFailureReason")
    return Conversation(leadId, text(lead, "name"), text(lead, "source", "name"), bots, failure, whole, lines)


async def find_unanswered(
    ctx: Context,
    hours: Annotated[float, Field(ge=0, le=8760)] = 2,
    sourceId: str = "",
    most: Annotated[int, Field(ge=1, le=1000)] = 500,
) -> Unanswered:
    """Find leads who wrote last and wait for an answer, grouped by the reason why the bot did not answer.

    Args:
        hours: minimum waiting time.
        sourceId: only leads of this source.
        most: maximum number of leads to read.
    """
    asked: dict[str, Any] = {"lastMessageDirection": "to_bot", **({"sourceIds": [sourceId]} if sourceId else {})}
    leads: list[dict[str, Any]] = []
    while len(leads) < most:
        count = min(_PAGE, most - len(leads))
        page = await ctx.call("search_leads", offset=len(leads), count=count, **asked)
        some = rows(page, "search_leads", "leads")
        leads += some
        if len(some) < count:
            break
    total = max(int(amount(record(page, "search_leads"), "total")), len(leads))
    now = datetime.now(UTC)
    groups: dict[str, list[Waiting]] = defaultdict(list)
    without_time: list[str] = []
    for lead in leads:
        since = time(text(lead, "lastMessageTime"))
        if since is None:
            without_time.append(text(lead, "name") or text(lead, "id"))
        elif now - since >= timedelta(hours=hours):
            waits = round((now - since).total_seconds() / 3600, 1)
            wrote = text(lead, "lastMessage")[:200]
            waiting = Waiting(text(lead, "id"), text(lead, "name"), text(lead, "source", "name"), waits, wrote)
            groups[text(lead, "mostRecentFailureReason") or "no reason is given"].append(waiting)
    grouped = [
        WaitingGroup(reason, len(found), sorted(found, key=lambda one: -one.hours)[:20])
        for reason, found in groups.items()
    ]
    return Unanswered(len(leads), total, without_time[:50], sorted(grouped, key=lambda one: (-one.leads, one.reason)))


def _line(message: dict[str, Any]) -> Line:
    did = [
        ": ".join(str(part) for part in (one.get("activity"), one.get("data")) if part)
        for one in members(message, "activities")
    ]
    who = "bot" if message.get("fromBot") else "lead"
    return Line(text(message, "timestamp"), who, text(message, "channel"), text(message, "message"), did)
