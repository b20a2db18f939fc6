"""The wallet and what was billed.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

GET_BALANCE = Operation("GET", "/agency/billing/balance", security=(("key",),))
LIST_USAGES = Operation(
    "GET",
    "/agency/billing/usages",
    parameters=(Parameter("startTime", "query", "startTime"), Parameter("endTime", "query", "endTime")),
    security=(("key",),),
)
LIST_TRANSACTIONS = Operation(
    "GET", "/agency/billing/transactions", parameters=(Parameter("status", "query", "status"),), security=(("key",),)
)


async def get_balance(api: Upstream, /) -> ToolResult:
    """Show the balance of the wallet.

    GET /agency/billing/balance
    """
    return await api.send(GET_BALANCE, {})


async def list_usages(api: Upstream, /, *, startTime: str | Unset = UNSET, endTime: str | Unset = UNSET) -> ToolResult:
    """List what was billed.

    GET /agency/billing/usages

    Args:
        api: the connection that the tools share.
        startTime: From when
        endTime: Until when
    """
    return await api.send(LIST_USAGES, {"startTime": startTime, "endTime": endTime})


async def list_transactions(
    api: Upstream, /, *, status: Literal["pending", "succeeded", "failed"] | Unset = UNSET
) -> ToolResult:
    """List payments.

    GET /agency/billing/transactions

    Args:
        api: the connection that the tools share.
        status: Only of this state
    """
    return await api.send(LIST_TRANSACTIONS, {"status": status})
