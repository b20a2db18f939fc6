"""Bots: their settings, versions, and the sources they are attached to.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_BOTS = Operation("GET", "/bot", security=(("key",),))
CREATE_BOT = Operation(
    "POST",
    "/bot",
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("templateId", ("templateId",)),
            Field("importKdl", ("importKdl",)),
            Field("folderId", ("folderId",)),
            Field("category", ("category",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
DRAFT_BOT = Operation(
    "POST",
    "/bot/ai",
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("description", ("description",)),
            Field("category", ("category",)),
            Field("folderId", ("folderId",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
GET_BOT = Operation("GET", "/bot/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
UPDATE_BOT = Operation(
    "PUT",
    "/bot/{id}",
    parameters=(Parameter("id", "path", "id"),),
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("favorite", ("favorite",)),
            Field("locked", ("locked",)),
            Field("rescheduling", ("rescheduling",)),
            Field("folderId", ("folderId",)),
            Field("category", ("category",)),
            Field("followUpActive", ("followUpActive",)),
            Field("followUpSequences", ("followUpSequences",)),
            Field("smartFollowUp", ("smartFollowUp",)),
            Field("followUpRepeat", ("followUpRepeat",)),
            Field("followUpVarianceMinutes", ("followUpVarianceMinutes",)),
            Field("followUpExtraPrompt", ("followUpExtraPrompt",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
DELETE_BOT = Operation("DELETE", "/bot/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
DUPLICATE_BOT = Operation(
    "POST", "/bot/{id}/duplicate", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
EXPORT_BOT = Operation("GET", "/bot/{id}/export", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
PUBLISH_BOT = Operation("POST", "/bot/{id}/publish", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
ATTACH_SOURCE = Operation(
    "POST",
    "/bot/{id}/source/{sourceId}",
    parameters=(Parameter("id", "path", "id"), Parameter("sourceId", "path", "sourceId")),
    body=Body(
        "application/json",
        (
            Field("channels", ("channels",)),
            Field("tags", ("tags",)),
            Field("personaNameOverride", ("personaNameOverride",)),
            Field("enabled", ("enabled",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
DETACH_SOURCE = Operation(
    "DELETE",
    "/bot/{id}/source/{sourceId}",
    parameters=(Parameter("id", "path", "id"), Parameter("sourceId", "path", "sourceId")),
    security=(("key",),),
)


async def list_bots(api: Upstream, /) -> ToolResult:
    """List bots.

    GET /bot
    """
    return await api.send(LIST_BOTS, {})


async def create_bot(
    api: Upstream,
    /,
    *,
    name: str,
    templateId: str | Unset = UNSET,
    importKdl: str | Unset = UNSET,
    folderId: str | Unset = UNSET,
    category: str | Unset = UNSET,
) -> ToolResult:
    """Create a bot.

    POST /bot

    Args:
        api: the connection that the tools share.
        name: The name
        templateId: The template to start from
        importKdl: A flow as export_bot gives it
        folderId: The folder it is put into
        category: The kind of source it is made for
    """
    return await api.send(
        CREATE_BOT,
        {"name": name, "templateId": templateId, "importKdl": importKdl, "folderId": folderId, "category": category},
    )


async def draft_bot(
    api: Upstream, /, *, name: str, description: str, category: str | Unset = UNSET, folderId: str | Unset = UNSET
) -> ToolResult:
    """Draft a bot from a description.

    POST /bot/ai

    Args:
        api: the connection that the tools share.
        name: The name
        description: What the bot is to do
        category: The kind of source it is made for
        folderId: The folder it is put into
    """
    return await api.send(
        DRAFT_BOT, {"name": name, "description": description, "category": category, "folderId": folderId}
    )


async def get_bot(api: Upstream, /, *, id: str) -> ToolResult:
    """Look up one bot.

    GET /bot/{id}

    Args:
        api: the connection that the tools share.
        id: The bot
    """
    return await api.send(GET_BOT, {"id": id})


async def update_bot(
    api: Upstream,
    /,
    *,
    id: str,
    name: str | Unset = UNSET,
    favorite: bool | Unset = UNSET,
    locked: bool | Unset = UNSET,
    rescheduling: bool | Unset = UNSET,
    folderId: str | Unset = UNSET,
    category: str | Unset = UNSET,
    followUpActive: bool | Unset = UNSET,
    followUpSequences: list[dict[str, Any]] | Unset = UNSET,
    smartFollowUp: bool | Unset = UNSET,
    followUpRepeat: bool | Unset = UNSET,
    followUpVarianceMinutes: int | Unset = UNSET,
    followUpExtraPrompt: str | Unset = UNSET,
) -> ToolResult:
    """Change settings of a bot.

    PUT /bot/{id}

    Args:
        api: the connection that the tools share.
        id: The bot
        name: A new name
        favorite: Whether it is a favourite
        locked: Whether it is locked against changes
        rescheduling: Whether leads may move their appointment
        folderId: The folder it is put into
        category: The kind of source
        followUpActive: Whether it writes again to leads that do not answer; a person is asked before it does
        followUpSequences: When it writes again
        smartFollowUp: Whether the time of a follow-up is taken from the conversation
        followUpRepeat: Whether the last follow-up is repeated
        followUpVarianceMinutes: Minutes by which a follow-up may come earlier or later
        followUpExtraPrompt: What to heed in follow-ups
    """
    return await api.send(
        UPDATE_BOT,
        {
            "id": id,
            "name": name,
            "favorite": favorite,
            "locked": locked,
            "rescheduling": rescheduling,
            "folderId": folderId,
            "category": category,
            "followUpActive": followUpActive,
            "followUpSequences": followUpSequences,
            "smartFollowUp": smartFollowUp,
            "followUpRepeat": followUpRepeat,
            "followUpVarianceMinutes": followUpVarianceMinutes,
            "followUpExtraPrompt": followUpExtraPrompt,
        },
    )


async def delete_bot(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete a bot.

    DELETE /bot/{id}

    Args:
        api: the connection that the tools share.
        id: The bot
    """
    return await api.send(DELETE_BOT, {"id": id})


