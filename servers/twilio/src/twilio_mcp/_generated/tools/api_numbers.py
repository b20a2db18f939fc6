"""Numbers of the account.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

LIST_NUMBERS = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers.json",
    parameters=(
        Parameter("AccountSid", "path", "AccountSid"),
        Parameter("PhoneNumber", "query", "PhoneNumber"),
        Parameter("PageSize", "query", "PageSize"),
        Parameter("PageToken", "query", "PageToken"),
    ),
    security=(("basic",),),
    server="api",
)
SEARCH_AVAILABLE_NUMBERS = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/AvailablePhoneNumbers/{CountryCode}/Local.json",
    parameters=(
        Parameter("AccountSid", "path", "AccountSid"),
        Parameter("CountryCode", "path", "CountryCode"),
        Parameter("AreaCode", "query", "AreaCode"),
        Parameter("Contains", "query", "Contains"),
        Parameter("SmsEnabled", "query", "SmsEnabled"),
        Parameter("VoiceEnabled", "query", "VoiceEnabled"),
        Parameter("PageSize", "query", "PageSize"),
    ),
    security=(("basic",),),
    server="api",
)


async def list_numbers(
    api: Upstream,
    /,
    *,
    AccountSid: str | Unset = UNSET,
    PhoneNumber: str | Unset = UNSET,
    PageSize: int | Unset = UNSET,
    PageToken: str | Unset = UNSET,
) -> ToolResult:
    """List the numbers of the account.

    GET /2010-04-01/Accounts/{AccountSid}/IncomingPhoneNumbers.json

    Args:
        api: the connection that the tools share.
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        PhoneNumber: Only numbers like this; * stands for any digit
        PageSize: Rows on one page
        PageToken: The token in next_page_uri of the page before
    """
    return await api.send(
        LIST_NUMBERS,
        {
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "PhoneNumber": PhoneNumber,
            "PageSize": PageSize,
            "PageToken": PageToken,
        },
    )


async def search_available_numbers(
    api: Upstream,
    /,
    *,
    CountryCode: str,
    AccountSid: str | Unset = UNSET,
    AreaCode: int | Unset = UNSET,
    Contains: str | Unset = UNSET,
    SmsEnabled: bool | Unset = UNSET,
    VoiceEnabled: bool | Unset = UNSET,
    PageSize: int | Unset = UNSET,
) -> ToolResult:
    """Search numbers that can be bought.

    GET /2010-04-01/Accounts/{AccountSid}/AvailablePhoneNumbers/{CountryCode}/Local.json

    Args:
        api: the connection that the tools share.
        CountryCode: Two letters (ISO 3166-1)
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        AreaCode: Only this area code (United States and Canada)
        Contains: Only numbers with these digits; * stands for any
        SmsEnabled: Only numbers that can text
        VoiceEnabled: Only numbers that can call
        PageSize: Rows on one page
    """
    return await api.send(
        SEARCH_AVAILABLE_NUMBERS,
        {
            "CountryCode": CountryCode,
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "AreaCode": AreaCode,
            "Contains": Contains,
            "SmsEnabled": SmsEnabled,
            "VoiceEnabled": VoiceEnabled,
            "PageSize": PageSize,
        },
    )
