"""Tests of consent before billing, the validity of a consent, and failures halfway."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect
from starlette.responses import JSONResponse
from upstream import HELD, Model, building, ident

from reonomy_mcp import credits

Run = Callable[..., Any]

FAILED = JSONResponse({"error": "InternalError", "message": "Something broke"}, 500)


def idents(first: int, last: int) -> list[str]:
    return [ident(number) for number in range(first, last + 1)]


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str, Any]:
    """Call a tool; return (is error, text, structured content)."""
    result = await client.call_tool(tool, arguments)
    return bool(result.get("isError")), result["content"][0]["text"], result.get("structuredContent")


def code_of(text: str) -> str:
    """Return the confirmation code in a refusal."""
    found = re.search(r'confirm="([0-9a-z]+)"', text)
    assert found, text
    return found[1]


@pytest.mark.parametrize("failure", [FAILED, JSONResponse({"message": "odd"}), HELD], ids=["500", "odd", "time-out"])
def test_what_was_billed_is_given_though_the_second_block_fails(with_server: Run, failure: Any) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 401))}
        ids = idents(1, 400)
        model.instead["/property/bulk"] = [None, failure, None]
        wrong, text, found = await called(client, "who_owns", ids=ids)
        assert not wrong, text
        assert sum(len(one["properties"]) for one in found["owners"]) == 250
        assert found["unread"] == ids[250:]
        assert "150 of 400" in found["note"]
        assert "only" in found["note"]
        before = model.billed
        wrong, _, found = await called(client, "who_owns", ids=found["unread"])
        assert not wrong
        assert (model.billed - before, found["unread"], found["note"]) == (150, [], "")

    with_server(work, {"REONOMY_ASK_ABOVE": "1000", "REONOMY_TIMEOUT": "2"})


def test_every_tool_says_what_it_could_not_read(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 256))}
        for tool, more in (("comparable_sales", {}), ("maturing_mortgages", {"months": 12}), ("find_properties", {})):
            model.instead["/property/bulk"] = [None, FAILED]
            given = {"state": "NY", "most": 255} if tool == "find_properties" else {"ids": idents(1, 255), **more}
            wrong, text, found = await called(client, tool, **given)
            assert not wrong, text
            assert found["unread"] == idents(251, 255)

    with_server(work, {"REONOMY_ASK_ABOVE": "10000"})


def test_a_failure_of_the_first_block_is_an_error(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.instead["/property/bulk"] = [FAILED]
        wrong, text, _ = await called(client, "who_owns", ids=idents(1, 3))
        assert wrong
        assert "Something broke" in text

    with_server(work)


def test_ids_of_which_reonomy_says_nothing_are_named(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        wrong, _, found = await called(client, "who_owns", ids=[ident(1), ident(77)])
        assert not wrong
        assert found["unread"] == [ident(77)]

    with_server(work)


def test_small_calls_add_up_to_a_question(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 201))}
        wrong, _, _ = await called(client, "who_owns", ids=idents(1, 50))
        assert (wrong, model.billed) == (False, 50)
        wrong, text, _ = await called(client, "comparable_sales", ids=idents(51, 100))
        assert (wrong, model.billed) == (True, 50)
        assert "details of 50 properties, each of which is billed" in text
        at = {"street": "7 Main St", "city": "New York", "state": "NY"}
        wrong, text, _ = await called(client, "look_up_address", **at)
        assert (wrong, model.billed) == (True, 50)
        wrong, _, _ = await called(client, "look_up_address", **at, confirm=code_of(text))
        assert (wrong, model.billed) == (False, 51)
        wrong, _, _ = await called(client, "who_owns", ids=idents(101, 150))  # consent resets the count
        assert (wrong, model.billed) == (False, 101)

    with_server(work)


def test_a_yes_holds_once_and_for_the_properties_it_was_asked_for(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 201))}
        first, second = idents(1, 60), idents(101, 160)
        for guess in ("Read details of 60 properties, each of which is billed", "yes", ""):
            wrong, text, _ = await called(client, "who_owns", ids=first, confirm=guess)
            assert wrong
        code = code_of(text)
        wrong, _, _ = await called(client, "who_owns", ids=second, confirm=code)
        assert (wrong, model.billed) == (True, 0)
        wrong, _, _ = await called(client, "who_owns", ids=first[::-1], confirm=code)
        assert (wrong, model.billed) == (False, 60)
        wrong, _, _ = await called(client, "who_owns", ids=first, confirm=code)
        assert (wrong, model.billed) == (True, 60)

    with_server(work)


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"go_ahead": False}},
        {"action": "accept", "content": {"go_ahead": "yes"}},
        {"action": "accept", "content": {}},
    ],
)
@pytest.mark.parametrize("mode", ["legacy", "modern"])
def test_whoever_can_be_asked_is_asked_whatever_confirm_says(
    with_server: Run, answer: dict[str, Any], mode: str
) -> None:
    asked: list[str] = []

    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return answer

    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        confirm = "Read details of 60 properties, each of which is billed"
        wrong, text, _ = await called(client, "who_owns", ids=idents(1, 60), confirm=confirm)
        assert (wrong, model.billed, len(asked)) == (True, 0, 1)
        assert "did not agree" in text

    with_server(work, elicitation=elicit, mode=mode)


def test_what_reonomys_own_tools_read_is_counted_and_asked_for_too(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 201))}
        wrong, text, _ = await called(client, "get_many_properties", property_ids=idents(1, 49), detail_type=["basic"])
        assert (wrong, model.billed) == (False, 49), text
        one = {"property_id": ident(60), "detail_type": ["basic"]}
        assert not (await called(client, "get_property", **one))[0]
        for tool, given in (
            ("get_property", one),
            ("get_many_properties", {"property_ids": idents(61, 62), "detail_type": ["basic"]}),
            ("who_owns", {"ids": idents(61, 61)}),
        ):
            wrong, text, _ = await called(client, tool, **given)
            assert (wrong, model.billed) == (True, 50)
            assert "Nothing was read: a person must agree" in text
        assert "use who_owns" in (await called(client, "get_property", **one))[1]

    with_server(work)


def test_a_person_agrees_to_what_reonomys_own_tools_read(with_server: Run) -> None:
    asked: list[str] = []

    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"go_ahead": True}}

    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 201))}
        await called(client, "get_many_properties", property_ids=idents(1, 51), detail_type=["basic"])
        await called(client, "find_properties", state="NY", most=60)
        assert (len(asked), model.billed) == (2, 111)

    with_server(work, elicitation=elicit)


def test_an_id_in_other_letters_is_the_same_property(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.limits = {}
        model.properties = {one["id"]: one for one in map(building, range(1, 201))}
        ids = [*idents(10, 15), *(one.upper() for one in idents(10, 15))]
        assert len(set(ids)) > 6
        wrong, text, found = await called(client, "who_owns", ids=ids)
        assert (wrong, model.billed) == (False, 6), text
        assert (found["unread"], found["note"]) == ([], "")
        first = idents(101, 160)
        _, text, _ = await called(client, "who_owns", ids=first)
        wrong, _, _ = await called(client, "who_owns", ids=[one.upper() for one in first], confirm=code_of(text))
        assert (wrong, model.billed) == (False, 66)

    with_server(work)


@pytest.mark.parametrize("given", ["abc", "-1", "5.5", "٥"])
def test_a_setting_that_is_no_number_is_an_error(with_server: Run, given: str) -> None:
    async def work(client: Client, model: Model) -> None:
        for tool, arguments in (
            ("who_owns", {"ids": idents(1, 1)}),
            ("get_property", {"property_id": ident(1), "detail_type": ["basic"]}),
        ):
            wrong, text, _ = await called(client, tool, **arguments)
            assert wrong
            assert "REONOMY_ASK_ABOVE is" in text
            assert "hint:" in text
        assert model.billed == 0

    with_server(work, {"REONOMY_ASK_ABOVE": given})


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_a_no_is_a_no_though_the_hour_is_over_when_it_comes(monkeypatch: pytest.MonkeyPatch, revision: str) -> None:
    monkeypatch.setenv(credits.ASK_ABOVE, "1")
    monkeypatch.setattr(credits, "_unasked", deque([(time.monotonic(), 1)]))
    server = Server("one")

    @server.tool
    async def read(ctx: Context) -> str:
        """Read one property."""
        await credits.agreed(ctx, ["a"], None)
        return "read"

    def elicit(_: Any) -> dict[str, Any]:
        credits._unasked.clear()  # as if an hour had passed
        return {"action": "decline"}

    async def work() -> None:
        async with connect(server, revision, elicitation=elicit) as client:
            assert "did not agree" in (await called(client, "read"))[1]
            assert (await called(client, "read"))[1] == "read"  # a new call, below the limit

    asyncio.run(work())
