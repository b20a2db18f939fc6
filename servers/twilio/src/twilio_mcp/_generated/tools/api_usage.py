"""What was used and what it cost.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

LIST_USAGE = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Usage/Records.json",
    parameters=(
        Parameter("AccountSid", "path", "AccountSid"),
        Parameter("Category", "query", "Category"),
        Parameter("StartDate", "query", "StartDate"),
        Parameter("EndDate", "query", "EndDate"),
        Parameter("PageSize", "query", "PageSize"),
        Parameter("PageToken", "query", "PageToken"),
    ),
    security=(("basic",),),
    server="api",
)
GET_BALANCE = Operation(
    "GET",
    "/2010-04-01/Accounts/{AccountSid}/Balance.json",
    parameters=(Parameter("AccountSid", "path", "AccountSid"),),
    security=(("basic",),),
    server="api",
)


async def list_usage(
    api: Upstream,
    /,
    *,
    AccountSid: str | Unset = UNSET,
    Category: str | Unset = UNSET,
    StartDate: str | Unset = UNSET,
    EndDate: str | Unset = UNSET,
    PageSize: int | Unset = UNSET,
    PageToken: str | Unset = UNSET,
) -> ToolResult:
    """List what was used and what it cost.

    GET /2010-04-01/Accounts/{AccountSid}/Usage/Records.json

    Args:
        api: the connection that the tools share.
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
        Category: Only this one: sms, calls, phonenumbers, totalprice …
        StartDate: First day
        EndDate: Last day
        PageSize: Rows on one page
        PageToken: The token in next_page_uri of the page before
    """
    return await api.send(
        LIST_USAGE,
        {
            "AccountSid": "own" if AccountSid is UNSET else AccountSid,
            "Category": Category,
            "StartDate": StartDate,
            "EndDate": EndDate,
            "PageSize": PageSize,
            "PageToken": PageToken,
        },
    )


async def get_balance(api: Upstream, /, *, AccountSid: str | Unset = UNSET) -> ToolResult:
    """Look up the balance.

    GET /2010-04-01/Accounts/{AccountSid}/Balance.json

    Args:
        api: the connection that the tools share.
        AccountSid: The account, or a subaccount by its sid; own is the account of the server
    """
    return await api.send(GET_BALANCE, {"AccountSid": "own" if AccountSid is UNSET else AccountSid})
