"""Tests of undocumented responses: a clear error or a partial result, never an invented one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from upstream import Model, ident

Run = Callable[..., Any]

AT = {"street": "7 Main St", "city": "New York", "state": "NY"}
HTML = "<html><body>Down for maintenance</body></html>"
ODD = [b"null", b"[]", b"3", {"items": None, "count": None}, {}, {"items": [{"lat": 1}], "count": 1}, {"items": ["x"]}]


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str, Any]:
    result = await client.call_tool(tool, arguments)
    return bool(result.get("isError")), result["content"][0]["text"], result.get("structuredContent")


@pytest.mark.parametrize(
    ("tool", "given", "path", "odd"),
    [
        ("find_properties", {"state": "NY"}, "/search/summaries", ODD),
        ("look_up_address", AT, "/resolve/property", ODD),
        ("look_up_address", AT, f"/property/{ident(7)}", [b"null", b"[]", {"city": "X"}, {"id": 7}]),
        ("who_owns", {"ids": [ident(1)]}, "/property/bulk", [b"null", {}, {"result": 1}, [None], [{"city": "X"}], [7]]),
    ],
    ids=["search", "resolve", "property", "bulk"],
)
def test_what_is_no_answer_is_an_error_that_says_what_was_expected(
    with_server: Run, tool: str, given: dict[str, Any], path: str, odd: list[Any]
) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        for one in odd:
            model.instead[path] = [one]
            wrong, text, _ = await called(client, tool, **given)
            assert wrong, one
            assert "expected" in text, (one, text)
            assert "no property" not in text

    with_server(work)


def test_a_page_that_comes_again_ends_the_search(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        page = {"count": 20, "search_token": "same", "items": [{"id": ident(1), "lat": 1, "lon": 1}]}
        model.instead["/search/summaries"] = [page]
        wrong, text, found = await called(client, "find_properties", state="NY", most=20)
        assert not wrong, text
        assert found["shown"] == 1
        assert len([path for _, path, _ in model.asked if path == "/search/summaries"]) == 2

    with_server(work)


def test_numbers_as_texts_are_read_and_what_cannot_be_read_is_said(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties[ident(1)] |= {"sales_price": "300000.0", "building_area": "1000"}
        model.properties[ident(2)] |= {"sales_date": 1_700_000_000_000}
        model.properties[ident(3)] |= {"sales_price": "a lot", "building_area": None, "sales_date": "2026-13-99"}
        wrong, text, found = await called(client, "comparable_sales", ids=[ident(one) for one in (1, 2, 3)])
        assert not wrong, text
        assert [(one["id"], one["price"], one["per_sqft"]) for one in found["sales"]] == [(ident(1), 300_000, 300)]
        assert found["without"] == 2
        model.properties[ident(1)] |= {"mortgages": [{"maturity_date": 20270101, "amount": "7"}, None, 3]}
        model.properties[ident(2)] |= {"mortgages": {"maturity_date": "2027-01-01"}}
        model.properties[ident(3)] |= {"mortgages": [{"maturity_date": later(10), "lender_name": 5, "amount": "7.5"}]}
        wrong, text, found = await called(client, "maturing_mortgages", ids=[ident(one) for one in (1, 2, 3)])
        assert not wrong, text
        assert [(one["id"], one["lender"], one["amount"]) for one in found["loans"]] == [(ident(3), "5", 7.5)]
        assert found["without_day"] == 4
        model.properties[ident(1)] |= {"reported_owners": "x"}
        model.properties[ident(2)] |= {"reported_owners": [None, {"name": 4}, {"name": "Z"}]}
        wrong, text, found = await called(client, "who_owns", ids=[ident(1), ident(2)])
        assert not wrong, text
        assert [one["name"] for one in found["owners"]] == ["(not known)", "Z"]

    with_server(work)


@pytest.mark.parametrize(
    ("tool", "given"),
    [("find_properties", {"state": "NY"}), ("look_up_address", AT), ("who_owns", {"ids": [ident(1)]})],
)
def test_a_page_of_html_is_an_error(with_server: Run, tool: str, given: dict[str, Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead = {path: [HTML] for path in ("/search/summaries", "/resolve/property", "/property/bulk")}
        wrong, text, _ = await called(client, tool, **given)
        assert wrong
        assert "no property" not in text
        assert "nternal" not in text

    with_server(work)


def later(days: int) -> str:
    return str(datetime.now(UTC).date() + timedelta(days=days))


def test_months_are_those_of_the_calendar(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties[ident(1)] |= {"mortgages": [{"maturity_date": later(362), "lender_name": "A", "amount": 1}]}
        model.properties[ident(2)] |= {"sales_date": later(-362), "sales_price": 1.0}
        wrong, _, found = await called(client, "maturing_mortgages", ids=[ident(1)], months=12)
        assert not wrong
        assert len(found["loans"]) == 1
        wrong, _, found = await called(client, "comparable_sales", ids=[ident(2)], months=12)
        assert not wrong
        assert len(found["sales"]) == 1

    with_server(work)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("comparable_sales", {"ids": [ident(1)], "months": -3}),
        ("comparable_sales", {"ids": [ident(1)], "months": 1_000_000_000}),
        ("maturing_mortgages", {"ids": [ident(1)], "months": 0}),
        ("who_owns", {"ids": ["bulk"]}),
        ("get_property", {"property_id": "bulk"}),
        ("get_many_properties", {"property_ids": ["../x"]}),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_is_billed(with_server: Run, tool: str, given: dict[str, Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        wrong, text, _ = await called(client, tool, **given)
        assert (wrong, model.asked) == (True, [])
        assert "internal" not in text

    with_server(work)


def test_the_others_at_an_address_are_named(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties[ident(8)]["address_line1"] = "7 Main St"
        wrong, _, found = await called(client, "look_up_address", **AT)
        assert (wrong, found["total"], [one["id"] for one in found["others"]]) == (False, 2, [ident(8)])
        assert "2 properties" in found["note"]

    with_server(work)
