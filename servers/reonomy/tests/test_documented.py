"""Comparison of requests and mock responses with the examples of Reonomy's guides and reference.

Each row is an example of a page of api.reonomy.com/v2/docs, named by its title, with other values. Parts that the accessible pages do
not document are None and not compared: bodies of `/resolve/property` and `/search/property-shapes`, and responses of searches.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.testing import differences
from upstream import ACCESS, LIMITS, SECRET, Model, Seen, ident

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A tool call, and the documented request and response that belong to it."""

    where: str
    tool: str
    arguments: Json
    method: str
    path: str
    body: Json | None = None
    query: tuple[tuple[str, str], ...] = ()
    answer: Any = None


TEXT = ""
ADDRESS = {
    "address_line1": TEXT, "city": TEXT, "direction_left": TEXT, "direction_right": TEXT, "house_nbr": TEXT, "mode": TEXT, "state": TEXT,
    "street": TEXT, "zip5": "10001",
}  # fmt: skip
BASIC = {
    "active": True, "address_line1": TEXT, "alternative_addresses": [ADDRESS], "apn": "101-32-021.A", "asset_category": TEXT, "bins": ["1000001"],
}  # fmt: skip
NEW_YORK = [{"kind": "city", "state": "NY", "text": "New York"}]
LARGE = {"settings": {"locations": NEW_YORK, "building_area": {"min": 100000}}}
BETWEEN = {"settings": {"locations": NEW_YORK, "building_area": {"min": 100000, "max": 250000}}}
CHEAP = {"settings": {"sales_price": {"max": 1000000}, "mortgage_origination_date": {"max": "2020-12-31"}}}
ONE, TWO = ident(1), ident(2)
BULK = {"property_ids": [ONE, TWO], "detail_type": ["basic", "taxes"], "filter_pii": True}
BOX = {"top_left": {"lat": 40.8, "lon": -74.0}, "bottom_right": {"lat": 40.7, "lon": -73.9}}

EXAMPLES = (
    Example("Getting started: New York City, at least 100,000 square feet", "search_properties", LARGE, "POST", "/v2/search/summaries", LARGE),
    Example("Searching for properties, Filtered search: a range", "search_properties", BETWEEN, "POST", "/v2/search/summaries", BETWEEN),
    Example("Searching for properties: a price below, a mortgage before", "search_properties", CHEAP, "POST", "/v2/search/summaries", CHEAP),
    Example("Searching for properties, Property resolution: by address", "find_address", {"address_line_1": "1 Main St"}, "POST", "/v2/resolve/property"),
    Example("Searching for properties, Property resolution: by geolocation", "find_address", {"latitude": 40.7, "longitude": -74.0}, "POST", "/v2/resolve/property"),
    Example("Searching for properties, Searching for parcels", "find_parcels", {"bounding_box": BOX}, "POST", "/v2/search/property-shapes"),
    Example("Getting property details: basic information", "get_property", {"property_id": ONE}, "GET", f"/v2/property/{ONE}", answer=BASIC),
    Example(
        "Getting property details: several instances of detail_type", "get_property", {"property_id": ONE, "detail_type": ["mortgages", "taxes"]},
        "GET", f"/v2/property/{ONE}", query=(("detail_type", "mortgages"), ("detail_type", "taxes")), answer={},
    ),
    Example("API Reference: post /v2/property/bulk", "get_many_properties", BULK, "POST", "/v2/property/bulk", BULK, answer=[BASIC]),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a call: the received requests, the result, and the tool definition."""

    seen: list[Seen]
    result: Json
    tool: Json


@pytest.fixture(scope="module")
def done(with_server: Callable[..., Any]) -> dict[str, Done]:
    """Call each example once, with a fresh mock API."""

    async def work(client: Client, model: Model) -> dict[str, Done]:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        found = {}
        for example in EXAMPLES:
            model.__dict__.update(Model().__dict__)  # this also resets the rate limits
            result = await client.call_tool(example.tool, example.arguments)
            found[example.where] = Done(model.seen, result, tools[example.tool])
        return found

    return with_server(work, {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_MODE": "full"})


each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)


@each
def test_the_api_is_asked_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert (seen.method, seen.path, seen.query) == (example.method, example.path, list(example.query))
    if example.body is not None:
        assert seen.body == example.body
    # API basics, Authentication and Content negotiation
    assert seen.headers["authorization"] == "Basic " + b64encode(f"{ACCESS}:{SECRET}".encode()).decode()
    assert seen.headers.get("content-type") == ("application/json" if example.method == "POST" else None)


@each
def test_the_documented_answer_is_given_and_is_what_the_tool_says(example: Example, done: dict[str, Done]) -> None:
    (seen,), result, tool = done[example.where].seen, done[example.where].result, done[example.where].tool
    assert seen.status == 200
    assert differences(example.answer, seen.answer) == []
    assert json.loads(result["content"][0]["text"]) == seen.answer
    if "outputSchema" in tool:  # details are free-form, without a schema
        assert result["structuredContent"] == seen.answer
        compile_schema(tool["outputSchema"]).validate(seen.answer)


def test_a_wrong_token_is_an_authorization_exception(with_server: Callable[..., Any]) -> None:
    """Getting property details: "if you run the query and get an AuthorizationException"."""

    async def work(client: Client, _: Model) -> Json:
        return await client.call_tool("get_property", {"property_id": ONE})

    result = with_server(work, {"REONOMY_PASSWORD": "another"})
    assert result["isError"]
    assert "AuthorizationException" in result["content"][0]["text"]


def test_the_model_has_the_documented_limits() -> None:
    """Searching for properties, and Getting property details: Rate limiting. test_properties.py tests that the server respects them."""
    second, minute = 1.0, 60.0
    assert LIMITS == {"search": [(5, second)], "single": [(5, second)], "many": [(2, second), (20, minute)]}
