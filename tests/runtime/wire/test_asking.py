"""What servers ask of clients, and what they tell those who listen, on the wire of each revision."""

from __future__ import annotations

import asyncio
import enum
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, Field

from mcpfactory_runtime import Context, Elicit, Roots, Sample, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.protocol.peer import META_SUBSCRIPTION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, R2025_06_18, R2025_11_25, REVISIONS, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement

from .speech import Json, Speaker, speak

pytestmark = pytest.mark.anyio

SCHEMAS = Path(__file__).parents[4] / "shared" / "reference" / "schema"
ASKED = [revision for revision in REVISIONS.values() if "elicitation/create" in revision.client_requests]
RICH = [revision for revision in ASKED if revision is not R2025_06_18]
eliciting = pytest.mark.parametrize("revision", ASKED, ids=str)
rich = pytest.mark.parametrize("revision", RICH, ids=str)


async def question(client: Speaker, tool: str) -> tuple[str, Json]:
    """What a call of the tool asks first: method and parameters, in either lifecycle."""
    message = client.make("tools/call", {"name": tool, "arguments": {}})
    await client.say(message)
    if client.revision.modern:
        result = (await client.answer(message["id"]))["result"]
        asked = next(iter(result["inputRequests"].values()))
    else:
        asked = await client.hear()
    return asked["method"], asked.get("params", {})


async def converse(client: Speaker, tool: str, answer: Json) -> Json:
    """Call a tool that asks once, and answer it; the final response."""
    message = client.make("tools/call", {"name": tool, "arguments": {}})
    await client.say(message)
    if not client.revision.modern:
        asked = await client.hear()
        await client.say({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        response: Json = await client.answer(message["id"])
        return response
    result = (await client.answer(message["id"]))["result"]
    again = {
        "name": tool,
        "arguments": {},
        "inputResponses": dict.fromkeys(result["inputRequests"], answer),
        "requestState": result["requestState"],
    }
    return await client.ask("tools/call", again)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Order(BaseModel):
    """An order."""

    name: str = Field(description="who orders")
    size: Size = Size.SMALL
    note: str | None = None
    count: int = 1
    price: float = Field(default=1.5, ge=0)
    gift: bool = False
    mail: str = Field(default="a@b.example", json_schema_extra={"format": "email"})


TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "default": ["a"]}
TITLED_SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}


def forms() -> Server:
    server = Server("forms")

    def asks(name: str, properties: Json) -> None:
        async def ask(ctx: Context) -> str:
            """Ask."""
            answer = await ctx.elicit("?", {"type": "object", "properties": properties})
            return json.dumps([answer.action, answer.content])

        server.tool(name=name)(ask)

    asks("titled", {"colour": TITLED})
    asks("several", {"tags": SEVERAL})
    asks("titled_several", {"tags": TITLED_SEVERAL})
    asks("named", {"colour": {"type": "string", "enum": ["r"], "enumNames": ["Red"], "default": "r"}})
    asks("number", {"age": {"type": "integer", "minimum": 1, "maximum": 9}})

    @server.tool
    async def order(ctx: Context) -> str:
        """Ask for a model."""
        answer = await ctx.elicit("?", Order)
        assert isinstance(answer.content, Order)
        return answer.content.model_dump_json()

    @server.tool
    async def visit(ctx: Context) -> str:
        """Send somebody to a page."""
        return (await ctx.elicit("Pay", url="https://pay.example/1")).action

    @server.tool
    async def nested(ctx: Context) -> str:
        """Ask for more than a form can."""
        try:
            await ctx.elicit("?", {"type": "object", "properties": {"a": {"type": "object"}}})
        except TypeError as error:
            return str(error)
        return "asked"

    @server.tool
    async def bad_page(ctx: Context) -> str:
        """Send somebody nowhere."""
        return (await ctx.elicit("Pay", url="not a url")).action

    return server


