"""Creatives.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_AD_CREATIVES = Operation(
    "GET",
    "/{ad_account_id}/adcreatives",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
CREATE_AD_CREATIVE = Operation(
    "POST",
    "/{ad_account_id}/adcreatives",
    parameters=(Parameter("ad_account_id", "path", "ad_account_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("name", ("name",)),
            Field("object_story_spec", ("object_story_spec",), content_type="application/json"),
            Field("object_story_id", ("object_story_id",)),
            Field("asset_feed_spec", ("asset_feed_spec",), content_type="application/json"),
            Field("url_tags", ("url_tags",)),
            Field("degrees_of_freedom_spec", ("degrees_of_freedom_spec",), content_type="application/json"),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_AD_CREATIVE = Operation(
    "GET",
    "/{creative_id}",
    parameters=(
        Parameter("creative_id", "path", "creative_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
    ),
    security=(("token",),),
)
PREVIEW_CREATIVE = Operation(
    "GET",
    "/{ad_account_id}/generatepreviews",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("creative", "query", "creative", content_type="application/json"),
        Parameter("ad_format", "query", "ad_format"),
    ),
    security=(("token",),),
)
LIST_AD_IMAGES = Operation(
    "GET",
    "/{ad_account_id}/adimages",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("hashes", "query", "hashes", content_type="application/json"),
        Parameter("name", "query", "name"),
        Parameter("minwidth", "query", "minwidth"),
        Parameter("minheight", "query", "minheight"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
UPLOAD_AD_IMAGE = Operation(
    "POST",
    "/{ad_account_id}/adimages",
    parameters=(Parameter("ad_account_id", "path", "ad_account_id"),),
    body=Body(
        "application/x-www-form-urlencoded", (Field("bytes", ("bytes",)), Field("name", ("name",))), required=True
    ),
    security=(("token",),),
)
LIST_AD_VIDEOS = Operation(
    "GET",
    "/{ad_account_id}/advideos",
    parameters=(
        Parameter("ad_account_id", "path", "ad_account_id"),
        Parameter("title", "query", "title"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)


async def list_ad_creatives(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the creatives of an ad account.

    GET /{ad_account_id}/adcreatives

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_AD_CREATIVES,
        {
            "ad_account_id": ad_account_id,
            "fields": ["id", "name", "status", "title", "body", "thumbnail_url", "effective_object_story_id"]
            if fields is UNSET
            else fields,
            "limit": limit,
            "after": after,
        },
    )


async def create_ad_creative(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    name: str | Unset = UNSET,
    object_story_spec: dict[str, Any] | Unset = UNSET,
    object_story_id: str | Unset = UNSET,
    asset_feed_spec: dict[str, Any] | Unset = UNSET,
    url_tags: str | Unset = UNSET,
    degrees_of_freedom_spec: dict[str, Any] | Unset = UNSET,
) -> ToolResult:
    """Create a creative.

    POST /{ad_account_id}/adcreatives

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        name: Name in the library
        object_story_spec: A new post that is shown as an ad only
        object_story_id: An existing post, PAGEID_POSTID
        asset_feed_spec: Several texts, titles, images and links that Meta combines
        url_tags: Query that is added to links
        degrees_of_freedom_spec: Which Advantage+ enhancements Meta may make
    """
    return await api.send(
        CREATE_AD_CREATIVE,
        {
            "ad_account_id": ad_account_id,
            "name": name,
            "object_story_spec": object_story_spec,
            "object_story_id": object_story_id,
            "asset_feed_spec": asset_feed_spec,
            "url_tags": url_tags,
            "degrees_of_freedom_spec": degrees_of_freedom_spec,
        },
    )


async def get_ad_creative(api: Upstream, /, *, creative_id: str, fields: list[str] | Unset = UNSET) -> ToolResult:
    """Get one creative.

    GET /{creative_id}

    Args:
        api: the connection that the tools share.
        creative_id: The creative, digits
        fields: Which fields to return; others of the object may be named, too
    """
    return await api.send(
        GET_AD_CREATIVE,
        {
            "creative_id": creative_id,
            "fields": [
                "id",
                "name",
                "status",
                "title",
                "body",
                "link_url",
                "image_hash",
                "image_url",
                "call_to_action_type",
                "object_story_spec",
                "asset_feed_spec",
                "url_tags",
            ]
            if fields is UNSET
            else fields,
        },
    )


async def preview_creative(
    api: Upstream, /, *, ad_account_id: str, creative: dict[str, Any], ad_format: str
) -> ToolResult:
    """Preview a creative before there is an ad.

    GET /{ad_account_id}/generatepreviews

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        creative: An existing creative, {"creative_id": "…"}, or the whole of a new one with object_story_spec
        ad_format: The placement to show
    """
    return await api.send(
        PREVIEW_CREATIVE, {"ad_account_id": ad_account_id, "creative": creative, "ad_format": ad_format}
    )


async def list_ad_images(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    hashes: list[str] | Unset = UNSET,
    name: str | Unset = UNSET,
    minwidth: int | Unset = UNSET,
    minheight: int | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the images of an ad account.

    GET /{ad_account_id}/adimages

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        hashes: Only these images
        name: Only images with this in their name
        minwidth: Least width in pixels
        minheight: Least height in pixels
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_AD_IMAGES,
        {
            "ad_account_id": ad_account_id,
            "hashes": hashes,
            "name": name,
            "minwidth": minwidth,
            "minheight": minheight,
            "fields": ["hash", "name", "url", "width", "height", "status"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )


async def upload_ad_image(api: Upstream, /, *, ad_account_id: str, bytes: str, name: str | Unset = UNSET) -> ToolResult:
    """Upload an image.

    POST /{ad_account_id}/adimages

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        bytes: The file in base64, without a data: prefix
        name: Name in the library
    """
    return await api.send(UPLOAD_AD_IMAGE, {"ad_account_id": ad_account_id, "bytes": bytes, "name": name})


async def list_ad_videos(
    api: Upstream,
    /,
    *,
    ad_account_id: str,
    title: str | Unset = UNSET,
    fields: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """List the videos of an ad account.

    GET /{ad_account_id}/advideos

    Args:
        api: the connection that the tools share.
        ad_account_id: The ad account, act_ and digits
        title: Only videos with this in their title
        fields: Which fields to return; others of the object may be named, too
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        LIST_AD_VIDEOS,
        {
            "ad_account_id": ad_account_id,
            "title": title,
            "fields": ["id", "title", "length", "picture", "created_time"] if fields is UNSET else fields,
            "limit": limit,
            "after": after,
        },
    )
