"""Ads and their previews.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_ADS = Operation(
    "GET",
    "/{parent_id}/ads",
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
CREATE_AD = Operation(
    "POST",
    "/{parent_id}/ads",
    parameters=(Parameter("ad_account_id", "path", "parent_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("adset_id", ("adset_id",)),
            Field("creative", ("creative",), content_type="application/json"),
            Field("status", ("status",)),
            Field("conversion_domain", ("conversion_domain",)),
            Field("tracking_specs", ("tracking_specs",), content_type="application/json"),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_AD = Operation(
    "GET",
    "/{ad_id}",
    parameters=(
        Parameter("ad_id", "path", "ad_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)
UPDATE_AD = Operation(
    "POST",
    "/{ad_id}",
    parameters=(Parameter("ad_id", "path", "ad_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("status", ("status",)),
            Field("creative", ("creative",), content_type="application/json"),
            Field("conversion_domain", ("conversion_domain",)),
        ),
        required=True,
    ),
    security=(("token",),),
)
COPY_AD = Operation(
    "POST",
    "/{ad_id}/copies",
    parameters=(Parameter("ad_id", "path", "ad_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("adset_id", ("adset_id",)),
            Field("status_option", ("status_option",)),
            Field("rename_options", ("rename_options",), content_type="application/json"),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_AD_PREVIEWS = Operation(
    "GET",
    "/{ad_id}/previews",
    parameters=(
        Parameter("ad_id", "path", "ad_id"),
        Parameter("ad_format", "query", "ad_format"),
        Parameter("locale", "query", "locale"),
    ),
    security=(("token",),),
)
LIST_LEADS = Operation(
    "GET",
    "/{ad_id}/leads",
    parameters=(
        Parameter("ad_id", "path", "ad_id"),
        Parameter("filtering", "query", "filtering", content_type="application/json"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)


async def list_ads(
    api: Upstream,
    /,
    *,
    parent_id: str,
    effective_status: list[
        Literal[
            "ACTIVE",
            "PAUSED",
            "ADSET_PAUSED",
            "CAMPAIGN_PAUSED",
            "PENDING_REVIEW",
            "DISAPPROVED",
            "PREAPPROVED",
            "PENDING_BILLING_INFO",
            "IN_PROCESS",
            "WITH_ISSUES",
            "ARCHIVED",
            "DELETED",
        ]
    ]
    | Unset = UNSET,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the ads of an ad account, a campaign or an ad set.

    GET /{parent_id}/ads

    Args:
        api: the connection that the tools share.
        parent_id: An ad account (act_…), a campaign id or an ad set id
        effective_status: Only ads in these states
        filtering: Only what meets all of these conditions
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_ADS,
        {
            "parent_id": parent_id,
            "effective_status": effective_status,
            "filtering": filtering,
            "fields": ["id", "name", "adset_id", "campaign_id", "effective_status", "creative"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def create_ad(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    name: str,
    adset_id: str,
    creative: dict[str, Any],
    conversion_domain: str | Unset = UNSET,
    tracking_specs: list[dict[str, Any]] | Unset = UNSET,
) -> ToolResult:
    """Create an ad from an existing creative, paused.

    POST /{parent_id}/ads

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_…
        name: What people see in Ads Manager
        adset_id: The ad set that it belongs to
        creative: The creative: {"creative_id": "…"}
        conversion_domain: Domain where conversions happen, without path
        tracking_specs: What is tracked besides
    """
    return await api.send(
        CREATE_AD,
        {
            "ad_account_id": ad_account_id,
            "name": name,
            "adset_id": adset_id,
            "creative": creative,
            "conversion_domain": conversion_domain,
            "tracking_specs": tracking_specs,
            "status": "PAUSED",
        },
    )


async def get_ad(api: Upstream, /, *, ad_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """Get one ad.

    GET /{ad_id}

    Args:
        api: the connection that the tools share.
        ad_id: The ad, digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        GET_AD,
        {
            "ad_id": ad_id,
            "fields": [
                "id",
                "name",
                "adset_id",
                "campaign_id",
                "status",
                "effective_status",
                "creative",
                "ad_review_feedback",
                "issues_info",
                "preview_shareable_link",
            ]
            if fields is UNSET
            else fields,
        },
    )


async def update_ad(
    api: Upstream,
    /,
    *,
    ad_id: str,
    name: str | Unset = UNSET,
    creative: dict[str, Any] | Unset = UNSET,
    conversion_domain: str | Unset = UNSET,
) -> ToolResult:
    """Change the name or creative of an ad.

    POST /{ad_id}

    Args:
        api: the connection that the tools share.
        ad_id: The ad, digits
        name: New name
        creative: Another creative: {"creative_id": "…"}
        conversion_domain: Domain where conversions happen, without path
    """
    return await api.send(
        UPDATE_AD, {"ad_id": ad_id, "name": name, "creative": creative, "conversion_domain": conversion_domain}
    )


async def copy_ad(
    api: Upstream, /, *, ad_id: str, adset_id: str | Unset = UNSET, rename_options: dict[str, Any] | Unset = UNSET
) -> ToolResult:
    """Copy an ad, paused.

    POST /{ad_id}/copies

    Args:
        api: the connection that the tools share.
        ad_id: The ad, digits
        adset_id: Another ad set to copy it into
        rename_options: What is added to the names
    """
    return await api.send(
        COPY_AD, {"ad_id": ad_id, "adset_id": adset_id, "rename_options": rename_options, "status_option": "PAUSED"}
    )


async def get_ad_previews(api: Upstream, /, *, ad_id: str, ad_format: str, locale: str | Unset = UNSET) -> ToolResult:
    """Preview an ad as people see it.

    GET /{ad_id}/previews

    Args:
        api: the connection that the tools share.
        ad_id: The ad, digits
        ad_format: The placement to show
        locale: Language of the frame around the ad
    """
    return await api.send(GET_AD_PREVIEWS, {"ad_id": ad_id, "ad_format": ad_format, "locale": locale})


async def list_leads(
    api: Upstream,
    /,
    *,
    ad_id: str,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the leads that an ad collected by an instant form.

    GET /{ad_id}/leads

    Args:
        api: the connection that the tools share.
        ad_id: The ad, digits
        filtering: Only what meets all of these conditions
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_LEADS,
        {
            "ad_id": ad_id,
            "filtering": filtering,
            "fields": ["id", "created_time", "form_id", "field_data"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )
