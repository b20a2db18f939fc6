"""Tools for bots: an overview, switching a bot on and off in a source, and trying a draft."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Final

from mcpfactory_runtime import Context, ToolError
from pydantic import Field

from .answers import members, record, rows, text
from .consent import ask, permitted

__all__ = ["bots_overview", "switch_bot", "try_bot"]

_LOOK: Final = 1.0  # seconds between two polls for an answer

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
    """A bot; `published` is the live version, or ""."""

    id: str
    name: str
    published: str
    draft_since: str
    sources: list[Place]


@dataclass(frozen=True, slots=True)
class Turn:
    """A message to a bot and its answer; `problem` is the reason if there is no answer."""

    lead: str
    bot: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A test conversation, which is deleted afterwards; `warning` reports a failure after these turns, or of the deletion."""

    bot: str
    turns: list[Turn]
    warning: str = ""


async def bots_overview(ctx: Context, words: str = "") -> list[BotInShort]:
    """List the bots in short: what is published, and in which sources each answers now.

    Args:
        words: text in the name of the bot or of a source; empty for all.
    """
    found = [_in_short(bot) for bot in rows(await ctx.call("list_bots"), "list_bots")]
    wanted = words.casefold()
    return [bot for bot in found if wanted in " ".join([bot.name, *(place.name for place in bot.sources)]).casefold()]


async def switch_bot(botId: str, sourceId: str, on: bool, ctx: Context) -> Place:
    """Switch a bot on or off in one source. Its channels and tags are kept. The user is asked before it is switched on.

    Args:
        botId: ID of the bot.
        sourceId: ID of a source that the bot is attached to.
        on: true to answer leads there, false to stop.
    """
    bot = record(await ctx.call("get_bot", id=botId), "get_bot", "id")
    attached = next((one for one in members(bot, "sources") if one.get("id") == sourceId), None)
    if attached is None:
        names = ", ".join(f"{one.get('name')} ({one.get('id')})" for one in members(bot, "sources")) or "no source"
        raise ToolError(f"The bot is not attached to {sourceId}; it is to {names}.\nhint: attach_source attaches it")
    if on:
        await ask(ctx, f"Let the bot {bot.get('name')} answer real leads in {attached.get('name')}", botId, sourceId)
    kept: dict[str, Any] = {"channels": channels(attached), "tags": attached.get("tags") or []}
    if attached.get("personaNameOverride"):
        kept["personaNameOverride"] = attached["personaNameOverride"]
    with permitted():
        await ctx.call("attach_source", id=botId, sourceId=sourceId, enabled=on, **kept)
    return Place(sourceId, text(attached, "name"), on, channels(attached))


async def try_bot(
    botId: str,
    messages: Messages,
    ctx: Context,
    sourceId: str = "",
    waitSeconds: Annotated[int, Field(ge=1, le=120)] = 45,
) -> Trial:
    """Try the draft of a bot: write to it as a lead would, and read what it answers. No lead sees it; each answer is billed.

    Args:
        botId: ID of the bot.
        messages: messages of the lead, in order.
        sourceId: source to simulate, with its calendars; appointments that the bot books are then real.
        waitSeconds: timeout for each answer.
    """
    started = record(await ctx.call("start_test_session", botId=botId), "start_test_session", "leadId")
    lead: str = started["leadId"]
    turns: list[Turn] = []
    failed: ToolError | None = None
    try:
        if sourceId:
            await ctx.call("set_test_source", botId=botId, leadId=lead, mimicSourceId=sourceId)
        for number, message in enumerate(messages):
            await ctx.report_progress(number, len(messages), message)
            before = await _state(ctx, botId, lead)
            await ctx.call("send_test_message", botId=botId, leadId=lead, message=message)
            turns.append(await _answer(ctx, botId, lead, message, before.get("lastMessageTime"), waitSeconds))
            if turns[-1].problem:
                break
    except ToolError as error:
        failed = error
    finally:
        left = await _left(ctx, botId, lead)
    if failed is not None and not turns:  # no answer was billed, so nothing needs to be reported
        raise ToolError("\n".join(filter(None, [str(failed), left])))
    return Trial(botId, turns, "\n".join(filter(None, [str(failed or ""), left])))


async def _left(ctx: Context, bot: str, lead: str) -> str:
    """Delete a test conversation; on failure, return a warning that it is left."""
    try:
        await ctx.call("delete_test_session", botId=bot, leadId=lead)
    except ToolError as error:
        said = str(error).partition("\n")[0]
        return f"The test conversation {lead} of the bot {bot} is left: {said} delete_test_session deletes it."
    return ""


async def _answer(ctx: Context, bot: str, lead: str, said: str, before: str | None, wait: float) -> Turn:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        state = await _state(ctx, bot, lead)
        answered = state.get("lastMessageDirection") == "from_bot" and state.get("lastMessageTime") != before
        if answered:
            return Turn(said, text(state, "lastMessage"))
        if state.get("mostRecentFailureReason"):
            return Turn(said, "", str(state["mostRecentFailureReason"]))
        if loop.time() + _LOOK > until:
            return Turn(said, "", f"no answer within {wait:g} seconds")
        await asyncio.sleep(_LOOK)


async def _state(ctx: Context, bot: str, lead: str) -> dict[str, Any]:
    found = await ctx.call("list_test_sessions", botId=bot)
    return next((one for one in rows(found, "list_test_sessions", "leads") if one.get("id") == lead), {})


def _in_short(bot: dict[str, Any]) -> BotInShort:
    published: dict[str, Any] = next((one for one in members(bot, "versions") if one.get("published")), {})
    places = [
        Place(text(one, "id"), text(one, "name"), bool(one.get("enabled")), channels(one))
        for one in members(bot, "sources")
    ]
    changed = text(bot, "modifiedAt")
    newer = changed if changed > text(published, "modifiedAt") else ""
    return BotInShort(text(bot, "id"), text(bot, "name"), str(published.get("version") or ""), newer, places)


def channels(attached: dict[str, Any]) -> list[str]:
    """Return the channels of an attachment."""
    found = attached.get("channelList")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
