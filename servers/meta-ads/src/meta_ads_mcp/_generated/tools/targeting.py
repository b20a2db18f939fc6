"""Audiences and estimates.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Paging, Parameter, Unset, Upstream

SEARCH_TARGETING = Operation(
    "GET",
    "/search",
    parameters=(
        Parameter("type", "query", "type"),
        Parameter("q", "query", "q"),
        Parameter("location_types", "query", "location_types", content_type="application/json"),
        Parameter("country_code", "query", "country_code"),
        Parameter("interest_list", "query", "interest_list", content_type="application/json"),
        Parameter("class_", "query", "class"),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
ESTIMATE_REACH = Operation(
    "GET",
    "/{ad_account_id}/reachestimate",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("targeting_spec", "query", "targeting_spec", content_type="application/json"),
    ),
    security=(("token",),),
)
ESTIMATE_DELIVERY = Operation(
    "GET",
    "/{ad_account_id}/delivery_estimate",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("optimization_goal", "query", "optimization_goal"),
        Parameter("targeting_spec", "query", "targeting_spec", content_type="application/json"),
        Parameter("promoted_object", "query", "promoted_object", content_type="application/json"),
    ),
    security=(("token",),),
)
LIST_CUSTOM_AUDIENCES = Operation(
    "GET",
    "/{ad_account_id}/customaudiences",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("filtering", "query", "filtering", content_type="application/json"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
LIST_SAVED_AUDIENCES = Operation(
    "GET",
    "/{ad_account_id}/saved_audiences",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)


async def search_targeting(
    api: Upstream,
    /,
    *,
    type: Literal[
        "adinterest",
        "adinterestsuggestion",
        "adinterestvalid",
        "adgeolocation",
        "adgeolocationmeta",
        "adlocale",
        "adworkposition",
        "adworkemployer",
        "adeducationschool",
        "adeducationmajor",
        "adTargetingCategory",
    ],
    q: str | Unset = UNSET,
    location_types: list[
        Literal[
            "country",
            "country_group",
            "region",
            "city",
            "subcity",
            "neighborhood",
            "zip",
            "geo_market",
            "electoral_district",
            "medium_geo_area",
            "small_geo_area",
            "metro_area",
        ]
    ]
    | Unset = UNSET,
    country_code: str | Unset = UNSET,
    interest_list: list[str] | Unset = UNSET,
    class_: Literal[
        "interests",
        "behaviors",
        "demographics",
        "life_events",
        "industries",
        "income",
        "family_statuses",
        "user_device",
        "user_os",
    ]
    | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """Find interests, places, languages and other keys for audiences.

    GET /search

    Args:
        api: the connection that the tools share.
        type: What to look for
        q: Words to look for
        location_types: For adgeolocation, kinds of places
        country_code: For adgeolocation, only in this country
        interest_list: For adinterestsuggestion and adinterestvalid, names of interests
        class_: For adTargetingCategory, the class of what is browsed
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        SEARCH_TARGETING,
        {
            "type": type,
            "q": q,
            "location_types": location_types,
            "country_code": country_code,
            "interest_list": interest_list,
            "class_": class_,
            "limit": limit,
            "after": after,
        },
    )


async def estimate_reach(api: Upstream, /, *, ad_account_id: str, targeting_spec: dict[str, Any]) -> ToolResult:
    """Estimate how many people an audience has.

    GET /{ad_account_id}/reachestimate

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        targeting_spec: The audience
    """
    return await api.send(ESTIMATE_REACH, {"ad_account_id": ad_account_id, "targeting_spec": targeting_spec})


async def estimate_delivery(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    optimization_goal: str,
    targeting_spec: dict[str, Any],
    promoted_object: dict[str, Any] | Unset = UNSET,
) -> ToolResult:
    """Estimate daily reach and results for an audience.

    GET /{ad_account_id}/delivery_estimate

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        optimization_goal: What the ad set shall optimise for
        targeting_spec: The audience
        promoted_object: Pixel and event, for conversions
    """
    return await api.send(
        ESTIMATE_DELIVERY,
        {
            "ad_account_id": ad_account_id,
            "optimization_goal": optimization_goal,
            "targeting_spec": targeting_spec,
            "promoted_object": promoted_object,
        },
    )


async def list_custom_audiences(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the custom and lookalike audiences of an ad account.

    GET /{ad_account_id}/customaudiences

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        filtering: Only what meets all of these conditions
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_CUSTOM_AUDIENCES,
        {
            "ad_account_id": ad_account_id,
            "filtering": filtering,
            "fields": [
                "id",
                "name",
                "subtype",
                "approximate_count_lower_bound",
                "approximate_count_upper_bound",
                "delivery_status",
            ]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def list_saved_audiences(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the saved audiences of an ad account.

    GET /{ad_account_id}/saved_audiences

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_SAVED_AUDIENCES,
        {
            "ad_account_id": ad_account_id,
            "fields": ["id", "name", "sentence_lines"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )
