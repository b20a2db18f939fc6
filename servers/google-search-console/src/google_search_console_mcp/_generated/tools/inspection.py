"""What Google knows of one page.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Unset, Upstream

INSPECT_URL = Operation(
    "POST",
    "/v1/urlInspection/index:inspect",
    body=Body(
        "application/json",
        (
            Field("inspectionUrl", ("inspectionUrl",)),
            Field("siteUrl", ("siteUrl",)),
            Field("languageCode", ("languageCode",)),
        ),
        required=True,
    ),
    security=(("google",),),
    scopes=(("google", ("https://www.googleapis.com/auth/webmasters.readonly",)),),
)


async def inspect_url(
    api: Upstream, /, *, inspectionUrl: str, siteUrl: str, languageCode: str | Unset = UNSET
) -> ToolResult:
    """Inspect one page in Google's index.

    POST /v1/urlInspection/index:inspect

    Args:
        api: the connection that the tools share.
        inspectionUrl: The page; it must be below the property
        siteUrl: The property, exactly as it is listed: `sc-domain:example.com` or `https://www.example.com/`
        languageCode: Language of messages about issues, as BCP 47 has it
    """
    return await api.send(
        INSPECT_URL, {"inspectionUrl": inspectionUrl, "siteUrl": siteUrl, "languageCode": languageCode}
    )
