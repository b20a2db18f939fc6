"""Codes that prove a number or address.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_VERIFY_SERVICES = Operation(
    "GET",
    "/v2/Services",
    parameters=(Parameter("PageSize", "query", "PageSize"), Parameter("PageToken", "query", "PageToken")),
    security=(("basic",),),
    server="verify",
    paging=Paging(
        "cursor", "PageToken", next=("meta", "next_page_url"), items=("services",), size="PageSize", limit=50
    ),
)
SEND_CODE = Operation(
    "POST",
    "/v2/Services/{ServiceSid}/Verifications",
    parameters=(Parameter("ServiceSid", "path", "ServiceSid"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (Field("To", ("To",)), Field("Channel", ("Channel",)), Field("Locale", ("Locale",))),
        required=True,
    ),
    security=(("basic",),),
    server="verify",
)
CHECK_CODE = Operation(
    "POST",
    "/v2/Services/{ServiceSid}/VerificationCheck",
    parameters=(Parameter("ServiceSid", "path", "ServiceSid"),),
    body=Body("application/x-www-form-urlencoded", (Field("To", ("To",)), Field("Code", ("Code",))), required=True),
    security=(("basic",),),
    server="verify",
)


async def list_verify_services(
    api: Upstream, /, *, PageSize: int | Unset = UNSET, PageToken: str | Unset = UNSET
) -> ToolResult:
    """List verify services.

    GET /v2/Services

    Args:
        api: the connection that the tools share.
        PageSize: Rows on one page
        PageToken: The token in next_page_url of the page before
    """
    return await api.send(LIST_VERIFY_SERVICES, {"PageSize": PageSize, "PageToken": PageToken})


async def send_code(
    api: Upstream,
    /,
    *,
    ServiceSid: str,
    To: str,
    Channel: Literal["sms", "call", "email", "whatsapp"],
    Locale: str | Unset = UNSET,
) -> ToolResult:
    """Send a code.

    POST /v2/Services/{ServiceSid}/Verifications

    Args:
        api: the connection that the tools share.
        ServiceSid: The verify service
        To: Who gets it
        Channel: How
        Locale: The language of the text
    """
    return await api.send(SEND_CODE, {"ServiceSid": ServiceSid, "To": To, "Channel": Channel, "Locale": Locale})


async def check_code(api: Upstream, /, *, ServiceSid: str, To: str, Code: str) -> ToolResult:
    """Check a code.

    POST /v2/Services/{ServiceSid}/VerificationCheck

    Args:
        api: the connection that the tools share.
        ServiceSid: The verify service
        To: Who got it
        Code: What the person typed
    """
    return await api.send(CHECK_CODE, {"ServiceSid": ServiceSid, "To": To, "Code": Code})
