"""Ad accounts and what belongs to them.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Paging, Parameter, Unset, Upstream

LIST_AD_ACCOUNTS = Operation(
    "GET",
    "/me/adaccounts",
    parameters=(
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
LIST_OWNED_AD_ACCOUNTS = Operation(
    "GET",
    "/{business_id}/owned_ad_accounts",
    parameters=(
        Parameter("business_id", "path", "business_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
LIST_CLIENT_AD_ACCOUNTS = Operation(
    "GET",
    "/{business_id}/client_ad_accounts",
    parameters=(
        Parameter("business_id", "path", "business_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
GET_AD_ACCOUNT = Operation(
    "GET",
    "/{ad_account_id}",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)
LIST_ACTIVITIES = Operation(
    "GET",
    "/{ad_account_id}/activities",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("oid", "query", "oid"),
        Parameter("category", "query", "category"),
        Parameter("since", "query", "since"),
        Parameter("until", "query", "until"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
LIST_MINIMUM_BUDGETS = Operation(
    "GET",
    "/{ad_account_id}/minimum_budgets",
    parameters=(Parameter("ad_account_id", "path", "ad_account_id"), Parameter("bid_amount", "query", "bid_amount")),
    security=(("token",),),
)
LIST_PROMOTE_PAGES = Operation(
    "GET",
    "/{ad_account_id}/promote_pages",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
LIST_PIXELS = Operation(
    "GET",
    "/{ad_account_id}/adspixels",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)


async def list_ad_accounts(
    api: Upstream, /, *, fields: list[str] | Unset = UNSET, limit: int | Unset = UNSET, after: str | Unset = UNSET
) -> ToolResult:
    """List the ad accounts that the token can use.

    GET /me/adaccounts

    Args:
        api: the connection that the tools share.
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_AD_ACCOUNTS,
        {
            "fields": ["id", "name", "currency", "timezone_name", "account_status", "amount_spent"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def list_owned_ad_accounts(
    api: Upstream,
    /,
    *,
    business_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the ad accounts that a business owns.

    GET /{business_id}/owned_ad_accounts

    Args:
        api: the connection that the tools share.
        business_id: The business (portfolio), digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_OWNED_AD_ACCOUNTS,
        {
            "business_id": business_id,
            "fields": ["id", "name", "currency", "timezone_name", "account_status", "amount_spent"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def list_client_ad_accounts(
    api: Upstream,
    /,
    *,
    business_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the ad accounts that clients share with a business.

    GET /{business_id}/client_ad_accounts

    Args:
        api: the connection that the tools share.
        business_id: The business (portfolio), digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_CLIENT_AD_ACCOUNTS,
        {
            "business_id": business_id,
            "fields": ["id", "name", "currency", "timezone_name", "account_status", "amount_spent"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def get_ad_account(api: Upstream, /, *, ad_account_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """Get one ad account.

    GET /{ad_account_id}

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        GET_AD_ACCOUNT,
        {
            "ad_account_id": ad_account_id,
            "fields": [
                "id",
                "name",
                "currency",
                "timezone_name",
                "account_status",
                "disable_reason",
                "amount_spent",
                "spend_cap",
                "balance",
                "business",
            ]
            if fields is UNSET
            else fields,
        },
    )


async def list_activities(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    oid: str | Unset = UNSET,
    category: Literal[
        "ACCOUNT", "AD", "AD_KEYWORDS", "AD_SET", "AUDIENCE", "BID", "BUDGET", "CAMPAIGN", "DATE", "STATUS", "TARGETING"
    ]
    | Unset = UNSET,
    since: str | Unset = UNSET,
    until: str | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """See who changed a budget, bid, audience or state, and when.

    GET /{ad_account_id}/activities

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        oid: Only changes of this campaign, ad set or ad
        category: Only changes of this kind
        since: First day, YYYY-MM-DD
        until: Last day, YYYY-MM-DD
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_ACTIVITIES,
        {
            "ad_account_id": ad_account_id,
            "oid": oid,
            "category": category,
            "since": since,
            "until": until,
            "fields": ["event_time", "translated_event_type", "actor_name", "object_id", "object_name", "extra_data"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def list_minimum_budgets(api: Upstream, /, *, ad_account_id: str, bid_amount: int | Unset = UNSET) -> ToolResult:
    """List the lowest daily budgets by currency.

    GET /{ad_account_id}/minimum_budgets

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        bid_amount: A bid in minor units, for minimums under a manual bid
    """
    return await api.send(LIST_MINIMUM_BUDGETS, {"ad_account_id": ad_account_id, "bid_amount": bid_amount})


async def list_promote_pages(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the Facebook pages that an ad account can advertise for.

    GET /{ad_account_id}/promote_pages

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_PROMOTE_PAGES,
        {
            "ad_account_id": ad_account_id,
            "fields": ["id", "name"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )


async def list_pixels(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the pixels (datasets) of an ad account.

    GET /{ad_account_id}/adspixels

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_PIXELS,
        {
            "ad_account_id": ad_account_id,
            "fields": ["id", "name", "last_fired_time"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )
