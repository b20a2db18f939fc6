"""Tests of the hand-written tools against the mock API: summaries, consent, and hidden credentials."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from starlette.responses import JSONResponse, Response
from upstream import BOT, DRAFT, OTHER, SECRET, SOURCE, Model, ago, lead

from closebot_mcp.secrets import hidden_text

Run = Callable[..., Any]


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result["content"]
    found = result.get("structuredContent")
    if found is None:
        return result["content"][0]["text"]
    return found["result"] if set(found) == {"result"} else found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result["isError"]
    return str(result["content"][0]["text"])


def changes(model: Model) -> list[tuple[str, str]]:
    """Return the requests that changed something; a search is a POST, but changes nothing."""
    return [(method, path) for method, path, _ in model.asked if method != "GET" and not path.endswith("/search")]


def answering(go_ahead: bool, asked: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"go_ahead": go_ahead}}

    return elicit


def test_bots_in_short(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        front, recall = await told(client, "bots_overview")
        assert (front["published"], front["draft_since"], front["sources"][0]["on"]) == ("3", "", True)
        assert (recall["published"], recall["sources"][0]["channels"]) == ("", ["SMS"])
        assert recall["draft_since"] == "2026-11-20T10:00:00Z"
        assert [one["id"] for one in await told(client, "bots_overview", words="dentist")] == [DRAFT]

    with_server(work)


def test_a_bot_is_switched_off_and_the_rest_of_its_attachment_stays(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "switch_bot", botId=BOT, sourceId=SOURCE, on=False)
        assert (found["on"], found["name"]) == (False, "Yoga Centre")
        (sent,) = [body for method, path, body in model.asked if method == "POST"]
        tags = [{"name": "lead-ad", "approveDeny": True, "id": "t1"}]
        assert sent == {"enabled": False, "channels": ["SMS"], "tags": tags, "personaNameOverride": "Maria"}
        assert "hint: attach_source" in await refused(client, "switch_bot", botId=BOT, sourceId=OTHER, on=False)

    with_server(work)


def test_a_person_is_asked_before_a_bot_answers_real_leads(with_server: Run) -> None:
    asked: list[str] = []

    async def agreed(client: Client, model: Model) -> None:
        await told(client, "switch_bot", botId=DRAFT, sourceId=OTHER, on=True)
        assert "is published" in await told(client, "publish_draft", botId=DRAFT)
        assert changes(model) == [("POST", f"/bot/{DRAFT}/source/{OTHER}"), ("POST", f"/bot/{DRAFT}/publish")]

    async def against(client: Client, model: Model) -> None:
        assert "did not agree" in await refused(client, "switch_bot", botId=DRAFT, sourceId=OTHER, on=True)
        assert "did not agree" in await refused(client, "publish_draft", botId=DRAFT)
        assert changes(model) == []

    with_server(agreed, elicitation=answering(True, asked))
    assert "Recall answer real leads in Dentist" in asked[0]
    assert "draft of the bot Recall: it will talk with real leads in Dentist" in asked[1]
    with_server(against, elicitation=answering(False, asked))
    with_server(against, elicitation=lambda _: {"action": "decline"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete_for_good", {"kind": "bot", "id": BOT}),
        ("delete_for_good", {"kind": "persona", "id": "per_MARIA"}),
        ("delete_for_good", {"kind": "lead", "id": "lead_1"}),
        ("delete_for_good", {"kind": "file", "id": "file_1"}),
        ("publish_draft", {"botId": DRAFT}),
    ],
)
def test_where_nobody_can_be_asked_nothing_is_lost(with_server: Run, tool: str, arguments: dict[str, str]) -> None:
    async def work(client: Client, model: Model) -> None:
        said = await refused(client, tool, **arguments)
        assert "cannot ask one" in said
        assert "CLOSEBOT_WITHOUT_QUESTIONS" in said
        assert changes(model) == []

    with_server(work)


def test_an_owner_may_do_without_questions(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        assert "Front desk" in await told(client, "delete_for_good", kind="bot", id=BOT)
        assert BOT not in model.bots

    with_server(work, {"CLOSEBOT_WITHOUT_QUESTIONS": "1"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list_sources", {}), ("get_source", {"id": SOURCE}), ("list_bots", {}), ("get_bot", {"id": BOT})],
)
def test_credentials_of_the_crm_do_not_reach_a_model(with_server: Run, tool: str, arguments: dict[str, str]) -> None:
    async def work(client: Client, _: Model) -> None:
        result = await client.call_tool(tool, arguments)
        assert not result.get("isError")
        assert SECRET not in json.dumps(result)
        assert "(hidden)" in result["content"][0]["text"]
        assert "Yoga Centre" in result["content"][0]["text"]

    with_server(work)


def test_a_bot_is_tried_and_the_conversation_deleted(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "try_bot", botId=DRAFT, messages=["Hi", "Saturday?"], sourceId=OTHER)
        assert [turn["bot"] for turn in found["turns"]] == ["You said: Hi", "You said: Saturday?"]
        assert model.sessions == {}
        bound = [body for method, _, body in model.asked if method == "PUT"]
        assert bound == [{"mimicSourceId": OTHER}]

    with_server(work)


def test_why_a_bot_does_not_answer_is_told(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.answers = False
        found = await told(client, "try_bot", botId=DRAFT, messages=["Hi", "Still there?"])
        assert [turn["problem"] for turn in found["turns"]] == ["The flow has no step after Source"]
        model.credits = False
        said = await refused(client, "try_bot", botId=DRAFT, messages=["Hi"])
        assert "The wallet is empty" in said
        assert model.sessions == {}

    with_server(work)


def test_a_conversation_in_order_with_what_the_bot_did(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        found = await told(client, "read_conversation", leadId="lead_1")
        assert [line["who"] for line in found["lines"]] == ["lead", "bot", "lead", "bot"]
        assert found["lines"][-1]["did"] == ["booked: Trial class"]
        assert (found["whole"], found["last_failure"], found["source"]) == (True, "No credits", "Yoga Centre")
        short = await told(client, "read_conversation", leadId="lead_1", most=1)
        assert ([line["text"] for line in short["lines"]], short["whole"]) == (
            ["You are booked for Monday at 9."],
            False,
        )

    with_server(work)


def test_who_waits_is_grouped_by_reason(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "find_unanswered")
        assert (found["looked_at"], found["total"]) == (4, 4)
        groups = [(one["reason"], one["leads"]) for one in found["groups"]]
        assert groups == [("No credits", 2), ("no reason is given", 1)]
        assert [one["name"] for one in found["groups"][0]["longest"]] == ["Jordan Lee", "Ana Ruiz"]
        model.leads = {f"l{number}": lead(f"l{number}", "A", 9, "to_bot") for number in range(250)}
        model.seen.clear()
        many = await told(client, "find_unanswered", most=220, sourceId=SOURCE)
        assert (many["looked_at"], many["total"], many["groups"][0]["leads"]) == (220, 250, 220)
        assert [(body["offset"], body["count"]) for _, _, body in model.asked] == [(0, 100), (100, 100), (200, 20)]

    with_server(work)


def test_periods_are_compared_with_the_days_before(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "compare_periods", start="2026-11-16", end="2026-11-22", sourceId=SOURCE)
        assert found["period_before"] == "2026-11-09 to 2026-11-15"
        figures = {one["name"]: (one["now"], one["before"], one["change"]) for one in found["figures"]}
        assert figures["bookings"] == (14, 7, 100.0)
        assert figures["bookings per 100 contacts"] == (25.0, 25.0, 0.0)
        asked = [body for _, path, body in model.asked if path.endswith("agencyMetric")]
        assert len(asked) == 8
        assert {one["sourceId"] for one in asked} == {SOURCE}
        assert {one["resolution"] for one in asked} == {"daily"}
        said = await refused(client, "compare_periods", start="2026-11-22", end="2026-11-16")
        assert "is before the first" in said

    with_server(work)


def test_times_of_the_model_are_those_of_the_api() -> None:
    assert ago(0).endswith("Z")


@pytest.mark.parametrize("switched", [{"enabled": True}, {}])
def test_attaching_a_bot_so_that_it_answers_asks_a_person(with_server: Run, switched: dict[str, bool]) -> None:
    asked: list[str] = []
    given = {"id": DRAFT, "sourceId": OTHER, "channels": ["SMS"], "tags": [], **switched}

    async def against(client: Client, model: Model) -> None:
        await refused(client, "attach_source", **given)
        assert changes(model) == []

    async def agreed(client: Client, model: Model) -> None:
        await client.call_tool("attach_source", given)
        assert changes(model) == [("POST", f"/bot/{DRAFT}/source/{OTHER}")]

    power = {"MCPFACTORY_PROFILE": "power"}
    with_server(against, power)
    with_server(against, power, elicitation=answering(False, asked))
    with_server(agreed, power, elicitation=answering(True, asked))
    assert len(asked) == 2
    assert f"Attach the bot {DRAFT} to {OTHER}, where it answers real leads at once" in asked[1]


def test_the_plain_tool_that_publishes_asks_a_person_too(with_server: Run) -> None:
    asked: list[str] = []
    full = {"MCPFACTORY_PROFILE": "full"}

    async def against(client: Client, model: Model) -> None:
        assert "Nothing was done" in await refused(client, "publish_bot", id=DRAFT)
        assert changes(model) == []

    async def agreed(client: Client, model: Model) -> None:
        assert not (await client.call_tool("publish_bot", {"id": DRAFT})).get("isError")
        assert changes(model) == [("POST", f"/bot/{DRAFT}/publish")]

    with_server(against, full)
    with_server(against, full, elicitation=answering(False, asked))
    with_server(agreed, full, elicitation=answering(True, asked))
    assert len(asked) == 2
    assert f"Publish the draft of the bot {DRAFT}: it will talk with real leads" in asked[1]


def test_attaching_a_bot_that_stays_off_and_switching_off_ask_nobody(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        given = {"id": DRAFT, "sourceId": OTHER, "channels": ["SMS"], "tags": [], "enabled": False}
        assert not (await client.call_tool("attach_source", given)).get("isError")
        await told(client, "update_bot", id=BOT, followUpActive=False)
        assert "a person must agree" in await refused(client, "update_bot", id=BOT, followUpActive=True)
        assert changes(model) == [("POST", f"/bot/{DRAFT}/source/{OTHER}"), ("PUT", f"/bot/{BOT}")]

    with_server(work, {"MCPFACTORY_PROFILE": "power"})


@pytest.mark.parametrize(
    "body",
    [
        {"message": f'bad source {{"accessToken":"{SECRET}"}}'},
        {"message": f"bad source, accessToken: {SECRET}"},
        {"message": f"bad source: api_key={SECRET}, try again"},
        {"error": {"message": [f'"webhookSecret" : ["{SECRET}"]']}},
    ],
)
def test_credentials_in_errors_do_not_reach_a_model(with_server: Run, body: dict[str, Any]) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead["GET", f"/bot/{BOT}"] = JSONResponse(body, 400)
        for tool, given in (("get_bot", {"id": BOT}), ("switch_bot", {"botId": BOT, "sourceId": SOURCE, "on": False})):
            said = await refused(client, tool, **given)
            assert SECRET not in said
            assert "(hidden)" in said
            assert "400" in said

    with_server(work)


FORMS = [
    {"accessToken": [SECRET]},
    {"key": {"v": SECRET}},
    {"raw": json.dumps({"accessToken": SECRET})},
    {"raw": json.dumps({"raw": json.dumps({"accessToken": SECRET})})},
    {"apiKey": SECRET}, {"access_token": SECRET}, {"token": SECRET}, {"webhookSecret": SECRET}, {"refreshToken": SECRET},
    {"client-secret": SECRET}, {"Authorization": f"Bearer {SECRET}"}, {"note": f"access_token: {SECRET}"},
    {"note": f"authorization: Bearer {SECRET}"},
]  # fmt: skip


def test_credentials_in_any_form_do_not_reach_a_model(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        for form in FORMS:
            bot = {**model.bots[BOT], **form, "sources": [{**model.bots[BOT]["sources"][0], **form}]}
            for path, answer in (("/bot", [bot]), (f"/bot/{BOT}", bot), ("/export", {"id": BOT, "kdl": "x", **form})):
                model.instead["GET", path] = JSONResponse(answer)
            for tool, given in (("list_bots", {}), ("get_bot", {"id": BOT}), ("export_bot", {"id": BOT})):
                result = await client.call_tool(tool, given)
                assert not result.get("isError")
                assert SECRET not in json.dumps(result), (form, tool)

    with_server(work, {"MCPFACTORY_PROFILE": "power"})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"bad crmAccessToken: {SECRET}", "bad crmAccessToken: (hidden)"),
        (f"?a=1&key={SECRET}&b=2", "?a=1&key=(hidden)&b=2"),
        (f"X-CB-KEY: {SECRET}", "X-CB-KEY: (hidden)"),
        (f"key: {SECRET}; next", "key: (hidden); next"),
        ("the API key: abc1; next", "the API key: (hidden); next"),
        ("'key': abc1, key=abc2, key => abc3", "'key': (hidden), key=(hidden), key => (hidden)"),
        ("token: 123456, admin_token: 123456", "token: (hidden), admin_token: (hidden)"),
        ("prompt_token: 5x5", "prompt_token: (hidden)"),
        ("home page, token: abc", "home page, token: (hidden)"),
        (f"LOGIN_PASSWORD={SECRET}, next", "LOGIN_PASSWORD=(hidden), next"),
        (f"Authorization: Basic {SECRET}\nnext", "Authorization: (hidden)\nnext"),
        (f'Authorization: Digest username="x", response="{SECRET}"\nnext', "Authorization: (hidden)\nnext"),
        (f"authorization: Custom-1 {SECRET}", "authorization: (hidden)"),
        (f"token: Token {SECRET} next", "token: (hidden) next"),
        (f'"password": "a\\"{SECRET}", "x": 1', '"password": "(hidden)", "x": 1'),
        (r'"password": "a\\", "x": 1', '"password": "(hidden)", "x": 1'),
        (f'"hookSecret": [["a"], ["{SECRET}"]] next', '"hookSecret": "(hidden)" next'),
        (f'"secret": {{"a": {{"b": "}}"}}, "c": "{SECRET}"}} next', '"secret": "(hidden)" next'),
        (f'"secret": "cut off {SECRET}', '"secret": "(hidden)"'),
        (f'"secret": ["cut off", "{SECRET}', '"secret": "(hidden)"'),
        (f'said "accessToken: {SECRET}"', 'said "accessToken: (hidden)"'),
        ("Your key: 9f8e7d6c5b4a, next", "Your key: (hidden), next"),
        ("key: sk_live_12345", "key: (hidden)"),
        ("Facebook page token: EAAGm0PX4ZCpsBAKz", "Facebook page token: (hidden)"),
        ("api  key: abc", "api  key: (hidden)"),
        ("API\nkey: abc", "API\nkey: (hidden)"),
        (rf'in "{{\"apiKey\": \"a\\\"{SECRET}\", \"x\": 1}}"', r'in "{\"apiKey\": \"(hidden)\", \"x\": 1}"'),
    ],
)
def test_what_a_text_says_after_the_name_of_a_credential_is_hidden(text: str, left: str) -> None:
    assert hidden_text(text) == left


@pytest.mark.parametrize(
    "value",
    [
        {"crmAccessToken": SECRET},
        {"hookSecret": {"a": [SECRET]}},
        {"headers": [{"name": "Authorization", "value": f"Basic {SECRET}"}]},
        {"serviceAccountKey": SECRET},
        {"nested": json.dumps({"a": json.dumps({"DB_PASSWORD": SECRET})})},
    ],
)
def test_members_are_hidden_by_the_endings_of_their_names(value: dict[str, Any]) -> None:
    shown = json.loads(hidden_text(json.dumps(value)))
    assert SECRET not in json.dumps(shown)
    assert shown.keys() == value.keys()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"nextPageToken": "abc", "totalTokens": 5, "primaryKey": "id", "hasToken": True, "token": None}),
        "a monkey: banana, turkey=1, tokens: 500",
        "key: value pairs are good; the key: be brief",
        "Key: 24 hours after the first message; the key: 15:30 or later",
        "prompt_token: 5, completionToken=7.5, Total token: 12.",
        "Page token: abc, next page token = def",
        json.dumps({"promptToken": 5, "note": "key: value"}),
        'broken {"token": null, "key": "email", "value": "ana@example.com"',
    ],
)
def test_what_only_sounds_like_a_credential_stays(text: str) -> None:
    assert hidden_text(text) == text


def test_what_a_lead_writes_is_read_in_one_pass() -> None:
    for text in ("\\" * 300_000, '\\"' * 100_000):  # takes hours if the time is quadratic
        assert hidden_text(text) == text
    many = 100_000
    for text in ("a-" * many, 'token:"' * many, "token:[" * many, 'token:"' + "\\" * many, "token:{" + '\\\\"' * many):
        hidden_text(text)
    nested = "\\" * 15
    assert "abc123" not in hidden_text(f'{nested}"accessToken{nested}": {nested}"abc123{nested}"')


def test_fields_of_leads_keep_their_names(with_server: Run) -> None:
    fields = [{"key": "email", "value": "ana@example.com"}, {"value": "+15558675310", "key": "phone"}]

    async def work(client: Client, model: Model) -> None:
        model.leads["lead_1"]["fields"] = fields
        result = await client.call_tool("get_lead", {"leadId": "lead_1"})
        assert result["structuredContent"]["fields"] == fields
        assert json.loads(result["content"][0]["text"])["fields"] == fields

    with_server(work)


def test_answers_that_were_billed_are_given_though_the_conversation_is_left(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        original = model._testing

        def failing(method: str, parts: list[str], body: dict[str, Any]) -> Any:
            return JSONResponse({"error": "Broken"}, 500) if method == "DELETE" else original(method, parts, body)

        model._testing = failing  # type: ignore[method-assign]
        found = await told(client, "try_bot", botId=DRAFT, messages=["Hi"])
        assert [turn["bot"] for turn in found["turns"]] == ["You said: Hi"]
        (left,) = model.sessions
        assert f"The test conversation {left} of the bot {DRAFT} is left" in found["warning"]
        model.credits = False
        said = await refused(client, "try_bot", botId=DRAFT, messages=["Hi"])
        assert "The wallet is empty" in said
        assert "is left" in said

    with_server(work)


def test_leads_without_a_time_are_named(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        for name, time in (("lead_1", None), ("lead_2", "yesterday, about noon")):
            model.leads[name]["lastMessageTime"] = time
        found = await told(client, "find_unanswered")
        assert found["without_time"] == ["Jordan Lee", "Ana Ruiz"]
        assert [(one["reason"], one["leads"]) for one in found["groups"]] == [("no reason is given", 1)]

    with_server(work)


@pytest.mark.parametrize(
    "answer",
    [JSONResponse(None), JSONResponse([1]), JSONResponse({}), Response("<html>gateway</html>", media_type="text/html"), Response()],
    ids=["null", "list", "empty object", "html", "empty"],
)  # fmt: skip
def test_answers_of_another_form_are_told(with_server: Run, answer: Response) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead = {(method, ""): answer for method in ("GET", "POST")}
        for tool, given in (
            ("bots_overview", {}),
            ("read_conversation", {"leadId": "lead_1"}),
            ("compare_periods", {"start": "2026-11-16", "end": "2026-11-22"}),
            ("try_bot", {"botId": BOT, "messages": ["Hi"]}),
            ("find_unanswered", {}),
            ("publish_draft", {"botId": BOT}),
        ):
            result = await client.call_tool(tool, given)
            assert "internal error" not in result["content"][0]["text"], tool
            assert result.get("isError") or answer.body in (b"{}", b"[1]"), tool

    with_server(work, {"CLOSEBOT_WITHOUT_QUESTIONS": "1"})


@pytest.mark.parametrize("end", ["nonsense", "2026-13-01", ""])
def test_an_end_that_is_no_day_is_refused(with_server: Run, end: str) -> None:
    async def work(client: Client, model: Model) -> None:
        said = await refused(client, "compare_periods", start="2026-11-16", end=end)
        assert "end" in said
        for tool, given in (
            ("get_metric", {"metric": "bookings", "resolution": "daily", "start": "2026-11-16T00:00:00Z"}),
        ):
            assert "end" in await refused(client, tool, **given, end=end)
        assert model.asked == []

    with_server(work, {"MCPFACTORY_PROFILE": "full"})
