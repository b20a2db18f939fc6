"""What is known of them.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

GET_PROPERTY = Operation(
    "GET",
    "/property/{property_id}",
    parameters=(
        Parameter("property_id", "path", "property_id"),
        Parameter("detail_type", "query", "detail_type", style="form", explode=True),
    ),
    security=(("basic",),),
)
GET_MANY_PROPERTIES = Operation(
    "POST",
    "/property/bulk",
    body=Body(
        "application/json",
        (
            Field("property_ids", ("property_ids",)),
            Field("detail_type", ("detail_type",)),
            Field("filter_pii", ("filter_pii",)),
        ),
        required=True,
    ),
    security=(("basic",),),
)


async def get_property(
    api: Upstream,
    /,
    *,
    property_id: str,
    detail_type: list[Literal["basic", "mortgages", "ownership", "reported_owner", "sales", "taxes", "tenants"]]
    | Unset = UNSET,
) -> ToolResult:
    """Look up one property.

    GET /property/{property_id}

    Args:
        api: the connection that the tools share.
        property_id: The Reonomy id
        detail_type: What is wanted
    """
    return await api.send(GET_PROPERTY, {"property_id": property_id, "detail_type": detail_type})


async def get_many_properties(
    api: Upstream,
    /,
    *,
    property_ids: list[str],
    detail_type: list[Literal["basic", "mortgages", "ownership", "reported_owner", "sales", "taxes", "tenants"]]
    | Unset = UNSET,
    filter_pii: bool | Unset = UNSET,
) -> ToolResult:
    """Look up many properties.

    POST /property/bulk

    Args:
        api: the connection that the tools share.
        property_ids: Reonomy ids
        detail_type: What is wanted
        filter_pii: Leave out what identifies persons
    """
    return await api.send(
        GET_MANY_PROPERTIES, {"property_ids": property_ids, "detail_type": detail_type, "filter_pii": filter_pii}
    )
