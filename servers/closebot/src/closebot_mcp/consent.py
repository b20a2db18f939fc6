"""Asking a person before a bot talks with real leads, or something is lost for good."""

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
_THINGS: Final = {  # the tool that looks a thing up, its argument, the member with the name, and the tool that deletes it
    "bot": ("get_bot", "id", "name", "delete_bot", "with its flow and all versions"),
    "persona": ("get_persona", "id", "personaName", "delete_persona", "which bots cannot use any more"),
    "lead": ("get_lead", "leadId", "name", "delete_lead", "with the whole conversation"),
    "file": ("get_file", "fileId", "fileName", "delete_file", "from the library and all sources"),
}


async def publish_draft(botId: str, ctx: Context) -> str:
    """Publish the draft of a bot once a person agrees: it talks with real leads in all attached sources from then on.

    Args:
        botId: the bot.
    """
    bot = record(await ctx.call("get_bot", id=botId), "get_bot", "id")
    places = [text(one, "name") for one in members(bot, "sources") if one.get("enabled")]
    where = ", ".join(places) or "no source, for it is switched on in none"
    await ask(ctx, f"Publish the draft of the bot {bot.get('name')}: it will talk with real leads in {where}", botId)
    with permitted():
        await ctx.call("publish_bot", id=botId)
    return f"{bot.get('name')} is published."


async def delete_for_good(kind: Literal["bot", "persona", "lead", "file"], id: str, ctx: Context) -> str:
    """Delete a bot, persona, lead or file of the library once a person agrees. It cannot be had back; export_bot keeps a copy of a bot.

    Args:
        kind: what it is.
        id: which one.
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
    """Let `attach_source` and `publish_bot` go within: the tool that calls them has asked."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


async def asked(call: ToolCall) -> None:
    """Let a person agree before a bot writes to leads: where it is attached, unless it stays off, when it begins to follow up, and as it is published.

    Raises:
        ToolError: nobody agreed.
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
    """Return when a person agrees to what will happen, or when the server's owner has taken that upon themselves.

    Args:
        ctx: of the call.
        what: what will happen, as one sentence.
        bound_to: ids that the yes belongs to, besides those that the sentence has.

    Raises:
        ToolError: the person does not agree, or the client cannot ask one.
    """
    if os.environ.get(WITHOUT_QUESTIONS) != "1":
        hint = f"do it at app.closebot.com, or the server's owner sets {WITHOUT_QUESTIONS}=1"
        await ctx.consent(what, *bound_to, hint=hint)