@requirement("elicitation.form", "elicitation.enum", "elicitation.no-default")
@pytest.mark.parametrize("revision", [R2025_06_18], ids=str)
async def test_choices_are_enums_with_names_where_there_are_no_titled_ones(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={}) as client:
        _, params = await question(client, "titled")
        assert params["requestedSchema"]["properties"] == {
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
        }
        _, params = await question(client, "named")
        assert params["requestedSchema"]["properties"]["colour"] == {
            "type": "string",
            "enum": ["r"],
            "enumNames": ["Red"],
        }
        _, params = await question(client, "order")
        kinds = params["requestedSchema"]["properties"]
        assert [name for name, field in kinds.items() if "default" in field] == ["gift"]


@requirement("elicitation.no-multi")
@pytest.mark.parametrize("tool", ["several", "titled_several"])
async def test_several_choices_are_not_asked_where_they_cannot_be(tool: str) -> None:
    async with speak(forms(), R2025_06_18, elicitation={}) as client:
        answer = await client.ask("tools/call", {"name": tool, "arguments": {}})
        assert answer["error"]["code"] == INVALID_REQUEST
        assert "tags" in answer["error"]["message"]


@requirement("elicitation.titled-enum", "elicitation.default")
@rich
async def test_titles_defaults_and_several_choices_are_sent_where_they_are_known(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={"form": {}}) as client:
        for tool, name, field in (
            ("titled", "colour", TITLED),
            ("several", "tags", SEVERAL),
            ("titled_several", "tags", TITLED_SEVERAL),
        ):
            _, params = await question(client, tool)
            assert params["requestedSchema"]["properties"] == {name: field}
        _, params = await question(client, "order")
        fields = params["requestedSchema"]["properties"]
        assert fields["size"] == {"type": "string", "enum": ["s", "l"], "default": "s"}
        assert fields["note"] == {"type": "string"}
        assert fields["price"] == {"type": "number", "minimum": 0, "default": 1.5}
        assert fields["mail"] == {"type": "string", "format": "email", "default": "a@b.example"}


@requirement("elicitation.form")
@eliciting
async def test_every_form_is_one_of_the_revisions_schema(revision: Revision) -> None:
    path = SCHEMAS / revision.name / "schema.json"
    if not path.exists():
        pytest.skip(f"the specification's schemas are not at {SCHEMAS}")
    document = json.loads(path.read_text("utf-8"))
    key = "$defs" if "$defs" in document else "definitions"
    validator = jsonschema.Draft202012Validator({key: document[key], "$ref": f"#/{key}/PrimitiveSchemaDefinition"})
    tools = ["titled", "named", "number", "order"] + (["several", "titled_several"] if revision in RICH else [])
    async with speak(forms(), revision, elicitation={}) as client:
        for tool in tools:
            method, params = await question(client, tool)
            assert (method, params["message"]) == ("elicitation/create", "?")
            for field in params["requestedSchema"]["properties"].values():
                assert [error.message for error in validator.iter_errors(field)] == [], field


@requirement("elicitation.flat")
@eliciting
async def test_a_form_with_nested_fields_is_refused_before_it_is_sent(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={}) as client:
        result = await client.call("nested")
        assert "hint:" in result["content"][0]["text"]
        assert client.heard == []


@requirement("elicitation.actions", "elicitation.validated", "input-required.malformed")
@eliciting
async def test_answers_are_checked_against_the_form(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={}) as client:
        for content, good in (({"age": 3}, True), ({"age": 0}, False), ({"age": "x"}, False), ({"age": 2.5}, False)):
            response = await converse(client, "number", {"action": "accept", "content": content})
            assert ("result" in response) is good, content
            assert good or response["error"]["code"] == INVALID_PARAMS
        for action in ("decline", "cancel"):
            response = await converse(client, "number", {"action": action})
            assert json.loads(response["result"]["content"][0]["text"]) == [action, None]
        for wrong in ({}, {"action": "maybe"}, {"action": "accept", "content": []}):
            assert (await converse(client, "number", wrong))["error"]["code"] == INVALID_PARAMS
        chosen = await converse(client, "titled", {"action": "accept", "content": {"colour": "blue"}})
        assert chosen["error"]["code"] == INVALID_PARAMS
        made = await converse(client, "order", {"action": "accept", "content": {"name": "Ann", "size": "l"}})
        assert json.loads(made["result"]["content"][0]["text"])["size"] == "l"


@requirement("elicitation.declared", "elicitation.mode-declared", "elicitation.empty-is-form")
async def test_nobody_is_asked_for_what_was_not_declared(revision: Revision) -> None:
    code = MISSING_CAPABILITY if revision.modern else INVALID_REQUEST
    for capabilities, form, page in (
        ({}, False, False),
        ({"elicitation": {}}, True, False),
        ({"elicitation": {"form": {}}}, True, False),
        ({"elicitation": {"url": {}}}, False, True),
        ({"elicitation": {"form": {}, "url": {}}}, True, True),
    ):
        for tool, allowed, mode in (("number", form, "form"), ("visit", page, "url")):
            may = allowed or (mode == "form" and revision is R2025_06_18 and bool(capabilities))
            async with speak(forms(), revision, **capabilities) as client:
                if may and mode in revision.elicitation_modes:
                    method, _ = await question(client, tool)
                    assert method == "elicitation/create"
                else:
                    assert await client.code("tools/call", {"name": tool, "arguments": {}}) == code
                    assert client.heard == []


@requirement("elicitation.url", "elicitation.url-id", "elicitation.url-no-id")
@rich
async def test_a_page_is_named_with_an_id_only_where_there_are_such(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={"url": {}}) as client:
        _, params = await question(client, "visit")
    assert (params["mode"], params["url"], params["message"]) == ("url", "https://pay.example/1", "Pay")
    assert ("elicitationId" in params) == (revision is R2025_11_25)


@requirement("elicitation.url-absent")
@pytest.mark.parametrize("revision", [R2025_06_18], ids=str)
async def test_nobody_is_sent_to_a_page_before_there_were_pages(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={"url": {}}) as client:
        assert await client.code("tools/call", {"name": "visit", "arguments": {}}) == INVALID_REQUEST


@requirement("elicitation.url-valid")
@rich
async def test_a_page_must_have_an_address(revision: Revision) -> None:
    async with speak(forms(), revision, elicitation={"url": {}}) as client:
        answer = await client.ask("tools/call", {"name": "bad_page", "arguments": {}})
        assert answer.get("result", {"isError": True}).get("isError") is True


# -- sampling and roots --------------------------------------------------------------------------------------------------------

TOOL = {"name": "look", "inputSchema": {"type": "object"}}


def sampling() -> Server:
    server = Server("sampling")

    @server.tool
    async def poem(ctx: Context) -> str:
        """Ask for a poem."""
        answer = await ctx.sample("A poem!", max_tokens=7, systemPrompt="Rhyme.")
        return f"{answer.role} {answer.model}: {answer.text}"

    @server.tool
    async def with_tools(ctx: Context) -> str:
        """Ask with tools."""
        return (await ctx.sample("Look!", tools=[TOOL], toolChoice={"mode": "auto"})).text

    @server.tool
    async def with_context(ctx: Context) -> str:
        """Ask with the context of this server."""
        return (await ctx.sample("Well?", includeContext="thisServer")).text

    @server.tool
    async def places(ctx: Context) -> str:
        """Ask for roots."""
        return ", ".join(root.uri for root in await ctx.roots())

    return server


SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Roses"}}


@requirement("sampling.ask", "sampling.malformed")
async def test_a_sample_is_asked_for_and_read(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        method, params = await question(client, "poem")
        assert method == "sampling/createMessage"
        assert (params["maxTokens"], params["systemPrompt"]) == (7, "Rhyme.")
        assert params["messages"] == [{"role": "user", "content": {"type": "text", "text": "A poem!"}}]
        good = await converse(client, "poem", SAID)
        assert good["result"]["content"][0]["text"] == "assistant m: Roses"
        for wrong in ({}, {**SAID, "content": None}, {**SAID, "content": []}, {**SAID, "content": "Roses"}):
            assert (await converse(client, "poem", wrong))["error"]["code"] == INVALID_PARAMS


@requirement("sampling.declared", "roots.declared", "initialize.respect-capabilities", "input-required.declared")
async def test_neither_samples_nor_roots_are_asked_of_those_who_declared_none(revision: Revision) -> None:
    code = MISSING_CAPABILITY if revision.modern else INVALID_REQUEST
    async with speak(sampling(), revision) as client:
        for tool in ("poem", "places"):
            assert await client.code("tools/call", {"name": tool, "arguments": {}}) == code
        assert client.heard == []


@requirement("sampling.tools-declared")
@rich
async def test_tools_are_sent_to_those_who_declared_them(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        code = MISSING_CAPABILITY if revision.modern else INVALID_REQUEST
        assert await client.code("tools/call", {"name": "with_tools", "arguments": {}}) == code
    async with speak(sampling(), revision, sampling={"tools": {}}) as client:
        _, params = await question(client, "with_tools")
        assert params["tools"] == [TOOL]


@requirement("sampling.no-tools-before")
@pytest.mark.parametrize("revision", [revision for revision in LEGACY.values() if revision not in RICH], ids=str)
async def test_no_tools_are_sent_before_there_were_any(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={"tools": {}}) as client:
        _, params = await question(client, "with_tools")
        assert not {"tools", "toolChoice"} & set(params)


@requirement("sampling.context-declared")
@rich
async def test_context_is_asked_of_those_who_declared_it(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}) as client:
        _, params = await question(client, "with_context")
        assert "includeContext" not in params
    async with speak(sampling(), revision, sampling={"context": {}}) as client:
        _, params = await question(client, "with_context")
        assert params["includeContext"] == "thisServer"


@requirement("roots.list", "roots.unavailable", "roots.changed")
async def test_roots_are_read_or_their_absence_is_an_error(revision: Revision) -> None:
    async with speak(sampling(), revision, roots={"listChanged": True}) as client:
        good = await converse(client, "places", {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]})
        assert good["result"]["content"][0]["text"] == "file:///a, file:///b"
        for wrong in ({}, {"roots": None}, {"roots": ["file:///a"]}):
            assert (await converse(client, "places", wrong))["error"]["code"] == INVALID_PARAMS
        await client.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert await client.silence() == []


@requirement("sampling.refused", "roots.unavailable")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_an_error_of_the_client_ends_the_call_unless_the_handler_takes_it(revision: Revision) -> None:
    async with speak(sampling(), revision, sampling={}, roots={}) as client:
        for tool in ("poem", "places"):
            message = client.make("tools/call", {"name": tool, "arguments": {}})
            await client.say(message)
            asked = await client.hear()
            await client.say({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}})
            assert (await client.answer(message["id"]))["error"] == {"code": -1, "message": "no"}


# -- input_required ------------------------------------------------------------------------------------------------------------


def rounds() -> Server:
    server = Server("rounds")

    @server.tool
    async def two(ctx: Context) -> str:
        """Ask twice, the first time for two things."""
        first = await ctx.ask(a=Elicit("a?", {"type": "object", "properties": {"x": {"type": "string"}}}), b=Roots())
        second = await ctx.ask(c=Sample("c?"))
        return f"{first['a'].content['x']} {first['b'][0].uri} {second['c'].text}"

    return server


@requirement(
    "input-required.instead",
    "input-required.shape",
    "input-required.request-kinds",
    "input-required.several",
    "input-required.repeat",
    "input-required.missing",
    "input-required.extra",
    "caching.not-input-required",
    "stdio.no-requests",
)
async def test_rounds_of_questions_travel_in_results() -> None:
    async with speak(rounds(), LATEST, elicitation={}, roots={}, sampling={}) as client:
        call: Json = {"name": "two", "arguments": {}}
        first = (await client.ask("tools/call", call))["result"]
        assert first["resultType"] == "input_required"
        assert not {"ttlMs", "cacheScope", "content"} & set(first)
        assert {key: asked["method"] for key, asked in first["inputRequests"].items()} == {
            "a": "elicitation/create",
            "b": "roots/list",
        }
        state: Json = {"requestState": first["requestState"]}
        half = {"a": {"action": "accept", "content": {"x": "X"}}, "other": {"y": 1}}
        again = (await client.ask("tools/call", {**call, **state, "inputResponses": half}))["result"]
        assert list(again["inputRequests"]) == ["b"]
        whole = {"b": {"roots": [{"uri": "file:///r"}]}}
        state = {"requestState": again["requestState"]}
        second = (await client.ask("tools/call", {**call, **state, "inputResponses": whole}))["result"]
        assert list(second["inputRequests"]) == ["c"]
        assert second["requestState"] != first["requestState"]
        state = {"requestState": second["requestState"]}
        last = (await client.ask("tools/call", {**call, **state, "inputResponses": {"c": SAID}}))["result"]
        assert (last["resultType"], last["content"][0]["text"]) == ("complete", "X file:///r Roses")
        assert client.heard == []


@requirement("input-required.integrity", "input-required.malformed", "input-required.request")
async def test_a_state_that_is_not_ours_and_answers_that_are_none_are_refused() -> None:
    async with speak(rounds(), LATEST, elicitation={}, roots={}, sampling={}) as client:
        call: Json = {"name": "two", "arguments": {}}
        state = (await client.ask("tools/call", call))["result"]["requestState"]
        wrong: Any
        for wrong in (state + "x", "nonsense", "", 5, None, {}):
            assert await client.code("tools/call", {**call, "requestState": wrong}) == INVALID_PARAMS
        for wrong in ([], "a", 5, None, {"a": 5}, {"a": {"action": "maybe"}}):
            found = await client.code("tools/call", {**call, "requestState": state, "inputResponses": wrong})
            assert found == INVALID_PARAMS, wrong
        other = {"name": "two", "arguments": {"z": 1}, "requestState": state}
        answer = await client.ask("tools/call", other)
        assert answer.get("error", {}).get("code") == INVALID_PARAMS or answer["result"]["isError"]


@requirement("input-required.any-process", "input-required.no-retry")
async def test_another_process_with_the_same_key_goes_on_and_nobody_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPFACTORY_STATE_KEY", "shared")
    call: Json = {"name": "greet", "arguments": {}}
    answer = {"action": "accept", "content": {"name": "Ann", "colour": "green"}}
    first, second = rounds(), rounds()
    for server in (first, second):
        server.add_tool(sample.registry.tools["greet"])
    async with speak(first, LATEST, elicitation={}) as client:
        asked = (await client.ask("tools/call", call))["result"]
        assert client.stream.session.connection.in_flight == {}
    async with speak(second, LATEST, elicitation={}) as client:
        given = {"requestState": asked["requestState"], "inputResponses": {"who": answer}}
        asked = (await client.ask("tools/call", {**call, **given}))["result"]
        answers = dict.fromkeys(asked["inputRequests"], answer)
        given = {"requestState": asked["requestState"], "inputResponses": answers}
        last = (await client.ask("tools/call", {**call, **given}))["result"]
    assert last["content"][0]["text"] == "Ann likes green"


@requirement("input-required.methods")
async def test_only_three_methods_ask() -> None:
    server = Server("curious")

    @server.completion
    async def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        """Ask where nobody may ask."""
        raise McpError(INVALID_REQUEST, "completions have no context to ask with")

    assert LATEST.input_requests == {"tools/call", "prompts/get", "resources/read"}
    async with speak(sample, LATEST, elicitation={}) as client:
        for method, params in (
            ("tools/call", {"name": "greet", "arguments": {}}),
            ("prompts/get", {"name": "asking_prompt"}),
            ("resources/read", {"uri": "memo://asks"}),
        ):
            assert (await client.ask(method, params))["result"]["resultType"] == "input_required"
        for method in ("tools/list", "server/discover"):
            assert (await client.ask(method))["result"]["resultType"] == "complete"


# -- listening ----------------------------------------------------------------------------------------------------------------


async def listen(client: Speaker, **wanted: Any) -> str:
    """Begin to listen; the id of the request, after its acknowledgement."""
    message = client.make("subscriptions/listen", {"notifications": wanted})
    await client.say(message)
    return str(message["id"])


def tag(message: Json) -> Any:
    return message["params"]["_meta"][META_SUBSCRIPTION]


@requirement(
    "listen.acknowledged",
    "listen.only-wanted",
    "listen.tagged",
    "listen.resources",
    "listen.several",
    "meta.subscription-id",
    "tools.list-changed",
    "prompts.list-changed",
    "resources.list-changed",
)
async def test_listening_streams_are_acknowledged_tagged_and_kept_apart() -> None:
    async with speak(sample, LATEST) as client:
        tools = await listen(client, toolsListChanged=True, promptsListChanged=False)
        rest = await listen(
            client, promptsListChanged=True, resourcesListChanged=True, resourceSubscriptions=["memo://today"]
        )
        for name, honoured in (
            (tools, {"toolsListChanged": True}),
            (
                rest,
                {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["memo://today"]},
            ),
        ):
            first = await client.hear()
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert (tag(first), first["params"]["notifications"]) == (name, honoured)
        await client.call("grow")
        told = await client.silence()
        kinds: dict[str, set[str]] = {}
        for message in told:
            kinds.setdefault(tag(message), set()).add(message["method"].removeprefix("notifications/"))
        assert kinds == {
            tools: {"tools/list_changed"},
            rest: {"prompts/list_changed", "resources/list_changed", "resources/updated"},
        }
        assert {m["params"]["uri"] for m in told if m["method"].endswith("updated")} == {"memo://today"}


@requirement("listen.no-listen-no-news")
async def test_who_does_not_listen_is_told_nothing() -> None:
    async with speak(sample, LATEST) as client:
        await client.call("grow")
        assert await client.silence() == []


@requirement("tools.list-changed", "prompts.list-changed", "resources.list-changed")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_sessions_are_told_of_changed_lists(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.call("grow")
        told = {message["method"] for message in await client.silence()}
    assert told == {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


@requirement("listen.malformed")
@pytest.mark.parametrize("wanted", [None, [], "x", {"toolsListChanged": "yes"}, {"resourceSubscriptions": "memo://a"}])
async def test_a_malformed_filter_is_refused(wanted: Any) -> None:
    async with speak(sample, LATEST) as client:
        assert await client.code("subscriptions/listen", {"notifications": wanted}) == INVALID_PARAMS


@requirement("listen.graceful-end")
async def test_the_end_of_the_server_ends_a_listening_stream_with_a_result() -> None:
    async with speak(sample, LATEST) as client:
        name = await listen(client, toolsListChanged=True)
        await client.until("notifications/subscriptions/acknowledged")
        sample.closing.set()
        result = (await asyncio.wait_for(client.answer(name), 5))["result"]
    assert (result["resultType"], result["_meta"][META_SUBSCRIPTION]) == ("complete", name)


@requirement("elicitation.identity")
async def test_an_answer_reaches_only_the_call_that_asked() -> None:
    async with (
        speak(forms(), LATEST_LEGACY, elicitation={}) as ann,
        speak(forms(), LATEST_LEGACY, elicitation={}) as bob,
    ):
        waiting = {}
        for client, name in ((ann, "number"), (ann, "titled"), (bob, "number")):
            message = client.make("tools/call", {"name": name, "arguments": {}})
            await client.say(message)
            waiting[client, message["id"]] = (await client.hear())["id"]
        foreign = waiting[ann, "q2"]
        await bob.say({"jsonrpc": "2.0", "id": foreign, "result": {"action": "decline"}})
        assert await bob.silence() == []
        for (client, name), asked in waiting.items():
            await client.say({"jsonrpc": "2.0", "id": asked, "result": {"action": "cancel"}})
            assert "cancel" in (await client.answer(name))["result"]["content"][0]["text"]
