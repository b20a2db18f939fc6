"""Tests of delivery against the mock APIs: failures by reason, waiting, and invalid responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from resources import message
from starlette.responses import JSONResponse, Response
from upstream import SERVICE, Model, problem, sid

Run = Callable[..., Any]


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result["content"]
    return result["structuredContent"]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result["isError"]
    return str(result["content"][0]["text"])


def test_what_did_not_arrive_is_grouped_by_reason(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "find_failed_messages")
        assert (found["looked_at"], [(one["code"], one["times"]) for one in found["failed"]]) == (
            5,
            [(30003, 2), (30006, 1)],
        )
        assert "switched off" in found["failed"][0]["why"]
        assert found["failed"][1]["to"] == ["+15558675313"]

    with_server(work)


def test_delivery_is_waited_for(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        sids = [sid("SM", 5), sid("SM", 2)]
        at_once = (await told(client, "check_delivery", sids=sids))["result"]
        assert [(one["status"], one["over"]) for one in at_once] == [("queued", False), ("undelivered", True)]
        later = (await told(client, "check_delivery", sids=sids, waitSeconds=30))["result"]
        assert [one["status"] for one in later] == ["delivered", "undelivered"]
        assert "abroad" in later[1]["why"]

    with_server(work)


def test_an_unknown_message_leaves_the_others(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        sids = [sid("SM", 1), sid("SM", 999), sid("SM", 2), sid("SM", 1)]
        found = (await told(client, "check_delivery", sids=sids, waitSeconds=5))["result"]
        assert [(one["sid"], one["status"], one["over"]) for one in found] == [
            (sid("SM", 1), "delivered", True),
            (sid("SM", 999), "", True),
            (sid("SM", 2), "undelivered", True),
        ]
        assert "404" in found[1]["why"]

    with_server(work)


def test_more_messages_than_were_read_and_rarer_reasons_are_told(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        rows = [message(number, f"+1555{number:07}", "failed", 10_000 + number) for number in range(1000)]
        rows += [message(2000 + number, f"+1556{number:07}", "failed", 30003) for number in range(30)]
        for one in rows:
            one["error_message"] = "long " * 200
        model.messages = {one["sid"]: one for one in rows[::-1]}
        result = await client.call_tool("find_failed_messages", {})
        found = result["structuredContent"]
        assert (found["looked_at"], found["more"]) == (1000, True)
        assert (found["failed"][0]["code"], found["failed"][0]["times"], len(found["failed"][0]["to"])) == (
            30003,
            30,
            20,
        )
        assert (len(found["failed"]), found["left_out"]) == (20, 1000 - 30 - 19)
        assert len(result["content"][0]["text"]) < 12_000
        few = await told(client, "find_failed_messages", most=1)
        assert (few["looked_at"], few["more"]) == (1, True)

    with_server(work)


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse([1]), JSONResponse(None), JSONResponse({"messages": None}), JSONResponse({}),
        Response("<html>gateway</html>", media_type="text/html"), Response(),
    ],
    ids=["list", "null", "no list", "empty object", "html", "empty"],
)  # fmt: skip
def test_answers_of_another_form_are_told(with_server: Run, answer: Response) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead("GET", ".json", answer)
        said = await refused(client, "find_failed_messages")
        assert "internal error" not in said
        (one,) = (await told(client, "check_delivery", sids=[sid("SM", 1)]))["result"]
        assert (one["status"], one["over"]) == ("", False)
        assert one["why"]
        assert "internal error" not in one["why"]

    with_server(work)


def test_odd_members_of_messages_do_no_harm(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        rows = [{"status": "failed"}, {"status": "failed", "error_code": "30003", "to": 5, "error_message": None}]
        model.instead("GET", "/Messages.json", JSONResponse({"messages": rows}))
        found = await told(client, "find_failed_messages")
        assert [(one["code"], one["times"], one["to"]) for one in found["failed"]] == [(0, 1, [""]), (30003, 1, [""])]

    with_server(work)


def test_a_code_that_cannot_be_checked_any_more_is_explained(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead("POST", "/VerificationCheck", problem(404, 20404, "The requested resource was not found"))
        said = await refused(client, "check_code", ServiceSid=SERVICE, To="+15017122661", Code="123456")
        assert "Twilio error 20404" in said
        assert "expired" in said
        assert "approved already" in said
        assert "tried too often" in said

    with_server(work)
