"""Which properties there are.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

SEARCH_PROPERTIES = Operation(
    "POST",
    "/search/summaries",
    parameters=(Parameter("search_token", "query", "search_token"),),
    body=Body("application/json", (Field("limit", ("limit",)), Field("settings", ("settings",))), required=True),
    security=(("basic",),),
)
FIND_ADDRESS = Operation(
    "POST",
    "/resolve/property",
    body=Body(
        "application/json",
        (
            Field("address_line_1", ("address_line_1",)),
            Field("address_city", ("address_city",)),
            Field("address_state", ("address_state",)),
            Field("address_postal", ("address_postal",)),
            Field("latitude", ("latitude",)),
            Field("longitude", ("longitude",)),
            Field("place_name", ("place_name",)),
        ),
        required=True,
    ),
    security=(("basic",),),
)
FIND_PARCELS = Operation(
    "POST",
    "/search/property-shapes",
    body=Body("application/json", (Field("bounding_box", ("bounding_box",)),), required=True),
    security=(("basic",),),
)


async def search_properties(
    api: Upstream, /, *, settings: dict[str, Any], search_token: str | Unset = UNSET, limit: int | Unset = UNSET
) -> ToolResult:
    """Search properties.

    POST /search/summaries

    Args:
        api: the connection that the tools share.
        settings: Filters; all must be met
        search_token: The search_token of the page before; the body stays the same
        limit: Properties on one page
    """
    return await api.send(SEARCH_PROPERTIES, {"settings": settings, "search_token": search_token, "limit": limit})


async def find_address(
    api: Upstream,
    /,
    *,
    address_line_1: str | Unset = UNSET,
    address_city: str | Unset = UNSET,
    address_state: str | Unset = UNSET,
    address_postal: str | Unset = UNSET,
    latitude: float | Unset = UNSET,
    longitude: float | Unset = UNSET,
    place_name: str | Unset = UNSET,
) -> ToolResult:
    """Find the property at an address.

    POST /resolve/property

    Args:
        api: the connection that the tools share.
        address_line_1: House number and street
        address_city: The city
        address_state: The state in two letters
        address_postal: The ZIP code
        latitude: Degrees north
        longitude: Degrees east
        place_name: What the place is called
    """
    return await api.send(
        FIND_ADDRESS,
        {
            "address_line_1": address_line_1,
            "address_city": address_city,
            "address_state": address_state,
            "address_postal": address_postal,
            "latitude": latitude,
            "longitude": longitude,
            "place_name": place_name,
        },
    )


async def find_parcels(api: Upstream, /, *, bounding_box: dict[str, Any]) -> ToolResult:
    """Find parcels on the map.

    POST /search/property-shapes

    Args:
        api: the connection that the tools share.
        bounding_box: A box on the map
    """
    return await api.send(FIND_PARCELS, {"bounding_box": bounding_box})
