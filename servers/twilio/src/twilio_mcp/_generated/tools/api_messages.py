"""Texts (SMS.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_MESSAGES = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Messages.json",
    parameters=(
        Parameter("AccountSid", "path", "AccountSid"),
        Parameter("To", "query", "To"),
        Parameter("From", "query", "From"),
        Parameter("DateSent", "query", "DateSent"),
        Parameter("DateSentSince", "query", "DateSent>"),
        Parameter("DateSentUntil", "query", "DateSent<"),
        Parameter("PageSize", "query", "PageSize"),
        Parameter("PageToken", "query", "PageToken"),
    ),
    security=(("basic",),),
    server="api",
)
SEND_MESSAGE = Operation(
    "POST",
    "/2010-04-01/Accounts/{AccountSid}/Messages.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("To", ("To",)),
            Field("From", ("From",)),
            Field("MessagingServiceSid", ("MessagingServiceSid",)),
            Field("Body", ("Body",)),
            Field("MediaUrl", ("MediaUrl",)),
            Field("StatusCallback", ("StatusCallback",)),
            Field("ValidityPeriod", ("ValidityPeriod",)),
            Field("SendAt", ("SendAt",)),
            Field("ScheduleType", ("ScheduleType",)),
        ),
        required=True,
    ),
    security=(("basic",),),
    server="api",
)
GET_MESSAGE = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"), Parameter("Sid", "path", "Sid")),
    security=(("basic",),),
    server="api",
)
REDACT_OR_CANCEL_MESSAGE = Operation(
    "POST",
    "/2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"), Parameter("Sid", "path", "Sid")),
    body=Body(
        "application/x-www-form-urlencoded", (Field("Body", ("Body",)), Field("Status", ("Status",))), required=True
    ),
    security=(("basic",),),
    server="api",
)
DELETE_MESSAGE = Operation(
    "DELETE",
    "/2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"), Parameter("Sid", "path", "Sid")),
    security=(("basic",),),
    server="api",
)


async def list_messages(
    api: Upstream,
    /,
    *,
    AccountSid: str | Unset = UNSET,
    To: str | Unset = UNSET,
    From: str | Unset = UNSET,
    DateSent: str | Unset = UNSET,
    DateSentSince: str | Unset = UNSET,
    DateSentUntil: str | Unset = UNSET,
    PageSize: int | Unset = UNSET,
    PageToken: str | Unset = UNSET,
) -> ToolResult:
    """List messages.

    GET /2010-04-01/Accounts/{AccountSid}/Messages.json

    Args:
        api: the connection that the tools share.
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        To: Only those to this number
        From: Only those from this number
        DateSent: Only those of this day, as YYYY-MM-DD in GMT
        DateSentSince: Only those of this day or later
        DateSentUntil: Only those of this day or earlier
        PageSize: Rows on one page
        PageToken: The token in next_page_uri of the page before
    """
    return await api.send(
        LIST_MESSAGES,
        {
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "To": To,
            "From": From,
            "DateSent": DateSent,
            "DateSentSince": DateSentSince,
            "DateSentUntil": DateSentUntil,
            "PageSize": PageSize,
            "PageToken": PageToken,
        },
    )


async def send_message(
    api: Upstream,
    /,
    *,
    To: str,
    AccountSid: str | Unset = UNSET,
    From: str | Unset = UNSET,
    MessagingServiceSid: str | Unset = UNSET,
    Body: str | Unset = UNSET,
    MediaUrl: list[str] | Unset = UNSET,
    StatusCallback: str | Unset = UNSET,
    ValidityPeriod: int | Unset = UNSET,
    SendAt: str | Unset = UNSET,
    ScheduleType: Literal["fixed"] | Unset = UNSET,
) -> ToolResult:
    """Send a message.

    POST /2010-04-01/Accounts/{AccountSid}/Messages.json

    Args:
        api: the connection that the tools share.
        To: Who gets it, in E.164 form, or whatsapp: before it
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        From: A number of the account; or give MessagingServiceSid
        MessagingServiceSid: The messaging service that chooses the sender
        Body: The text; above 160 characters it is sent and billed in segments
        MediaUrl: Pictures and the like by their public URLs
        StatusCallback: Where Twilio tells what becomes of it
        ValidityPeriod: Seconds that it may wait
        SendAt: When it is sent, with a messaging service and ScheduleType
        ScheduleType: Given with SendAt
    """
    return await api.send(
        SEND_MESSAGE,
        {
            "To": To,
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "From": From,
            "MessagingServiceSid": MessagingServiceSid,
            "Body": Body,
            "MediaUrl": MediaUrl,
            "StatusCallback": StatusCallback,
            "ValidityPeriod": ValidityPeriod,
            "SendAt": SendAt,
            "ScheduleType": ScheduleType,
        },
    )


async def get_message(api: Upstream, /, *, Sid: str, AccountSid: str | Unset = UNSET) -> ToolResult:
    """Look up one message.

    GET /2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json

    Args:
        api: the connection that the tools share.
        Sid: The message
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
    """
    return await api.send(GET_MESSAGE, {"Sid": Sid, "AccountSid": "own" if AccountSid is UNSET else AccountSid})


async def redact_or_cancel_message(
    api: Upstream,
    /,
    *,
    Sid: str,
    AccountSid: str | Unset = UNSET,
    Body: str | Unset = UNSET,
    Status: Literal["canceled"] | Unset = UNSET,
) -> ToolResult:
    """Redact a message, or cancel a scheduled one.

    POST /2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json

    Args:
        api: the connection that the tools share.
        Sid: The message
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        Body: Empty takes the text out for good
        Status: Cancels a scheduled message
    """
    return await api.send(
        REDACT_OR_CANCEL_MESSAGE,
        {"Sid": Sid, "AccountSid": "own" if AccountSid is UNSET else AccountSid, "Body": Body, "Status": Status},
    )


async def delete_message(api: Upstream, /, *, Sid: str, AccountSid: str | Unset = UNSET) -> ToolResult:
    """Delete the record of a message.

    DELETE /2010-04-01/Accounts/{AccountSid}/Messages/{Sid}.json

    Args:
        api: the connection that the tools share.
        Sid: The message
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
    """
    return await api.send(DELETE_MESSAGE, {"Sid": Sid, "AccountSid": "own" if AccountSid is UNSET else AccountSid})
