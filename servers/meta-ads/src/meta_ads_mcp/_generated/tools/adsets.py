"""Ad sets: audience, placement, schedule, bid.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_AD_SETS = Operation(
    "GET",
    "/{parent_id}/adsets",
    parameters=(
        Parameter("parent_id", "path", "parent_id"),
        Parameter("effective_status", "query", "effective_status", content_type="application/json"),
        Parameter("filtering", "query", "filtering", content_type="application/json"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
CREATE_AD_SET = Operation(
    "POST",
    "/{parent_id}/adsets",
    parameters=(Parameter("ad_account_id", "path", "parent_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("campaign_id", ("campaign_id",)),
            Field("optimization_goal", ("optimization_goal",)),
            Field("billing_event", ("billing_event",)),
            Field("targeting", ("targeting",), content_type="application/json"),
            Field("status", ("status",)),
            Field("daily_budget", ("daily_budget",)),
            Field("lifetime_budget", ("lifetime_budget",)),
            Field("bid_strategy", ("bid_strategy",)),
            Field("bid_amount", ("bid_amount",)),
            Field("promoted_object", ("promoted_object",), content_type="application/json"),
            Field("destination_type", ("destination_type",)),
            Field("attribution_spec", ("attribution_spec",), content_type="application/json"),
            Field("start_time", ("start_time",)),
            Field("end_time", ("end_time",)),
            Field("dsa_beneficiary", ("dsa_beneficiary",)),
            Field("dsa_payor", ("dsa_payor",)),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_AD_SET = Operation(
    "GET",
    "/{ad_set_id}",
    parameters=(
        Parameter("ad_set_id", "path", "ad_set_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)
UPDATE_AD_SET = Operation(
    "POST",
    "/{ad_set_id}",
    parameters=(Parameter("ad_set_id", "path", "ad_set_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("status", ("status",)),
            Field("daily_budget", ("daily_budget",)),
            Field("lifetime_budget", ("lifetime_budget",)),
            Field("targeting", ("targeting",), content_type="application/json"),
            Field("optimization_goal", ("optimization_goal",)),
            Field("bid_strategy", ("bid_strategy",)),
            Field("bid_amount", ("bid_amount",)),
            Field("attribution_spec", ("attribution_spec",), content_type="application/json"),
            Field("start_time", ("start_time",)),
            Field("end_time", ("end_time",)),
            Field("dsa_beneficiary", ("dsa_beneficiary",)),
            Field("dsa_payor", ("dsa_payor",)),
        ),
        required=True,
    ),
    security=(("token",),),
)
COPY_AD_SET = Operation(
    "POST",
    "/{ad_set_id}/copies",
    parameters=(Parameter("ad_set_id", "path", "ad_set_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("campaign_id", ("campaign_id",)),
            Field("deep_copy", ("deep_copy",)),
            Field("status_option", ("status_option",)),
            Field("rename_options", ("rename_options",), content_type="application/json"),
            Field("start_time", ("start_time",)),
            Field("end_time", ("end_time",)),
        ),
        required=True,
    ),
    security=(("token",),),
)


async def list_ad_sets(
    api: Upstream,
    /,
    *,
    parent_id: str,
    effective_status: list[
        Literal["ACTIVE", "PAUSED", "CAMPAIGN_PAUSED", "IN_PROCESS", "WITH_ISSUES", "ARCHIVED", "DELETED"]
    ]
    | Unset = UNSET,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the ad sets of an ad account or a campaign.

    GET /{parent_id}/adsets

    Args:
        api: the connection that the tools share.
        parent_id: An ad account (act_…) or a campaign id
        effective_status: Only ad sets in these states
        filtering: Only what meets all of these conditions
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_AD_SETS,
        {
            "parent_id": parent_id,
            "effective_status": effective_status,
            "filtering": filtering,
            "fields": [
                "id",
                "name",
                "campaign_id",
                "effective_status",
                "daily_budget",
                "lifetime_budget",
                "optimization_goal",
                "bid_amount",
                "start_time",
                "end_time",
            ]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def create_ad_set(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    name: str,
    campaign_id: str,
    optimization_goal: str,
    billing_event: Literal[
        "IMPRESSIONS", "LINK_CLICKS", "THRUPLAY", "PAGE_LIKES", "POST_ENGAGEMENT", "APP_INSTALLS", "CLICKS", "NONE"
    ],
    targeting: dict[str, Any],
    daily_budget: int | Unset = UNSET,
    lifetime_budget: int | Unset = UNSET,
    bid_strategy: Literal[
        "LOWEST_COST_WITHOUT_CAP", "LOWEST_COST_WITH_BID_CAP", "COST_CAP", "LOWEST_COST_WITH_MIN_ROAS"
    ]
    | Unset = UNSET,
    bid_amount: int | Unset = UNSET,
    promoted_object: dict[str, Any] | Unset = UNSET,
    destination_type: str | Unset = UNSET,
    attribution_spec: list[dict[str, Any]] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    end_time: str | Unset = UNSET,
    dsa_beneficiary: str | Unset = UNSET,
    dsa_payor: str | Unset = UNSET,
) -> ToolResult:
    """Create an ad set, paused.

    POST /{parent_id}/adsets

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_…
        name: What people see in Ads Manager
        campaign_id: The campaign that it belongs to
        optimization_goal: What Meta optimises delivery for
        billing_event: What is paid for; IMPRESSIONS goes with every goal
        targeting: The audience. geo_locations is required. All members of Meta's targeting spec are passed
            on, such as locales, exclusions, device_platforms, facebook_positions
        daily_budget: Budget for a day in minor units: 5000 is 50.00 USD
        lifetime_budget: Budget for the whole time in minor units; needs end_time
        bid_strategy: How Meta bids; all but the first need a bid_amount or a floor of ROAS
        bid_amount: Bid or cost cap in minor units, for strategies with a cap
        promoted_object: What is advertised: pixel_id with custom_event_type (PURCHASE, LEAD, ADD_TO_CART …),
            page_id, or application_id with object_store_url
        destination_type: Where people are led
        attribution_spec: When a conversion counts, such as [{"event_type": "CLICK_THROUGH", "window_days":
            7}]
        start_time: Beginning, ISO 8601 with offset
        end_time: End, ISO 8601 with offset
        dsa_beneficiary: Who benefits (EU)
        dsa_payor: Who pays (EU)
    """
    return await api.send(
        CREATE_AD_SET,
        {
            "ad_account_id": ad_account_id,
            "name": name,
            "campaign_id": campaign_id,
            "optimization_goal": optimization_goal,
            "billing_event": billing_event,
            "targeting": targeting,
            "daily_budget": daily_budget,
            "lifetime_budget": lifetime_budget,
            "bid_strategy": bid_strategy,
            "bid_amount": bid_amount,
            "promoted_object": promoted_object,
            "destination_type": destination_type,
            "attribution_spec": attribution_spec,
            "start_time": start_time,
            "end_time": end_time,
            "dsa_beneficiary": dsa_beneficiary,
            "dsa_payor": dsa_payor,
            "status": "PAUSED",
        },
    )


async def get_ad_set(api: Upstream, /, *, ad_set_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """Get one ad set.

    GET /{ad_set_id}

    Args:
        api: the connection that the tools share.
        ad_set_id: The ad set, digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        GET_AD_SET,
        {
            "ad_set_id": ad_set_id,
            "fields": [
                "id",
                "name",
                "campaign_id",
                "status",
                "effective_status",
                "daily_budget",
                "lifetime_budget",
                "budget_remaining",
                "optimization_goal",
                "billing_event",
                "bid_strategy",
                "bid_amount",
                "promoted_object",
                "attribution_spec",
                "targeting",
                "learning_stage_info",
                "start_time",
                "end_time",
                "issues_info",
            ]
            if fields is UNSET
            else fields,
        },
    )


