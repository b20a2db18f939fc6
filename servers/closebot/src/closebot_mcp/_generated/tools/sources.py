"""Connected sub-accounts of a CRM.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_SOURCES = Operation(
    "GET",
    "/agency/source",
    parameters=(
        Parameter("page", "query", "page"),
        Parameter("pageSize", "query", "pageSize"),
        Parameter("query", "query", "query"),
        Parameter("category", "query", "category"),
    ),
    security=(("key",),),
    paging=Paging("page", "page", items=("results",), size="pageSize", limit=20, first=0, total=("total",)),
)
GET_SOURCE = Operation("GET", "/agency/source/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
UPDATE_SOURCE = Operation(
    "PUT",
    "/agency/source/{id}",
    parameters=(Parameter("id", "path", "id"),),
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("autoShutoff", ("autoShutoff",)),
            Field("gracefulGoodbye", ("gracefulGoodbye",)),
            Field("isAvailabilityContactTimezone", ("isAvailabilityContactTimezone",)),
            Field("respondWindows", ("respondWindows",)),
            Field("doNotRespondWindows", ("doNotRespondWindows",)),
            Field("summarizeAttachments", ("summarizeAttachments",)),
            Field("respondToReactions", ("respondToReactions",)),
            Field("markConversationsAsUnread", ("markConversationsAsUnread",)),
            Field("webhookCallback", ("webhookCallback",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
LIST_CHANNELS = Operation(
    "GET", "/agency/source/{id}/channels", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
LIST_TAGS = Operation(
    "GET", "/agency/source/{id}/tags", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
LIST_CALENDARS = Operation(
    "GET", "/agency/source/{id}/calendars", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)


async def list_sources(
    api: Upstream,
    /,
    *,
    page: int | Unset = UNSET,
    pageSize: int | Unset = UNSET,
    query: str | Unset = UNSET,
    category: str | Unset = UNSET,
) -> ToolResult:
    """List sources.

    GET /agency/source

    Args:
        api: the connection that the tools share.
        page: The page; the first is 0
        pageSize: Sources on one page
        query: Words in the name
        category: The kind of CRM
    """
    return await api.send(LIST_SOURCES, {"page": page, "pageSize": pageSize, "query": query, "category": category})


async def get_source(api: Upstream, /, *, id: str) -> ToolResult:
    """Look up one source.

    GET /agency/source/{id}

    Args:
        api: the connection that the tools share.
        id: The source
    """
    return await api.send(GET_SOURCE, {"id": id})


async def update_source(
    api: Upstream,
    /,
    *,
    id: str,
    name: str | Unset = UNSET,
    autoShutoff: bool | Unset = UNSET,
    gracefulGoodbye: bool | Unset = UNSET,
    isAvailabilityContactTimezone: bool | Unset = UNSET,
    respondWindows: list[dict[str, Any]] | Unset = UNSET,
    doNotRespondWindows: list[dict[str, Any]] | Unset = UNSET,
    summarizeAttachments: bool | Unset = UNSET,
    respondToReactions: bool | Unset = UNSET,
    markConversationsAsUnread: bool | Unset = UNSET,
    webhookCallback: str | Unset = UNSET,
) -> ToolResult:
    """Change settings of a source.

    PUT /agency/source/{id}

    Args:
        api: the connection that the tools share.
        id: The source
        name: A new name
        autoShutoff: Whether bots stop when a person writes
        gracefulGoodbye: Whether bots end conversations kindly
        isAvailabilityContactTimezone: Whether hours are those of the lead and not of the account
        respondWindows: Hours at which bots answer, in UTC
        doNotRespondWindows: Times at which bots do not answer
        summarizeAttachments: Whether bots look at pictures and files
        respondToReactions: Whether bots answer reactions such as a thumb
        markConversationsAsUnread: Whether conversations are left unread for people
        webhookCallback: Where events are sent
    """
    return await api.send(
        UPDATE_SOURCE,
        {
            "id": id,
            "name": name,
            "autoShutoff": autoShutoff,
            "gracefulGoodbye": gracefulGoodbye,
            "isAvailabilityContactTimezone": isAvailabilityContactTimezone,
            "respondWindows": respondWindows,
            "doNotRespondWindows": doNotRespondWindows,
            "summarizeAttachments": summarizeAttachments,
            "respondToReactions": respondToReactions,
            "markConversationsAsUnread": markConversationsAsUnread,
            "webhookCallback": webhookCallback,
        },
    )


async def list_channels(api: Upstream, /, *, id: str) -> ToolResult:
    """List channels of a source.

    GET /agency/source/{id}/channels

    Args:
        api: the connection that the tools share.
        id: The source
    """
    return await api.send(LIST_CHANNELS, {"id": id})


async def list_tags(api: Upstream, /, *, id: str) -> ToolResult:
    """List contact tags of a source.

    GET /agency/source/{id}/tags

    Args:
        api: the connection that the tools share.
        id: The source
    """
    return await api.send(LIST_TAGS, {"id": id})


async def list_calendars(api: Upstream, /, *, id: str) -> ToolResult:
    """List calendars of a source.

    GET /agency/source/{id}/calendars

    Args:
        api: the connection that the tools share.
        id: The source
    """
    return await api.send(LIST_CALENDARS, {"id": id})
