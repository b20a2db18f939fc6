"""What is billed: who is asked, what a yes is good for, and what is told when Reonomy fails in the middle."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from starlette.responses import JSONResponse
from upstream import HELD, Model, building, ident

from reonomy_mcp import credits

Run = Callable[..., Any]

FAILED = JSONResponse({"error": "InternalError", "message": "Something broke"}, 500)


def idents(first: int, last: int) -> list[str]:
    return [ident(number) for number in range(first, last + 1)]


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str, Any]:
    """Return whether a call was refused, its text, and its structured content."""
    result = await client.call_tool(tool, arguments)
    return bool(result.get("isError")), result["content"][0]["text"], result.get("structuredContent")


def code_of(text: str) -> str:
    """Return the code that a refusal names."""
    found = re.search(r'confirm="([0-9a-f]+)"', text)
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
        assert "50 more" in text
        at = {"street": "7 Main St", "city": "New York", "state": "NY"}
        wrong, text, _ = await called(client, "look_up_address", **at)
        assert (wrong, model.billed) == (True, 50)
        wrong, _, _ = await called(client, "look_up_address", **at, confirm=code_of(text))
        assert (wrong, model.billed) == (False, 51)
        wrong, _, _ = await called(client, "who_owns", ids=idents(101, 150))  # after a yes the count begins anew
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


def test_a_yes_is_for_the_properties_of_its_question_and_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credits, "_unasked", deque())
    monkeypatch.setattr(credits, "_open", {})
    keys: list[str] = []

    async def elicit(_: str, __: Any, *, key: str) -> Any:
        keys.append(key)
        return SimpleNamespace(accepted=True, content={"go_ahead": True})

    ctx: Any = SimpleNamespace(client_capabilities={"elicitation": {}}, elicit=elicit)
    for ids in (["a"] * 2 + [f"p{n}" for n in range(60)], [f"p{n}" for n in range(400)], [f"P{n}" for n in range(400)]):
        asyncio.run(credits.agreed(ctx, ids, ""))
    assert keys[0] != keys[1] == keys[2]
