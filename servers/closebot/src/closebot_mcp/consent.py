"""Consent of the user before a bot talks with real leads, or something is deleted permanently."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

from mcpfactory_runtime import Context, ToolCall

from .answers import members, record, text

__all__ = ["WITHOUT_QUESTIONS", "ask", "asked", "delete_for_good", "permitted", "publish_draft"]

WITHOUT_QUESTIONS: Final = "CLOSEBOT_WITHOUT_QUESTIONS"
_THINGS: Final = {  # by kind: tool to read it, its argument, field of the name, tool to delete it, and consequence
    "bot": ("get_bot", "id", "name", "delete_bot", "with its flow and all versions"),
    "persona": ("get_persona", "id", "personaName", "delete_persona", "which bots cannot use any more"),
    "lead": ("get_lead", "leadId", "name", "delete_lead", "with the whole conversation"),
    "file": ("get_file", "fileId", "fileName", "delete_file", "from the library and all sources"),
}


async def publish_draft(botId: str, ctx: Context) -> str:
    """Publish the draft of a bot, after the user agrees. It then talks with real leads in all attached sources.

    Args:
        botId: ID of the bot.
    """
    bot = record(await ctx.call("get_bot", id=botId), "get_bot", "id")
    places = [text(one, "name") for one in members(bot, "sources") if one.get("enabled")]
    where = ", ".join(places) or "no source, for it is switched on in none"
    await ask(ctx, f"Publish the draft of the bot {bot.get('name')}: it will talk with real leads in {where}", botId)
    with permitted():
        await ctx.call("publish_bot", id=botId)
    return f"{bot.get('name')} is published."


async def delete_for_good(kind: Literal["bot", "persona", "lead", "file"], id: str, ctx: Context) -> str:
    """Delete a bot, persona, lead or file of the library permanently, after the user agrees. export_bot keeps a copy of a bot.

    Args:
        kind: kind of the object.
        id: ID of the object.
    """
    look, argument, member, delete, with_it = _THINGS[kind]
    found = record(await ctx.call(look, **{argument: id}), look)
    name = f"{found.get(member) or '(no name)'} ({id})"
    await ask(ctx, f"Delete the {kind} {name} {with_it}, for good", kind, id)
    await ctx.call(delete, **{argument: id})
    return f"The {kind} {name} is deleted."


_permitted: ContextVar[bool] = ContextVar("_permitted", default=False)


@contextmanager
def permitted() -> Iterator[None]:
    """Skip the question of `attach_source` and `publish_bot` within the block, because the calling tool has asked."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


async def asked(call: ToolCall) -> None:
    """Ask for consent before a generated tool lets a bot write to leads: attaching it enabled, following up, publishing.

    Raises:
        ToolError: the user does not agree, or the client cannot ask.
    """
    given = call.arguments
    if call.name == "update_bot" and given.get("followUpActive") is True:
        await ask(call.context, f"Let the bot {given['id']} write again to leads that do not answer, where it is live")
    if call.name == "attach_source" and given.get("enabled") is not False and not _permitted.get():
        what = f"Attach the bot {given['id']} to {given['sourceId']}, where it answers real leads at once"
        await ask(call.context, what)
    if call.name == "publish_bot" and not _permitted.get():
        await ask(
            call.context,
            f"Publish the draft of the bot {given['id']}: it will talk with real leads where it is switched on",
        )


async def ask(ctx: Context, what: str, *bound_to: str) -> None:
    """Ask for consent, unless the operator has set CLOSEBOT_WITHOUT_QUESTIONS.

    Args:
        ctx: context of the call.
        what: the action in one sentence.
        bound_to: IDs to which the consent applies, in addition to those in the sentence.

    Raises:
        ToolError: the user does not agree, or the client cannot ask.
    """
    if os.environ.get(WITHOUT_QUESTIONS) != "1":
        hint = f"do it at app.closebot.com, or the operator sets {WITHOUT_QUESTIONS}=1"
        await ctx.consent(what, *bound_to, hint=hint)
