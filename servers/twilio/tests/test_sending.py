"""Tests of sending against the mock APIs: consent, requests, and outcomes per recipient."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect
from starlette.responses import JSONResponse, Response
from upstream import ACCOUNT, SILENCE, SUBACCOUNT, Model, problem, sid

from twilio_mcp import consent
from twilio_mcp.errors import explained
from twilio_mcp.segments import segments

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


def answering(content: Any, asked: list[str], action: str = "accept") -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return an elicitation handler that gives a fixed answer."""

    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": action, **({} if content is None else {"content": content})}

    return elicit


def test_a_person_is_asked_before_many_are_written_to(with_server: Run) -> None:
    asked: list[str] = []

    async def work(client: Client, model: Model) -> None:
        assert (await told(client, "send_to_many", to=MANY, body="Hello", **SENDER))["taken"] == 7
        assert sorted(sent(model)) == sorted(MANY)

    with_server(work, elicitation=answering({"go_ahead": True}, asked))
    (question,) = asked
    assert "Send 7 texts of 1 segment each from +15017122661 to +15558670000, +15558670001, +15558670002" in question
    assert "and 4 more: 'Hello'" in question


@pytest.mark.parametrize(
    ("action", "content"),
    [("decline", None), ("cancel", None), ("accept", {"go_ahead": False}), ("accept", {})],
)
def test_what_is_no_yes_sends_nothing(with_server: Run, action: str, content: Any) -> None:
    async def work(client: Client, model: Model) -> None:
        assert "Nothing was sent" in await refused(client, "send_to_many", to=MANY, body="Hello", **SENDER)
        assert sent(model) == []

    with_server(work, elicitation=answering(content, [], action))


async def refused_with_code(client: Client, **arguments: Any) -> str:
    """Return the confirmation code in a refusal."""
    said = await refused(client, "send_to_many", **arguments, **SENDER)
    assert "Send 7 texts of 1 segment each from +15017122661" in said
    return said.rpartition('confirm="')[2].partition('"')[0]


def test_a_client_that_can_ask_is_asked_whatever_confirm_says(with_server: Run) -> None:
    asked: list[str] = []

    async def work(client: Client, model: Model) -> None:
        for confirm in ("Send 7 texts of 1 segments each", "yes", ""):
            await refused(client, "send_to_many", to=MANY, body="Hello", confirm=confirm, **SENDER)
        assert (len(asked), sent(model)) == (3, [])

    with_server(work, elicitation=answering({"go_ahead": False}, asked))


def test_where_nobody_can_be_asked_a_code_agrees_to_one_text_to_these_people_once(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        code = await refused_with_code(client, to=MANY, body="Hello")
        assert "cannot ask" in await refused(client, "send_to_many", to=MANY, body="Hello", confirm="yes", **SENDER)
        await refused(client, "send_to_many", to=MANY, body="Goodbye", confirm=code, **SENDER)
        await refused(client, "send_to_many", to=[*MANY, "+15558679999"], body="Hello", confirm=code, **SENDER)
        await refused(client, "send_to_many", to=MANY, body="Hello", confirm=code, fromNumber="+15017122662")
        assert sent(model) == []
        given = {"to": MANY[::-1], "body": "Hello", "confirm": code, **SENDER}
        assert (await told(client, "send_to_many", **given))["taken"] == 7
        await refused(client, "send_to_many", **given)
        assert len(sent(model)) == 7

    with_server(work)


def test_small_calls_are_counted_together_and_single_messages_with_them(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        await told(client, "send_to_many", to=MANY[:3], body="Hello", **SENDER)
        for number in MANY[3:5]:
            await told(client, "send_message", To=number, From="+15017122661", Body="Hello")
        assert len(sent(model)) == 5
        said = await refused(client, "send_message", To=MANY[5], From="+15017122661", Body="Hello")
        assert "use send_to_many" in said
        await refused(client, "send_to_many", to=MANY[5:], body="Hello", **SENDER)
        assert len(sent(model)) == 5

    with_server(work)


def test_a_person_is_asked_for_a_single_message_too_and_what_they_agree_to_does_not_count(with_server: Run) -> None:
    asked: list[str] = []

    async def always(client: Client, model: Model) -> None:
        await told(client, "send_message", To=MANY[0], MessagingServiceSid="MG" + "0" * 32, Body="Hello")
        assert (len(asked), len(sent(model))) == (1, 1)

    async def after(client: Client, model: Model) -> None:
        await told(client, "send_to_many", to=MANY, body="Hello", **SENDER)
        await told(client, "send_to_many", to=MANY[:5], body="Hello", **SENDER)
        assert (len(asked), len(sent(model))) == (2, 12)

    with_server(always, {"TWILIO_ASK_ABOVE": "0"}, elicitation=answering({"go_ahead": True}, asked))
    assert f"Send 1 text of 1 segment each from MG{'0' * 32} to +15558670000: 'Hello'" in asked[0]
    with_server(after, elicitation=answering({"go_ahead": True}, asked))


def test_the_number_above_which_is_asked_is_the_owners(with_server: Run) -> None:
    async def strict(client: Client, model: Model) -> None:
        await refused(client, "send_to_many", to=MANY[:1], body="Hello", **SENDER)
        await refused(client, "send_message", To=MANY[0], From="+15017122661", Body="Hello")
        assert sent(model) == []

    async def loose(client: Client, _: Model) -> None:
        await told(client, "send_to_many", to=MANY, body="Hello", **SENDER)

    with_server(strict, {"TWILIO_ASK_ABOVE": "0"})
    with_server(loose, {"TWILIO_ASK_ABOVE": "7"})


@pytest.mark.parametrize("given", ["abc", "-1", "5.5", "٥"])
def test_a_setting_that_is_no_number_is_an_error(with_server: Run, given: str) -> None:
    async def work(client: Client, model: Model) -> None:
        said = await refused(client, "send_to_many", to=MANY[:1], body="Hello", **SENDER)
        assert "TWILIO_ASK_ABOVE is" in said
        assert sent(model) == []

    with_server(work, {"TWILIO_ASK_ABOVE": given})


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Response(status_code=201), ""),
        (Response("<html>ok</html>", 201, media_type="text/html"), ""),
        (JSONResponse([1], 201), "has no message SID"),
        (JSONResponse(None, 201), "has no message SID"),
        (JSONResponse({"status": "queued"}, 201), "has no message SID"),
        (problem(500, 20500, "Internal Server Error"), "500"),
        (problem(408, 20408, "Request Timeout"), "408"),
        (problem(499, 20499, "Client Closed Request"), "499"),
        (SILENCE, "did not answer"),
    ],
    ids=["empty", "html", "list", "null", "no sid", "500", "408", "499", "silence"],
)
def test_one_answer_that_nobody_can_read_leaves_the_others(with_server: Run, answer: Response, says: str) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead("POST", "/Messages.json", None, None, answer, None)
        found = await told(client, "send_to_many", to=MANY[:4], body="Hello", **SENDER)
        assert (found["taken"], found["unknown"], found["refused"], found["not_tried"]) == (3, 1, 0, 0)
        lost = found["messages"][0]
        assert (lost["outcome"], lost["sid"]) == ("unknown", "")
        assert says in lost["problem"]
        assert "check with list_messages before you send it again" in lost["problem"]
        assert "try again" not in lost["problem"]
        assert all(one["sid"].startswith("SM") for one in found["messages"][1:])

    with_server(work, {"TWILIO_TIMEOUT": "2"})


@pytest.mark.parametrize(
    "answer",
    [
        problem(500, 20500, "Internal Server Error"),
        problem(408, 20408, "Request Timeout"),
        problem(499, 20499, "Client Closed Request"),
        SILENCE,
    ],
    ids=["500", "408", "499", "silence"],
)
def test_a_single_message_or_call_without_an_answer_may_have_been_made(with_server: Run, answer: Response) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead("POST", ".json", answer)
        pair = {"To": MANY[0], "From": "+15017122661"}
        for tool, given, where in (
            ("send_message", {"Body": "Hello"}, "list_messages"),
            ("make_call", {"Twiml": "<Response/>"}, "list_calls"),
        ):
            said = await refused(client, tool, **pair, **given)
            assert f"check with {where} before you send it again" in said
            assert "try again later" not in said

    with_server(work, {"TWILIO_TIMEOUT": "1", "MCPFACTORY_PROFILE": "full"})


def limited(seconds: str) -> Response:
    answer = problem(429, 20429, "Too Many Requests")
    answer.headers["Retry-After"] = seconds
    return answer


def test_a_short_limit_is_waited_for_and_a_long_one_ends_the_round(with_server: Run) -> None:
    async def short(client: Client, model: Model) -> None:
        model.instead("POST", "/Messages.json", None, limited("1"), None)
        assert (await told(client, "send_to_many", to=MANY[:3], body="Hello", **SENDER))["taken"] == 3
        assert len(sent(model)) == 4

    async def long(client: Client, model: Model) -> None:
        model.instead("POST", "/Messages.json", None, limited("600"))
        found = await told(client, "send_to_many", to=MANY, body="Hello", **SENDER)
        assert found["taken"] == 1
        assert found["refused"] + found["not_tried"] == 6
        assert found["not_tried"] >= 2
        assert len(sent(model)) <= 5
        rows = {one["outcome"]: one["problem"] for one in found["messages"]}
        assert "Retry-After: 600 seconds" in rows["refused"]
        assert "Retry-After: 600 seconds" in rows["not tried"]

    with_server(short)
    with_server(long, {"TWILIO_ASK_ABOVE": "10"})


def test_wrong_credentials_end_the_round_at_the_first(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "send_to_many", to=MANY[:5], body="Hello", **SENDER)
        assert (found["refused"], found["not_tried"], len(sent(model))) == (1, 4, 1)
        assert "Twilio error 20003" in found["messages"][0]["problem"]

    with_server(work, {"TWILIO_PASSWORD": "wrong-token-of-the-tests"})


@pytest.mark.parametrize("number", ["+1555867٥٣١٠", "+0155586753", "15558675310"])
def test_numbers_have_the_digits_of_ascii(with_server: Run, number: str) -> None:
    async def work(client: Client, model: Model) -> None:
        await refused(client, "send_to_many", to=[number], body="Hello", **SENDER)
        assert sent(model) == []

    with_server(work)


def test_channels_are_not_mixed(with_server: Run) -> None:
    whatsapp = f"whatsapp:{MANY[0]}"

    async def work(client: Client, model: Model) -> None:
        said = await refused(client, "send_to_many", to=[whatsapp], body="Hello", **SENDER)
        assert "different channels" in said
        said = await refused(client, "send_to_many", to=MANY[:1], body="Hello", fromNumber="whatsapp:+15017122661")
        assert "different channels" in said
        service = "MG" + "0" * 32
        said = await refused(client, "send_to_many", to=[whatsapp, MANY[1]], body="Hello", messagingServiceSid=service)
        assert "some do not" in said
        said = await refused(client, "send_message", To=whatsapp, Body="Hello", From="+15017122661")
        assert "different channels" in said
        assert sent(model) == []
        pair = {"to": [whatsapp], "fromNumber": "whatsapp:+15017122661"}
        assert (await told(client, "send_to_many", body="Hello", **pair))["taken"] == 1

    with_server(work)


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("send_message", {"To": MANY[0], "From": "+15017122661"}, "Body or MediaUrl"),
        ("send_message", {"To": MANY[0], "From": "+15017122661", "Body": ""}, "Body or MediaUrl"),
        ("make_call", {"To": MANY[0], "From": "+15017122661"}, "Twiml or Url"),
        ("redact_or_cancel_message", {"Sid": sid("SM", 1)}, "Body or Status"),
    ],
)
def test_what_would_do_nothing_is_not_sent(with_server: Run, tool: str, arguments: dict[str, str], says: str) -> None:
    async def work(client: Client, model: Model) -> None:
        assert says in await refused(client, tool, **arguments)
        assert model.seen == []

    with_server(work, {"MCPFACTORY_PROFILE": "full"})


def test_a_subaccount_is_named_and_the_own_account_is_not(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        await client.call_tool("list_messages", {})
        await client.call_tool("list_messages", {"AccountSid": SUBACCOUNT})
        accounts = [path.split("/")[3] for _, path, _ in model.forms]
        assert accounts == [ACCOUNT, SUBACCOUNT]

    with_server(work)


def test_an_api_key_needs_the_account(with_server: Run) -> None:
    async def without(client: Client, model: Model) -> None:
        for tool, arguments in (("list_messages", {}), ("send_message", {"To": MANY[0], "Body": "Hello"})):
            assert "TWILIO_ACCOUNT_SID is not set" in await refused(client, tool, **arguments)
        assert model.seen == []
        assert "401" in await refused(
            client, "list_messages", AccountSid=ACCOUNT
        )  # the mock API rejects keys: a request was sent

    with_server(without, {"TWILIO_USERNAME": "SK" + "0" * 32})


def test_refusals_come_in_twilios_words(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        said = await refused(client, "send_message", To="+15005550001", Body="Hello", From="+15017122661")
        assert "is not a valid phone number" in said
        assert "Twilio error 21211: https://www.twilio.com/docs/errors/21211" in said
        assert "check it with look_up_number" in said
        said = await refused(client, "send_message", To="+15005550002", Body="Hello", From="+15017122661")
        assert "Twilio error 21610" in said
        assert "they can send START" in said
        assert "Give either fromNumber or" in await refused(client, "send_to_many", to=MANY[:1], body="Hello")

    with_server(work)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("x" * 160, 1), ("x" * 161, 2), ("x" * 307, 3), ("ш" * 70, 1), ("ш" * 71, 2), ("ш" * 134, 2), ("ш" * 135, 3),
        ("😀" * 35, 1), ("😀" * 36, 2), ("[" * 80, 1), ("[" * 100, 2), ("é" * 100, 1), ("`" + "a" * 100, 2), ("€" * 80, 1), ("ç" * 71, 2),
    ],
)  # fmt: skip
def test_segments_are_counted_as_they_are_billed(body: str, count: int) -> None:
    assert segments(body) == count


def test_an_unknown_code_is_told_in_twilios_words_with_a_link() -> None:
    assert explained(99999, "Odd") == ("Odd", "see https://www.twilio.com/docs/api/errors/99999")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_a_no_is_a_no_though_the_window_is_over_when_it_comes(monkeypatch: pytest.MonkeyPatch, revision: str) -> None:
    monkeypatch.setenv(consent.ASK_ABOVE, "1")
    monkeypatch.setattr(consent, "_unasked", deque([(time.monotonic(), MANY[0])]))
    server = Server("one")

    @server.tool
    async def send(ctx: Context) -> str:
        """Send one text."""
        await consent.agree(ctx, consent.Sending("+15017122661", (MANY[1],), "Hello"))
        return "sent"

    def elicit(_: Any) -> dict[str, Any]:
        consent._unasked.clear()  # as if ten minutes had passed
        return {"action": "decline"}

    async def work() -> None:
        async with connect(server, revision, elicitation=elicit) as client:
            assert "Nothing was sent: the person did not agree" in await refused(client, "send")
            result = await client.call_tool("send")  # a new call, below the limit
            assert result["content"][0]["text"] == "sent"

    asyncio.run(work())