async def duplicate_bot(api: Upstream, /, *, id: str) -> ToolResult:
    """Copy a bot.

    POST /bot/{id}/duplicate

    Args:
        api: the connection that the tools share.
        id: The bot
    """
    return await api.send(DUPLICATE_BOT, {"id": id})


async def export_bot(api: Upstream, /, *, id: str) -> ToolResult:
    """Export the flow of a bot.

    GET /bot/{id}/export

    Args:
        api: the connection that the tools share.
        id: The bot
    """
    return await api.send(EXPORT_BOT, {"id": id})


async def publish_bot(api: Upstream, /, *, id: str) -> ToolResult:
    """Publish the draft of a bot.

    POST /bot/{id}/publish

    Args:
        api: the connection that the tools share.
        id: The bot
    """
    return await api.send(PUBLISH_BOT, {"id": id})


async def attach_source(
    api: Upstream,
    /,
    *,
    id: str,
    sourceId: str,
    channels: list[str] | Unset = UNSET,
    tags: list[dict[str, Any]] | Unset = UNSET,
    personaNameOverride: str | Unset = UNSET,
    enabled: bool | Unset = UNSET,
) -> ToolResult:
    """Attach a bot to a source.

    POST /bot/{id}/source/{sourceId}

    Args:
        api: the connection that the tools share.
        id: The bot
        sourceId: The source
        channels: Channels it answers on
        tags: Tags of contacts: those it answers (approveDeny true) or does not (false)
        personaNameOverride: The name it uses here
        enabled: Whether it answers now; left out, it does. A person is asked unless it is false
    """
    return await api.send(
        ATTACH_SOURCE,
        {
            "id": id,
            "sourceId": sourceId,
            "channels": channels,
            "tags": tags,
            "personaNameOverride": personaNameOverride,
            "enabled": enabled,
        },
    )


async def detach_source(api: Upstream, /, *, id: str, sourceId: str) -> ToolResult:
    """Detach a bot from a source.

    DELETE /bot/{id}/source/{sourceId}

    Args:
        api: the connection that the tools share.
        id: The bot
        sourceId: The source
    """
    return await api.send(DETACH_SOURCE, {"id": id, "sourceId": sourceId})
