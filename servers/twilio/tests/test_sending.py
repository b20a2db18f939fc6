"""The tools of ours against the modelled APIs: who is asked, what is sent, and what is said of what did not arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from upstream import ACCOUNT, SUBACCOUNT, Model, sid

from twilio_mcp.errors import explained
from twilio_mcp.sending import _segments

Run = Callable[..., Any]
MANY = [f"+1555867{number:04}" for number in range(7)]
SENDER = {"fromNumber": "+15017122661"}


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result["content"]
    return result["structuredContent"]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result["isError"]
    return str(result["content"][0]["text"])


def sent(model: Model) -> list[str]:
    return [form["To"][0] for method, path, form in model.forms if method == "POST" and path.endswith("/Messages.json")]


def test_few_are_written_to_at_once_and_each_once(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        to = ["+15558675310", "+15005550001", "+15558675310", "+15005550002"]
        found = await told(client, "send_to_many", to=to, body="Hello", **SENDER)
        assert (found["taken"], found["refused"], sorted(sent(model))) == (1, 2, sorted(set(to)))
        problems = " ".join(one["problem"] for one in found["messages"][:2])
        assert "not a valid phone number" in problems
        assert "unsubscribed" in problems
        (_, path, form) = next(one for one in model.forms if one[2].get("To") == ["+15558675310"])
        assert path == f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
        assert form == {"To": ["+15558675310"], "From": ["+15017122661"], "Body": ["Hello"]}

    with_server(work)


def test_a_person_is_asked_before_many_are_written_to(with_server: Run) -> None:
    asked: list[str] = []

    def answer(send: bool) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def elicit(params: dict[str, Any]) -> dict[str, Any]:
            asked.append(params["message"])
            return {"action": "accept", "content": {"send": send}}

        return elicit

    async def agreed(client: Client, model: Model) -> None:
        assert (await told(client, "send_to_many", to=MANY, body="Hello", **SENDER))["taken"] == 7
        assert sorted(sent(model)) == sorted(MANY)

    async def against(client: Client, model: Model) -> None:
        assert "Nothing was sent" in await refused(client, "send_to_many", to=MANY, body="Hello", **SENDER)
        assert sent(model) == []

    with_server(agreed, elicitation=answer(True))
    assert "Send 7 texts of 1 segments each?" in asked[0]
    with_server(against, elicitation=answer(False))
    with_server(against, elicitation=lambda _: {"action": "decline"})


def test_where_nobody_can_be_asked_the_sentence_must_be_repeated(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        said = await refused(client, "send_to_many", to=MANY, body="Hello", **SENDER)
        assert "Send 7 texts of 1 segments each" in said
        assert "cannot ask" in await refused(client, "send_to_many", to=MANY, body="Hello", confirm="yes", **SENDER)
        assert sent(model) == []
        confirm = "Send 7 texts of 1 segments each"
        assert (await told(client, "send_to_many", to=MANY, body="Hello", confirm=confirm, **SENDER))["taken"] == 7

    with_server(work)


def test_the_number_above_which_is_asked_is_the_owners(with_server: Run) -> None:
    async def strict(client: Client, model: Model) -> None:
        await refused(client, "send_to_many", to=MANY[:1], body="Hello", **SENDER)
        assert sent(model) == []

    async def loose(client: Client, model: Model) -> None:
        await told(client, "send_to_many", to=MANY, body="Hello", **SENDER)

    with_server(strict, {"TWILIO_ASK_ABOVE": "0"})
    with_server(loose, {"TWILIO_ASK_ABOVE": "7"})


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


def test_a_subaccount_is_named_and_the_own_account_is_not(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        await client.call_tool("list_messages", {})
        await client.call_tool("list_messages", {"AccountSid": SUBACCOUNT})
        accounts = [path.split("/")[3] for _, path, _ in model.forms]
        assert accounts == [ACCOUNT, SUBACCOUNT]

    with_server(work)


def test_refusals_come_in_twilios_words(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        said = await refused(client, "send_message", To="+15005550001", Body="Hello", From="+15017122661")
        assert "is not a valid phone number" in said
        assert "one of the two" in await refused(client, "send_to_many", to=MANY[:1], body="Hello")

    with_server(work)


@pytest.mark.parametrize(
    ("body", "segments"), [("x" * 160, 1), ("x" * 161, 2), ("x" * 307, 3), ("ш" * 70, 1), ("ш" * 71, 2)]
)
def test_segments_are_counted_as_they_are_billed(body: str, segments: int) -> None:
    assert _segments(body) == segments


def test_an_unknown_code_is_told_in_twilios_words_with_a_link() -> None:
    assert explained(99999, "Odd") == ("Odd", "see https://www.twilio.com/docs/api/errors/99999")
