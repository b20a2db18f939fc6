"""Figures, messages, and what bots did.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

GET_SUMMARY = Operation(
    "GET", "/botMetric/agencySummary", parameters=(Parameter("sourceId", "query", "sourceId"),), security=(("key",),)
)
GET_METRIC = Operation(
    "GET",
    "/botMetric/agencyMetric",
    parameters=(
        Parameter("metric", "query", "metric"),
        Parameter("resolution", "query", "resolution"),
        Parameter("start", "query", "start"),
        Parameter("end", "query", "end"),
        Parameter("sourceId", "query", "sourceId"),
    ),
    security=(("key",),),
)
GET_LEADERBOARD = Operation(
    "GET",
    "/botMetric/leaderboard",
    parameters=(
        Parameter("metric", "query", "metric"),
        Parameter("numTopLeaders", "query", "numTopLeaders"),
        Parameter("start", "query", "start"),
        Parameter("end", "query", "end"),
    ),
    security=(("key",),),
)
LIST_MESSAGES = Operation(
    "GET",
    "/botMetric/messages",
    parameters=(
        Parameter("sourceId", "query", "sourceId"),
        Parameter("leadId", "query", "leadId"),
        Parameter("start", "query", "start"),
        Parameter("end", "query", "end"),
        Parameter("maxCount", "query", "maxCount"),
    ),
    security=(("key",),),
)
LIST_ACTIONS = Operation(
    "GET",
    "/botMetric/actions",
    parameters=(
        Parameter("leadId", "query", "leadId"),
        Parameter("sourceId", "query", "sourceId"),
        Parameter("botId", "query", "botId"),
        Parameter("start", "query", "start"),
        Parameter("end", "query", "end"),
        Parameter("maxCount", "query", "maxCount"),
    ),
    security=(("key",),),
)


async def get_summary(api: Upstream, /, *, sourceId: str | Unset = UNSET) -> ToolResult:
    """Sum up this month and the last.

    GET /botMetric/agencySummary

    Args:
        api: the connection that the tools share.
        sourceId: Only of this source
    """
    return await api.send(GET_SUMMARY, {"sourceId": sourceId})


async def get_metric(
    api: Upstream,
    /,
    *,
    metric: Literal["responses", "bookings", "activeSources", "contacts", "totalStorage", "revenue"],
    resolution: Literal["hourly", "daily", "monthly"],
    start: str | Unset = UNSET,
    end: str | Unset = UNSET,
    sourceId: str | Unset = UNSET,
) -> ToolResult:
    """Draw one figure over time.

    GET /botMetric/agencyMetric

    Args:
        api: the connection that the tools share.
        metric: The figure
        resolution: How fine
        start: From when
        end: Until when
        sourceId: Only of this source
    """
    return await api.send(
        GET_METRIC, {"metric": metric, "resolution": resolution, "start": start, "end": end, "sourceId": sourceId}
    )


async def get_leaderboard(
    api: Upstream,
    /,
    *,
    metric: Literal["responses", "bookings", "contacts"] | Unset = UNSET,
    numTopLeaders: int | Unset = UNSET,
    start: str | Unset = UNSET,
    end: str | Unset = UNSET,
) -> ToolResult:
    """Rank sources by a figure.

    GET /botMetric/leaderboard

    Args:
        api: the connection that the tools share.
        metric: The figure
        numTopLeaders: How many are given
        start: From when
        end: Until when
    """
    return await api.send(
        GET_LEADERBOARD, {"metric": metric, "numTopLeaders": numTopLeaders, "start": start, "end": end}
    )


async def list_messages(
    api: Upstream,
    /,
    *,
    sourceId: str | Unset = UNSET,
    leadId: str | Unset = UNSET,
    start: str | Unset = UNSET,
    end: str | Unset = UNSET,
    maxCount: int | Unset = UNSET,
) -> ToolResult:
    """List messages.

    GET /botMetric/messages

    Args:
        api: the connection that the tools share.
        sourceId: Only of this source
        leadId: Only of this lead
        start: From when
        end: Until when
        maxCount: At most so many
    """
    return await api.send(
        LIST_MESSAGES, {"sourceId": sourceId, "leadId": leadId, "start": start, "end": end, "maxCount": maxCount}
    )


async def list_actions(
    api: Upstream,
    /,
    *,
    leadId: str | Unset = UNSET,
    sourceId: str | Unset = UNSET,
    botId: str | Unset = UNSET,
    start: str | Unset = UNSET,
    end: str | Unset = UNSET,
    maxCount: int | Unset = UNSET,
) -> ToolResult:
    """List what bots did.

    GET /botMetric/actions

    Args:
        api: the connection that the tools share.
        leadId: Only of this lead
        sourceId: Only of this source
        botId: Only of this bot
        start: From when
        end: Until when
        maxCount: At most so many
    """
    return await api.send(
        LIST_ACTIONS,
        {"leadId": leadId, "sourceId": sourceId, "botId": botId, "start": start, "end": end, "maxCount": maxCount},
    )
