"""Campaigns and their budgets.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_CAMPAIGNS = Operation(
    "GET",
    "/{ad_account_id}/campaigns",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("effective_status", "query", "effective_status", content_type="application/json"),
        Parameter("filtering", "query", "filtering", content_type="application/json"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
CREATE_CAMPAIGN = Operation(
    "POST",
    "/{ad_account_id}/campaigns",
    parameters=(Parameter("ad_account_id", "path", "ad_account_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("objective", ("objective",)),
            Field("status", ("status",)),
            Field("special_ad_categories", ("special_ad_categories",), content_type="application/json"),
            Field("special_ad_category_country", ("special_ad_category_country",), content_type="application/json"),
            Field("daily_budget", ("daily_budget",)),
            Field("lifetime_budget", ("lifetime_budget",)),
            Field("bid_strategy", ("bid_strategy",)),
            Field("spend_cap", ("spend_cap",)),
            Field("is_adset_budget_sharing_enabled", ("is_adset_budget_sharing_enabled",)),
            Field("buying_type", ("buying_type",)),
            Field("start_time", ("start_time",)),
            Field("stop_time", ("stop_time",)),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_CAMPAIGN = Operation(
    "GET",
    "/{campaign_id}",
    parameters=(
        Parameter("campaign_id", "path", "campaign_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)
UPDATE_CAMPAIGN = Operation(
    "POST",
    "/{campaign_id}",
    parameters=(Parameter("campaign_id", "path", "campaign_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("status", ("status",)),
            Field("daily_budget", ("daily_budget",)),
            Field("lifetime_budget", ("lifetime_budget",)),
            Field("bid_strategy", ("bid_strategy",)),
            Field("spend_cap", ("spend_cap",)),
            Field("special_ad_categories", ("special_ad_categories",), content_type="application/json"),
            Field("special_ad_category_country", ("special_ad_category_country",), content_type="application/json"),
            Field("start_time", ("start_time",)),
            Field("stop_time", ("stop_time",)),
        ),
        required=True,
    ),
    security=(("token",),),
)
COPY_CAMPAIGN = Operation(
    "POST",
    "/{campaign_id}/copies",
    parameters=(Parameter("campaign_id", "path", "campaign_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
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
LIST_BUDGET_SCHEDULES = Operation(
    "GET",
    "/{campaign_id}/budget_schedules",
    parameters=(
        Parameter("campaign_id", "path", "campaign_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)


async def list_campaigns(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    effective_status: list[Literal["ACTIVE", "PAUSED", "IN_PROCESS", "WITH_ISSUES", "ARCHIVED", "DELETED"]]
    | Unset = UNSET,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the campaigns of an ad account.

    GET /{ad_account_id}/campaigns

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        effective_status: Only campaigns in these states
        filtering: Only what meets all of these conditions
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_CAMPAIGNS,
        {
            "ad_account_id": ad_account_id,
            "effective_status": effective_status,
            "filtering": filtering,
            "fields": [
                "id",
                "name",
                "objective",
                "effective_status",
                "daily_budget",
                "lifetime_budget",
                "bid_strategy",
                "start_time",
                "stop_time",
            ]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def create_campaign(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    name: str,
    objective: Literal[
        "OUTCOME_SALES",
        "OUTCOME_LEADS",
        "OUTCOME_TRAFFIC",
        "OUTCOME_ENGAGEMENT",
        "OUTCOME_AWARENESS",
        "OUTCOME_APP_PROMOTION",
    ],
    special_ad_categories: list[
        Literal[
            "NONE",
            "HOUSING",
            "EMPLOYMENT",
            "CREDIT",
            "FINANCIAL_PRODUCTS_SERVICES",
            "ISSUES_ELECTIONS_POLITICS",
            "ONLINE_GAMBLING_AND_GAMING",
        ]
    ],
    special_ad_category_country: list[str] | Unset = UNSET,
    daily_budget: int | Unset = UNSET,
    lifetime_budget: int | Unset = UNSET,
    bid_strategy: Literal[
        "LOWEST_COST_WITHOUT_CAP", "LOWEST_COST_WITH_BID_CAP", "COST_CAP", "LOWEST_COST_WITH_MIN_ROAS"
    ]
    | Unset = UNSET,
    spend_cap: int | Unset = UNSET,
    is_adset_budget_sharing_enabled: bool | Unset = UNSET,
    buying_type: Literal["AUCTION", "RESERVED"] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    stop_time: str | Unset = UNSET,
) -> ToolResult:
    """Create a campaign, paused.

    POST /{ad_account_id}/campaigns

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        name: What people see in Ads Manager
        objective: What the campaign is for; it cannot be changed later
        special_ad_categories: Regulated topics, [] for none. The advertiser is liable for saying so rightly
        special_ad_category_country: Two-letter countries that a special category holds for
        daily_budget: Budget for a day in minor units: 5000 is 50.00 USD. Not with lifetime_budget
        lifetime_budget: Budget for the whole time in minor units; ad sets then need an end_time
        bid_strategy: How Meta bids; all but the first need a bid_amount or a floor of ROAS
        spend_cap: The most that the campaign may ever spend, in minor units
        is_adset_budget_sharing_enabled: With budgets on ad sets: whether these may lend each other up to 20
            %. Meta asks for it when the campaign has no budget
        buying_type: AUCTION unless reach was reserved
        start_time: Beginning, ISO 8601 with offset
        stop_time: End, ISO 8601 with offset
    """
    return await api.send(
        CREATE_CAMPAIGN,
        {
            "ad_account_id": ad_account_id,
            "name": name,
            "objective": objective,
            "special_ad_categories": special_ad_categories,
            "special_ad_category_country": special_ad_category_country,
            "daily_budget": daily_budget,
            "lifetime_budget": lifetime_budget,
            "bid_strategy": bid_strategy,
            "spend_cap": spend_cap,
            "is_adset_budget_sharing_enabled": is_adset_budget_sharing_enabled,
            "buying_type": buying_type,
            "start_time": start_time,
            "stop_time": stop_time,
            "status": "PAUSED",
        },
    )


async def get_campaign(api: Upstream, /, *, campaign_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """Get one campaign.

    GET /{campaign_id}

    Args:
        api: the connection that the tools share.
        campaign_id: The campaign, digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        GET_CAMPAIGN,
        {
            "campaign_id": campaign_id,
            "fields": [
                "id",
                "name",
                "objective",
                "status",
                "effective_status",
                "daily_budget",
                "lifetime_budget",
                "budget_remaining",
                "bid_strategy",
                "spend_cap",
                "special_ad_categories",
                "start_time",
                "stop_time",
                "issues_info",
            ]
            if fields is UNSET
            else fields,
        },
    )


