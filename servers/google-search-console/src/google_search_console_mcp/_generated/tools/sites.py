"""Properties that the account can see.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import Operation, Parameter, Upstream

LIST_SITES = Operation(
    "GET",
    "/webmasters/v3/sites",
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
)
GET_SITE = Operation(
    "GET",
    "/webmasters/v3/sites/{siteUrl}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"),),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
)
ADD_SITE = Operation(
    "PUT",
    "/webmasters/v3/sites/{siteUrl}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"),),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters",)),),
)
REMOVE_SITE = Operation(
    "DELETE",
    "/webmasters/v3/sites/{siteUrl}",
    parameters=(Parameter("siteUrl", "path", "siteUrl"),),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters",)),),
)


async def list_sites(api: Upstream, /) -> ToolResult:
    """List the properties that the account can see.

    GET /webmasters/v3/sites
    """
    return await api.send(LIST_SITES, {})


async def get_site(api: Upstream, /, *, siteUrl: str) -> ToolResult:
    """Look up one property.

    GET /webmasters/v3/sites/{siteUrl}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
    """
    return await api.send(GET_SITE, {"siteUrl": siteUrl})


async def add_site(api: Upstream, /, *, siteUrl: str) -> ToolResult:
    """Add a property to the account.

    PUT /webmasters/v3/sites/{siteUrl}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
    """
    return await api.send(ADD_SITE, {"siteUrl": siteUrl})


async def remove_site(api: Upstream, /, *, siteUrl: str) -> ToolResult:
    """Remove a property from the account.

    DELETE /webmasters/v3/sites/{siteUrl}

    Args:
        api: the connection that the tools share.
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
    """
    return await api.send(REMOVE_SITE, {"siteUrl": siteUrl})
