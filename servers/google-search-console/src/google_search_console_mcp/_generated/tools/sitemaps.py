"""Sitemaps that were submitted.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

LIST_SITEMAPS = Operation(
    "GET",
    "/webmasters/v3/sites/{siteUrl}/sitemaps",
    parameters=(Parameter("siteUrl", "path", "siteUrl"), Parameter("sitemapIndex", "query", "sitemapIndex")),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
)
GET_SITEMAP = Operation(
    "GET",
    "/webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"), Parameter("feedpath", "path", "feedpath")),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
)
SUBMIT_SITEMAP = Operation(
    "PUT",
    "/webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"), Parameter("feedpath", "path", "feedpath")),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters",)),),
)
DELETE_SITEMAP = Operation(
    "DELETE",
    "/webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"), Parameter("feedpath", "path", "feedpath")),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters",)),),
)


async def list_sitemaps(api: Upstream, /, *, siteUrl: str, sitemapIndex: str | Unset = UNSET) -> ToolResult:
    """List the sitemaps of a property.

    GET /webmasters/v3/sites/{siteUrl}/sitemaps

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        sitemapIndex: Only the sitemaps that this index names
    """
    return await api.send(LIST_SITEMAPS, {"siteUrl": siteUrl, "sitemapIndex": sitemapIndex})


async def get_sitemap(api: Upstream, /, *, siteUrl: str, feedpath: str) -> ToolResult:
    """Look up one sitemap.

    GET /webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        feedpath: The whole URL of the sitemap
    """
    return await api.send(GET_SITEMAP, {"siteUrl": siteUrl, "feedpath": feedpath})


async def submit_sitemap(api: Upstream, /, *, siteUrl: str, feedpath: str) -> ToolResult:
    """Submit a sitemap.

    PUT /webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        feedpath: The whole URL of the sitemap
    """
    return await api.send(SUBMIT_SITEMAP, {"siteUrl": siteUrl, "feedpath": feedpath})


async def delete_sitemap(api: Upstream, /, *, siteUrl: str, feedpath: str) -> ToolResult:
    """Delete a sitemap from the report.

    DELETE /webmasters/v3/sites/{siteUrl}/sitemaps/{feedpath}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        feedpath: The whole URL of the sitemap
    """
    return await api.send(DELETE_SITEMAP, {"siteUrl": siteUrl, "feedpath": feedpath})
