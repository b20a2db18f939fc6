"""Buying books.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

PLACE_ORDER = Operation(
    "POST",
    "/orders",
    parameters=(Parameter("idempotency_key", "header", "Idempotency-Key"),),
    body=Body(
        "application/json",
        (Field("lines", ("lines",)), Field("address", ("address",)), Field("gift", ("gift",))),
        required=True,
    ),
    security=(("apiKey",),),
)
GET_ORDER = Operation(
    "GET", "/orders/{order_id}", parameters=(Parameter("order_id", "path", "order_id"),), security=(("apiKey",),)
)
CANCEL_ORDER = Operation(
    "POST",
    "/orders/{order_id}/cancel",
    parameters=(Parameter("order_id", "path", "order_id"),),
    security=(("apiKey",),),
)


async def place_order(
    api: Upstream,
    /,
    *,
    lines: list[dict[str, Any]],
    address: dict[str, Any],
    idempotency_key: str | Unset = UNSET,
    gift: bool | Unset = UNSET,
) -> ToolResult:
    """Order books.

    POST /orders

    Args:
        api: the connection that the tools share.
        lines: `lines` in the body.
        address: `address` in the body.
        idempotency_key: The same key orders only once
        gift: `gift` in the body.
    """
    return await api.send(
        PLACE_ORDER, {"lines": lines, "address": address, "idempotency_key": idempotency_key, "gift": gift}
    )


async def get_order(api: Upstream, /, *, order_id: int) -> ToolResult:
    """Look at an order.

    GET /orders/{order_id}

    Args:
        api: the connection that the tools share.
        order_id: `order_id` in the path.
    """
    return await api.send(GET_ORDER, {"order_id": order_id})


async def cancel_order(api: Upstream, /, *, order_id: int) -> ToolResult:
    """Cancel an order that was not sent yet.

    POST /orders/{order_id}/cancel

    Args:
        api: the connection that the tools share.
        order_id: `order_id` in the path.
    """
    return await api.send(CANCEL_ORDER, {"order_id": order_id})
