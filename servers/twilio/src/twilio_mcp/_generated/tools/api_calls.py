"""Phone calls.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_CALLS = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Calls.json",
    parameters=(
        Parameter("AccountSid", "path", "AccountSid"),
        Parameter("To", "query", "To"),
        Parameter("From", "query", "From"),
        Parameter("Status", "query", "Status"),
        Parameter("start_time", "query", "StartTime>"),
        Parameter("PageSize", "query", "PageSize"),
        Parameter("PageToken", "query", "PageToken"),
    ),
    security=(("basic",),),
    server="api",
)
MAKE_CALL = Operation(
    "POST",
    "/2010-04-01/Accounts/{AccountSid}/Calls.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("To", ("To",)),
            Field("From", ("From",)),
            Field("Twiml", ("Twiml",)),
            Field("Url", ("Url",)),
            Field("Timeout", ("Timeout",)),
            Field("Record", ("Record",)),
            Field("MachineDetection", ("MachineDetection",)),
        ),
        required=True,
    ),
    security=(("basic",),),
    server="api",
)
GET_CALL = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Calls/{Sid}.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"), Parameter("Sid", "path", "Sid")),
    security=(("basic",),),
    server="api",
)
END_CALL = Operation(
    "POST",
    "/2010-04-01/Accounts/{AccountSid}/Calls/{Sid}.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"), Parameter("Sid", "path", "Sid")),
    body=Body("application/x-www-form-urlencoded", (Field("Status", ("Status",)),), required=True),
    security=(("basic",),),
    server="api",
)


async def list_calls(
    api: Upstream,
    /,
    *,
    AccountSid: str | Unset = UNSET,
    To: str | Unset = UNSET,
    From: str | Unset = UNSET,
    Status: Literal["queued", "ringing", "in-progress", "canceled", "completed", "failed", "busy", "no-answer"]
    | Unset = UNSET,
    start_time: str | Unset = UNSET,
    PageSize: int | Unset = UNSET,
    PageToken: str | Unset = UNSET,
) -> ToolResult:
    """List calls.

    GET /2010-04-01/Accounts/{AccountSid}/Calls.json

    Args:
        api: the connection that the tools share.
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        To: Only those to this number
        From: Only those from this number
        Status: Only those in this state
        start_time: Only those that began on this day or later
        PageSize: Rows on one page
        PageToken: The token in next_page_uri of the page before
    """
    return await api.send(
        LIST_CALLS,
        {
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "To": To,
            "From": From,
            "Status": Status,
            "start_time": start_time,
            "PageSize": PageSize,
            "PageToken": PageToken,
        },
    )


async def make_call(
    api: Upstream,
    /,
    *,
    To: str,
    From: str,
    AccountSid: str | Unset = UNSET,
    Twiml: str | Unset = UNSET,
    Url: str | Unset = UNSET,
    Timeout: int | Unset = UNSET,
    Record: bool | Unset = UNSET,
    MachineDetection: Literal["Enable", "DetectMessageEnd"] | Unset = UNSET,
) -> ToolResult:
    """Make a call.

    POST /2010-04-01/Accounts/{AccountSid}/Calls.json

    Args:
        api: the connection that the tools share.
        To: Who is called
        From: A number of the account
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        Twiml: What happens in the call; or give Url
        Url: Where Twilio asks for the TwiML
        Timeout: Seconds that it may ring
        Record: Record the call; many countries want consent
        MachineDetection: Whether a person or a machine answered
    """
    return await api.send(
        MAKE_CALL,
        {
            "To": To,
            "From": From,
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "Twiml": Twiml,
            "Url": Url,
            "Timeout": Timeout,
            "Record": Record,
            "MachineDetection": MachineDetection,
        },
    )


async def get_call(api: Upstream, /, *, Sid: str, AccountSid: str | Unset = UNSET) -> ToolResult:
    """Look up one call.

    GET /2010-04-01/Accounts/{AccountSid}/Calls/{Sid}.json

    Args:
        api: the connection that the tools share.
        Sid: The call
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
    """
    return await api.send(GET_CALL, {"Sid": Sid, "AccountSid": "own" if AccountSid is UNSET else AccountSid})


async def end_call(
    api: Upstream, /, *, Sid: str, Status: Literal["canceled", "completed"], AccountSid: str | Unset = UNSET
) -> ToolResult:
    """End a call.

    POST /2010-04-01/Accounts/{AccountSid}/Calls/{Sid}.json

    Args:
        api: the connection that the tools share.
        Sid: The call
        Status: How it is ended
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
    """
    return await api.send(
        END_CALL, {"Sid": Sid, "Status": Status, "AccountSid": "own" if AccountSid is UNSET else AccountSid}
    )
