"""The account and its subaccounts.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

LIST_ACCOUNTS = Operation(
    "GET",
    "/2010-04-01/Accounts.json",
    parameters=(
        Parameter("Status", "query", "Status"),
        Parameter("PageSize", "query", "PageSize"),
        Parameter("PageToken", "query", "PageToken"),
    ),
    security=(("basic",),),
    server="api",
)


async def list_accounts(
    api: Upstream,
    /,
    *,
    Status: Literal["active", "suspended", "closed"] | Unset = UNSET,
    PageSize: int | Unset = UNSET,
    PageToken: str | Unset = UNSET,
) -> ToolResult:
    """List the account and its subaccounts.

    GET /2010-04-01/Accounts.json

    Args:
        api: the connection that the tools share.
        Status: Only those in this state
        PageSize: Rows on one page
        PageToken: The token in next_page_uri of the page before
    """
    return await api.send(LIST_ACCOUNTS, {"Status": Status, "PageSize": PageSize, "PageToken": PageToken})
