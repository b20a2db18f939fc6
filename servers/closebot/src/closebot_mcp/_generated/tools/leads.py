"""People that bots talk with.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_LEADS = Operation(
    "GET",
    "/lead",
    parameters=(
        Parameter("page", "query", "page"),
        Parameter("pageSize", "query", "pageSize"),
        Parameter("sourceId", "query", "sourceId"),
        Parameter("leadId", "query", "leadId"),
    ),
    security=(("key",),),
    paging=Paging("page", "page", items=("results",), size="pageSize", limit=20, first=0, total=("total",)),
)
SEARCH_LEADS = Operation(
    "POST",
    "/lead/search",
    body=Body(
        "application/json",
        (
            Field("search", ("search",)),
            Field("sourceIds", ("sourceIds",)),
            Field("channels", ("channels",)),
            Field("botIds", ("botIds",)),
            Field("personaIds", ("personaIds",)),
            Field("minimumResponses", ("minimumResponses",)),
            Field("lastMessageDirection", ("lastMessageDirection",)),
            Field("followUpScheduled", ("followUpScheduled",)),
            Field("totalOnly", ("totalOnly",)),
            Field("offset", ("offset",)),
            Field("count", ("count",)),
        ),
        required=True,
    ),
    security=(("key",),),
    paging=Paging("offset", "offset", items=("leads",), size="count", limit=20, total=("total",)),
)
GET_LEAD = Operation(
    "GET",
    "/lead/{leadId}",
    parameters=(Parameter("leadId", "path", "leadId"), Parameter("includeExternal", "query", "includeExternal")),
    security=(("key",),),
)
DELETE_LEAD = Operation(
    "DELETE", "/lead/{leadId}", parameters=(Parameter("leadId", "path", "leadId"),), security=(("key",),)
)


async def list_leads(
    api: Upstream,
    /,
    *,
    page: int | Unset = UNSET,
    pageSize: int | Unset = UNSET,
    sourceId: str | Unset = UNSET,
    leadId: str | Unset = UNSET,
) -> ToolResult:
    """List leads.

    GET /lead

    Args:
        api: the connection that the tools share.
        page: The page; the first is 0
        pageSize: Leads on one page
        sourceId: Only those of this source
        leadId: Only this one
    """
    return await api.send(LIST_LEADS, {"page": page, "pageSize": pageSize, "sourceId": sourceId, "leadId": leadId})


async def search_leads(
    api: Upstream,
    /,
    *,
    search: str | Unset = UNSET,
    sourceIds: list[str] | Unset = UNSET,
    channels: list[str] | Unset = UNSET,
    botIds: list[str] | Unset = UNSET,
    personaIds: list[str] | Unset = UNSET,
    minimumResponses: int | Unset = UNSET,
    lastMessageDirection: str | Unset = UNSET,
    followUpScheduled: bool | Unset = UNSET,
    totalOnly: bool | Unset = UNSET,
    offset: int | Unset = UNSET,
    count: int | Unset = UNSET,
) -> ToolResult:
    """Search leads.

    POST /lead/search

    Args:
        api: the connection that the tools share.
        search: Words: a name, a number
        sourceIds: Only of these sources
        channels: Only on these channels
        botIds: Only with these bots
        personaIds: Only with these personas
        minimumResponses: Only with so many answers or more
        lastMessageDirection: Who wrote last: the lead (to_bot) or the bot (from_bot)
        followUpScheduled: Only those that a follow-up is due for (true) or not (false)
        totalOnly: Give only the number
        offset: How many are skipped
        count: How many are given
    """
    return await api.send(
        SEARCH_LEADS,
        {
            "search": search,
            "sourceIds": sourceIds,
            "channels": channels,
            "botIds": botIds,
            "personaIds": personaIds,
            "minimumResponses": minimumResponses,
            "lastMessageDirection": lastMessageDirection,
            "followUpScheduled": followUpScheduled,
            "totalOnly": totalOnly,
            "offset": offset,
            "count": count,
        },
    )


async def get_lead(api: Upstream, /, *, leadId: str, includeExternal: bool | Unset = UNSET) -> ToolResult:
    """Look up one lead.

    GET /lead/{leadId}

    Args:
        api: the connection that the tools share.
        leadId: The lead
        includeExternal: Add the fields of the CRM
    """
    return await api.send(GET_LEAD, {"leadId": leadId, "includeExternal": includeExternal})


async def delete_lead(api: Upstream, /, *, leadId: str) -> ToolResult:
    """Delete a lead.

    DELETE /lead/{leadId}

    Args:
        api: the connection that the tools share.
        leadId: The lead
    """
    return await api.send(DELETE_LEAD, {"leadId": leadId})