async def update_campaign(
    api: Upstream,
    /,
    *,
    campaign_id: str,
    name: str | Unset = UNSET,
    bid_strategy: Literal[
        "LOWEST_COST_WITHOUT_CAP", "LOWEST_COST_WITH_BID_CAP", "COST_CAP", "LOWEST_COST_WITH_MIN_ROAS"
    ]
    | Unset = UNSET,
    spend_cap: int | Unset = UNSET,
    special_ad_categories: list[
        Literal[
            "NONE",
            "HOUSING",
            "EMPLOYMENT",
            "CREDIT",
            "FINANCIAL_PRODUCTS_SERVICES",
            "ISSUES_ELECTIONS_POLITICS",
            "ONLINE_GAMBLING_AND_GAMING",
        ]
    ]
    | Unset = UNSET,
    special_ad_category_country: list[str] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    stop_time: str | Unset = UNSET,
) -> ToolResult:
    """Change settings of a campaign.

    POST /{campaign_id}

    Args:
        api: the connection that the tools share.
        campaign_id: The campaign, digits
        name: New name
        bid_strategy: How Meta bids; all but the first need a bid_amount or a floor of ROAS
        spend_cap: The most that the campaign may ever spend, in minor units
        special_ad_categories: Regulated topics, [] for none. The advertiser is liable for saying so rightly
        special_ad_category_country: Two-letter countries that a special category holds for
        start_time: Beginning, ISO 8601 with offset
        stop_time: End, ISO 8601 with offset
    """
    return await api.send(
        UPDATE_CAMPAIGN,
        {
            "campaign_id": campaign_id,
            "name": name,
            "bid_strategy": bid_strategy,
            "spend_cap": spend_cap,
            "special_ad_categories": special_ad_categories,
            "special_ad_category_country": special_ad_category_country,
            "start_time": start_time,
            "stop_time": stop_time,
        },
    )


async def copy_campaign(
    api: Upstream,
    /,
    *,
    campaign_id: str,
    deep_copy: bool | Unset = UNSET,
    rename_options: dict[str, Any] | Unset = UNSET,
    start_time: str | Unset = UNSET,
    end_time: str | Unset = UNSET,
) -> ToolResult:
    """Copy a campaign, paused.

    POST /{campaign_id}/copies

    Args:
        api: the connection that the tools share.
        campaign_id: The campaign, digits
        deep_copy: Whether ad sets and ads are copied
        rename_options: What is added to the names
        start_time: Beginning of the copied ad sets, ISO 8601
        end_time: End of the copied ad sets, ISO 8601
    """
    return await api.send(
        COPY_CAMPAIGN,
        {
            "campaign_id": campaign_id,
            "deep_copy": deep_copy,
            "rename_options": rename_options,
            "start_time": start_time,
            "end_time": end_time,
            "status_option": "PAUSED",
        },
    )


async def list_budget_schedules(api: Upstream, /, *, campaign_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """List the planned budget increases of a campaign.

    GET /{campaign_id}/budget_schedules

    Args:
        api: the connection that the tools share.
        campaign_id: The campaign, digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        LIST_BUDGET_SCHEDULES,
        {
            "campaign_id": campaign_id,
            "fields": ["id", "budget_value", "budget_value_type", "time_start", "time_end"]
            if fields is UNSET
            else fields,
        },
    )
