"""Clicks, impressions, click-through rate and position.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

QUERY_SEARCH_ANALYTICS = Operation(
    "POST",
    "/webmasters/v3/sites/{siteUrl}/searchAnalytics/query",
    parameters=(Parameter("siteUrl", "path", "siteUrl"),),
    body=Body(
        "application/json",
        (
            Field("startDate", ("startDate",)),
            Field("endDate", ("endDate",)),
            Field("dimensions", ("dimensions",)),
            Field("type", ("type",)),
            Field("dimensionFilterGroups", ("dimensionFilterGroups",)),
            Field("aggregationType", ("aggregationType",)),
            Field("rowLimit", ("rowLimit",)),
            Field("startRow", ("startRow",)),
            Field("dataState", ("dataState",)),
        ),
        required=True,
    ),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
    paging=Paging("offset", "startRow", items=("rows",)),
)


async def query_search_analytics(
    api: Upstream,
    /,
    *,
    siteUrl: str,
    startDate: str,
    endDate: str,
    dimensions: list[Literal["country", "device", "page", "query", "searchAppearance", "date", "hour"]] | Unset = UNSET,
    type: Literal["web", "image", "video", "news", "discover", "googleNews"] | Unset = UNSET,
    dimensionFilterGroups: list[dict[str, Any]] | Unset = UNSET,
    aggregationType: Literal["auto", "byPage", "byProperty", "byNewsShowcasePanel"] | Unset = UNSET,
    rowLimit: int | Unset = UNSET,
    startRow: int | Unset = UNSET,
    dataState: Literal["final", "all", "hourly_all"] | Unset = UNSET,
) -> ToolResult:
    """Query clicks, impressions and positions.

    POST /webmasters/v3/sites/{siteUrl}/searchAnalytics/query

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        startDate: First day, in Pacific time; at most 16 months ago
        endDate: Last day, included
        dimensions: What rows are grouped by, in this order; each row has their values in `keys`
        type: Which results
        dimensionFilterGroups: Rows must pass every filter of every group
        aggregationType: Whether figures are those of the property or of its pages; byProperty does not go
            with pages as dimension or filter
        rowLimit: Rows in the answer
        startRow: Rows to pass over, for the next page
        dataState: final: days that are complete; all: the newest, which still change; hourly_all: with the
            dimension hour
    """
    return await api.send(
        QUERY_SEARCH_ANALYTICS,
        {
            "siteUrl": siteUrl,
            "startDate": startDate,
            "endDate": endDate,
            "dimensions": dimensions,
            "type": type,
            "dimensionFilterGroups": dimensionFilterGroups,
            "aggregationType": aggregationType,
            "rowLimit": rowLimit,
            "startRow": startRow,
            "dataState": dataState,
        },
    )
