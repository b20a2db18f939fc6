"""Tools about bots: which there are in short, switching one on and off in a source, and trying one before leads see it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .consent import ask

__all__ = ["bots_overview", "switch_bot", "try_bot"]

_LOOK: Final = 1.0  # seconds between two looks for an answer

Messages = Annotated[list[Annotated[str, Field(min_length=1, max_length=2000)]], Field(min_length=1, max_length=8)]


@dataclass(frozen=True, slots=True)
class Place:
    """A source that a bot is attached to."""

    id: str
    name: str
    on: bool
    channels: list[str]


@dataclass(frozen=True, slots=True)
class BotInShort:
    """A bot; `published` is the version that leads talk with, "" when there is none."""

    id: str
    name: str
    published: str
    draft_since: str
    sources: list[Place]


@dataclass(frozen=True, slots=True)
class Turn:
    """What was written to a bot and what it answered; `problem` says why there is no answer."""

    lead: str
    bot: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A test conversation, which is deleted again."""

    bot: str
    turns: list[Turn]


async def bots_overview(ctx: Context, words: str = "") -> list[BotInShort]:
    """Say in short which bots there are, what is published, and in which sources each answers now.

    Args:
        words: only bots with these words in their name or in that of a source.
    """
    found = [_in_short(bot) for bot in _rows(await ctx.call("list_bots"))]
    wanted = words.casefold()
    return [bot for bot in found if wanted in " ".join([bot.name, *(place.name for place in bot.sources)]).casefold()]


async def switch_bot(botId: str, sourceId: str, on: bool, ctx: Context) -> Place:
    """Switch a bot on or off in one source. Its channels and tags stay. A person is asked before it is switched on.

    Args:
        botId: the bot.
        sourceId: the source, which the bot is attached to.
        on: whether it answers leads there.
    """
    bot = await ctx.call("get_bot", id=botId)
    attached = next((one for one in bot.get("sources") or [] if one.get("id") == sourceId), None)
    if attached is None:
        names = ", ".join(f"{one.get('name')} ({one.get('id')})" for one in bot.get("sources") or []) or "no source"
        raise ToolError(f"The bot is not attached to {sourceId}; it is to {names}.\nhint: attach_source attaches it")
    if on:
        await ask(ctx, f"Let the bot {bot.get('name')} answer real leads in {attached.get('name')}")
    kept = {"channels": attached.get("channelList") or [], "tags": attached.get("tags") or []}
    if attached.get("personaNameOverride"):
        kept["personaNameOverride"] = attached["personaNameOverride"]
    await ctx.call("attach_source", id=botId, sourceId=sourceId, enabled=on, **kept)
    return Place(sourceId, attached.get("name") or "", on, kept["channels"])


async def try_bot(
    botId: str,
    messages: Messages,
    ctx: Context,
    sourceId: str = "",
    waitSeconds: Annotated[int, Field(ge=1, le=120)] = 45,
) -> Trial:
    """Write to the draft of a bot as a lead would, and read what it answers. No lead sees it; each answer is billed.

    Args:
        botId: the bot.
        messages: what the lead writes, one after the other.
        sourceId: act as in this source, with its calendars; appointments that the bot books are then real.
        waitSeconds: how long each answer is waited for.
    """
    session = await ctx.call("start_test_session", botId=botId)
    lead = session["leadId"]
    try:
        if sourceId:
            await ctx.call("set_test_source", botId=botId, leadId=lead, mimicSourceId=sourceId)
        turns: list[Turn] = []
        for number, message in enumerate(messages):
            await ctx.report_progress(number, len(messages), message)
            before = await _state(ctx, botId, lead)
            await ctx.call("send_test_message", botId=botId, leadId=lead, message=message)
            turns.append(await _answer(ctx, botId, lead, message, before.get("lastMessageTime"), waitSeconds))
            if turns[-1].problem:
                break
        return Trial(botId, turns)
    finally:
        await ctx.call("delete_test_session", botId=botId, leadId=lead)


async def _answer(ctx: Context, bot: str, lead: str, said: str, before: str | None, wait: float) -> Turn:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        state = await _state(ctx, bot, lead)
        answered = state.get("lastMessageDirection") == "from_bot" and state.get("lastMessageTime") != before
        if answered:
            return Turn(said, state.get("lastMessage") or "")
        if state.get("mostRecentFailureReason"):
            return Turn(said, "", state["mostRecentFailureReason"])
        if loop.time() + _LOOK > until:
            return Turn(said, "", f"no answer within {wait:g} seconds")
        await asyncio.sleep(_LOOK)


async def _state(ctx: Context, bot: str, lead: str) -> dict[str, Any]:
    found = await ctx.call("list_test_sessions", botId=bot)
    return next((one for one in found.get("leads") or [] if one.get("id") == lead), {})


def _rows(found: Any) -> list[dict[str, Any]]:
    """Return the rows of an answer that is a list: structured content has it as `result`."""
    return list(found["result"]) if isinstance(found, dict) else list(found)


def _in_short(bot: dict[str, Any]) -> BotInShort:
    versions = bot.get("versions") or []
    published: dict[str, Any] = next((one for one in versions if one.get("published")), {})
    places = [
        Place(one.get("id") or "", one.get("name") or "", bool(one.get("enabled")), one.get("channelList") or [])
        for one in bot.get("sources") or []
    ]
    changed = bot.get("modifiedAt") or ""
    newer = changed if changed > (published.get("modifiedAt") or "") else ""
    return BotInShort(bot["id"], bot.get("name") or "", str(published.get("version") or ""), newer, places)
