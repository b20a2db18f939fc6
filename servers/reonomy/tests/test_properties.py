"""Tests of the hand-written tools against the mock API: results, billing and consent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcpfactory_runtime.client import Client
from upstream import Model, building, ident

Run = Callable[..., Any]


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result["content"]
    found = result["structuredContent"]
    return found["result"] if set(found) == {"result"} else found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result["isError"]
    return str(result["content"][0]["text"])


def answering(go_ahead: bool, asked: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"go_ahead": go_ahead}}

    return elicit


def test_properties_are_found_with_their_details(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        wanted = {"state": "NY", "city": "Albany", "minBuildingArea": 5000, "detailTypes": ["sales"]}
        found = await told(client, "find_properties", **wanted)
        assert (found["total"], found["shown"], model.billed) == (3, 3, 3)
        assert [one["sales_price"] for one in found["properties"]] == [1_800_000, 2_700_000, 3_600_000]
        (_, _, search), (_, _, bulk) = model.asked
        place = {"kind": "city", "state": "NY", "text": "Albany"}
        assert search == {"settings": {"locations": [place], "building_area": {"min": 5000}}, "limit": 25}
        assert bulk["detail_type"] == ["basic", "sales"]

    with_server(work)


def test_pages_are_read_until_there_is_enough(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.properties = {one["id"]: one for one in map(building, range(1, 301))}
        code = code_of(await refused(client, "find_properties", state="NY", most=260))
        model.seen.clear()
        found = await told(client, "find_properties", state="NY", most=260, confirm=code)
        assert (found["total"], found["shown"]) == (300, 260)
        kinds = [path for _, path, _ in model.asked]
        assert kinds == ["/search/summaries"] * 2 + ["/property/bulk"] * 2
        assert [len(body["property_ids"]) for _, path, body in model.asked if path == "/property/bulk"] == [250, 10]

    with_server(work)


def code_of(text: str) -> str:
    return text.rpartition('confirm="')[2].partition('"')[0]


def agreed(count: int) -> str:
    return f"Read details of {count} properties, each of which is billed"


def test_a_person_is_asked_before_many_are_billed(with_server: Run) -> None:
    asked: list[str] = []
    ids = [ident(number) for number in range(1, 61)]

    async def yes(client: Client, model: Model) -> None:
        await told(client, "who_owns", ids=ids)
        assert model.billed == 60

    async def no(client: Client, model: Model) -> None:
        assert "did not agree" in await refused(client, "who_owns", ids=ids)
        assert model.billed == 0

    async def nobody(client: Client, model: Model) -> None:
        text = await refused(client, "comparable_sales", ids=ids)
        assert agreed(60) in text
        assert model.billed == 0
        await told(client, "comparable_sales", ids=ids, confirm=code_of(text))
        assert model.billed == 60

    with_server(yes, elicitation=answering(True, asked))
    assert asked == [f"{agreed(60)}. Go ahead?"]
    with_server(no, elicitation=answering(False, asked))
    with_server(nobody)
    with_server(no, {"REONOMY_ASK_ABOVE": "0"}, elicitation=lambda _: {"action": "decline"})


def test_an_address_is_looked_up(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "look_up_address", street="7 Main St", city="New York", state="NY")
        (row,) = found["properties"]
        assert (row["id"], row["reported_owners"][0]["name"]) == (ident(7), "Owner 4 LLC")
        (_, _, query) = model.asked[1]
        assert query == [
            ["detail_type", one] for one in ("basic", "sales", "mortgages", "reported_owner")
        ] or query == [("detail_type", one) for one in ("basic", "sales", "mortgages", "reported_owner")]
        assert "no property at" in await refused(client, "look_up_address", street="9 Elm", city="X", state="NY")

    with_server(work)


def test_sales_are_compared(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        found = await told(client, "comparable_sales", ids=[ident(number) for number in (1, 2, 3, 4, 12)], months=6)
        assert [sale["id"] for sale in found["sales"]] == [ident(1), ident(2), ident(3)]
        assert (found["median_price"], found["median_per_sqft"], found["without"]) == (600_000, 300, 2)

    with_server(work)


def test_owners_of_most_come_first(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.properties[ident(9)]["reported_owners"] = []
        found = await told(client, "who_owns", ids=[ident(number) for number in (1, 3, 4, 9)])
        assert [(one["name"], len(one["properties"])) for one in found["owners"]] == [
            ("Owner 2 LLC", 2),
            ("(not known)", 1),
            ("Owner 1 LLC", 1),
        ]

    with_server(work)


def test_loans_that_end_soon_the_next_first(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        found = await told(client, "maturing_mortgages", ids=[ident(number) for number in (8, 2, 5)], months=6)
        assert [(loan["id"], loan["lender"]) for loan in found["loans"]] == [
            (ident(2), "First Bank"),
            (ident(5), "First Bank"),
        ]

    with_server(work)


def test_many_calls_at_once_keep_to_the_limits(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        searches = (client.call_tool("search_properties", {"settings": {}}) for _ in range(11))
        singles = (client.call_tool("get_property", {"property_id": ident(1)}) for _ in range(6))
        bulks = (client.call_tool("get_many_properties", {"property_ids": [ident(1)]}) for _ in range(4))
        found = await asyncio.gather(*searches, *singles, *bulks)
        assert [one["content"] for one in found if one.get("isError")] == []
        assert (model.refused, len(model.asked)) == (0, 21)

    with_server(work)


def test_a_wrong_key_is_told_in_reonomys_words(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        assert "Invalid access token" in await refused(client, "get_property", property_id=ident(1))

    with_server(work, {"REONOMY_PASSWORD": "other"})