async def update_ad_set(
    api: Upstream,
    /,
    *,
    ad_set_id: str,
    name: str | Unset = UNSET,
    targeting: dict[str, Any] | Unset = UNSET,
    optimization_goal: str | Unset = UNSET,
    bid_strategy: Literal[
        "LOWEST_COST_WITHOUT_CAP", "LOWEST_COST_WITH_BID_CAP", "COST_CAP", "LOWEST_COST_WITH_MIN_ROAS"
    ]
    | Unset = UNSET,
    bid_amount: int | Unset = UNSET,
    attribution_spec: list[dict[str, Any]] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    end_time: str | Unset = UNSET,
    dsa_beneficiary: str | Unset = UNSET,
    dsa_payor: str | Unset = UNSET,
) -> ToolResult:
    """Change settings of an ad set.

    POST /{ad_set_id}

    Args:
        api: the connection that the tools share.
        ad_set_id: The ad set, digits
        name: New name
        targeting: The audience. geo_locations is required. All members of Meta's targeting spec are passed
            on, such as locales, exclusions, device_platforms, facebook_positions
        optimization_goal: What Meta optimises delivery for
        bid_strategy: How Meta bids; all but the first need a bid_amount or a floor of ROAS
        bid_amount: New bid or cost cap in minor units
        attribution_spec: When a conversion counts, such as [{"event_type": "CLICK_THROUGH", "window_days":
            7}]
        start_time: New beginning, ISO 8601 with offset
        end_time: New end, ISO 8601 with offset
        dsa_beneficiary: Who benefits
        dsa_payor: Who pays
    """
    return await api.send(
        UPDATE_AD_SET,
        {
            "ad_set_id": ad_set_id,
            "name": name,
            "targeting": targeting,
            "optimization_goal": optimization_goal,
            "bid_strategy": bid_strategy,
            "bid_amount": bid_amount,
            "attribution_spec": attribution_spec,
            "start_time": start_time,
            "end_time": end_time,
            "dsa_beneficiary": dsa_beneficiary,
            "dsa_payor": dsa_payor,
        },
    )


async def copy_ad_set(
    api: Upstream,
    /,
    *,
    ad_set_id: str,
    campaign_id: str | Unset = UNSET,
    deep_copy: bool | Unset = UNSET,
    rename_options: dict[str, Any] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    end_time: str | Unset = UNSET,
) -> ToolResult:
    """Copy an ad set, paused.

    POST /{ad_set_id}/copies

    Args:
        api: the connection that the tools share.
        ad_set_id: The ad set, digits
        campaign_id: Another campaign to copy it into
        deep_copy: Whether ads are copied
        rename_options: What is added to the names
        start_time: Beginning of the copy, ISO 8601
        end_time: End of the copy, ISO 8601
    """
    return await api.send(
        COPY_AD_SET,
        {
            "ad_set_id": ad_set_id,
            "campaign_id": campaign_id,
            "deep_copy": deep_copy,
            "rename_options": rename_options,
            "start_time": start_time,
            "end_time": end_time,
            "status_option": "PAUSED",
        },
    )
