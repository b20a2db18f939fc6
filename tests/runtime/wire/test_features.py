"""Tools, resources, prompts, completion, logging, progress and cancellation on the wire of each revision."""

from __future__ import annotations

import asyncio
import json
import socket
from base64 import b64decode
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel

from mcpfactory_runtime import Audio, Context, EmbeddedText, Image, Message, Server, ToolResult
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from mcpfactory_runtime.protocol.peer import LOG_LEVELS, META_LOG_LEVEL
from mcpfactory_runtime.revisions import LATEST, LEGACY, R2025_03_26, R2025_06_18, R2025_11_25, REVISIONS, Revision
from mcpfactory_runtime.server.json_schema import compile_schema
from mcpfactory_runtime.server.registry import Tool
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement

from .speech import Json, dressed, notification, request, speak

pytestmark = pytest.mark.anyio

HANDSHAKES = pytest.mark.parametrize("revision", LEGACY.values(), ids=str)


def since(first: Revision) -> pytest.MarkDecorator:
    """Parametrizes with the revisions from `first` on."""
    names = list(REVISIONS)
    return pytest.mark.parametrize("revision", list(REVISIONS.values())[names.index(first.name) :], ids=str)


def before(last: Revision) -> pytest.MarkDecorator:
    """Parametrizes with the revisions before `last`."""
    names = list(REVISIONS)
    return pytest.mark.parametrize("revision", list(REVISIONS.values())[: names.index(last.name)], ids=str)


# -- tools ---------------------------------------------------------------------------------------------------------------


@requirement("tools.capability", "resources.capability", "prompts.capability", "logging.capability", "initialize.offer")
async def test_capabilities_are_offered_for_what_is_there(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
    offered = greeting["result"]["capabilities"]
    assert {"tools", "resources", "prompts", "logging"} <= set(offered)
    async with speak(Server("empty"), revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
        assert not {"tools", "resources", "prompts", "completions"} & set(greeting["result"]["capabilities"])
        assert await client.code("tools/list") == METHOD_NOT_FOUND


@requirement("completion.capability")
@since(R2025_03_26)
async def test_completions_is_a_capability(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
    assert greeting["result"]["capabilities"]["completions"] == {}


@requirement("completion.no-capability")
@before(R2025_03_26)
async def test_completions_is_no_capability_yet_but_served(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        assert "completions" not in client.greeting["result"]["capabilities"]
        params = {"ref": {"type": "ref/prompt", "name": "ask_for"}, "argument": {"name": "topic", "value": "x"}}
        assert (await client.ask("completion/complete", params))["result"]["completion"]["values"]


@requirement("tools.input-schema", "tools.list")
async def test_every_input_schema_is_a_valid_schema_of_an_object(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
    assert len(tools) > 10
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])


@requirement("tools.unknown-tool", "tools.malformed-call")
async def test_calls_that_are_no_calls_are_protocol_errors(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for params in ({"name": "nothing"}, {"name": 5}, {}, {"name": "add", "arguments": "a"}):
            assert await client.code("tools/call", params) == INVALID_PARAMS


@requirement("tools.tool-failure", "tools.input-error", "tools.validate", "tools.sanitize")
async def test_what_the_model_can_mend_is_a_result(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for name, arguments in (("refuse", {}), ("crash", {}), ("add", {}), ("add", {"a": "x"}), ("add", {"z": 1})):
            result = await client.call(name, arguments)
            assert result["isError"] is True
            assert "1234" not in json.dumps(result)


@requirement("fallback.no-structured")
@before(R2025_06_18)
async def test_structured_output_is_unknown_to_the_first_revisions(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for tool in (await client.ask("tools/list"))["result"]["tools"]:
            assert not {"outputSchema", "title", "_meta"} & set(tool)
            assert ("annotations" in tool) <= (revision is R2025_03_26)
        result = await client.call("add", {"a": 1})
        assert set(result) == {"content"}


@requirement("tools.structured", "tools.structured-text", "tools.output-schema", "tools.title", "tools.annotations")
@since(R2025_06_18)
async def test_structured_output_is_sent_as_promised_and_as_text(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        tools = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
        assert tools["add"]["title"] == "Adding"
        assert tools["add"]["annotations"] == {"readOnlyHint": True}
        for name, arguments in (("add", {"a": 1}), ("describe", {"book": {"title": "T"}}), ("about_me", {})):
            result = await client.call(name, arguments)
            structured = result["structuredContent"]
            jsonschema.validate(structured, tools[name]["outputSchema"])
            text = json.loads(result["content"][0]["text"])
            assert text in (structured, structured.get("result"))
        broken = await client.call("wrong_type")
        assert broken["isError"] is True
        assert "structuredContent" not in broken


@requirement("tools.annotations")
@since(R2025_03_26)
async def test_annotations_are_listed_from_the_second_revision_on(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
    assert tools[0]["annotations"] == {"readOnlyHint": True}


@requirement("tools.icons", "resources.icons", "prompts.icons")
@since(R2025_11_25)
async def test_icons_are_listed(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        assert (await client.ask("tools/list"))["result"]["tools"][0]["icons"]
        assert (await client.ask("resources/list"))["result"]["resources"][0]["icons"]
        assert (await client.ask("prompts/list"))["result"]["prompts"][0]["icons"]


class Pet(BaseModel):
    """A pet."""

    kind: Literal["cat", "dog"]


def shapes() -> Server:
    """A server whose tools return other things than objects."""
    server = Server("shapes")

    @server.tool
    async def numbers() -> list[int]:
        """Return numbers."""
        return [1, 2]

    @server.tool
    async def pet() -> Pet:
        """Return a pet."""
        return Pet(kind="cat")

    @server.tool(output_schema={"type": "array", "items": {"type": "integer"}})
    async def bare() -> ToolResult:
        """Return a list as it is."""
        return ToolResult("1, 2", structured=[1, 2])

    return server


@requirement("tools.structured-object", "tools.output-schema-object")
@pytest.mark.parametrize("revision", [R2025_06_18, R2025_11_25], ids=str)
async def test_only_objects_are_structured_content_of_the_handshake_revisions(revision: Revision) -> None:
    async with speak(shapes(), revision) as client:
        tools = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
        assert "outputSchema" not in tools["bare"]
        assert all(tool.get("outputSchema", {"type": "object"})["type"] == "object" for tool in tools.values())
        for name in tools:
            assert isinstance((await client.call(name)).get("structuredContent", {}), dict)


@requirement("tools.structured-any", "tools.output-schema")
async def test_anything_is_structured_content_of_the_newest() -> None:
    async with speak(shapes(), LATEST) as client:
        tools = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
        assert tools["bare"]["outputSchema"]["type"] == "array"
        for name, tool in tools.items():
            jsonschema.validate((await client.call(name))["structuredContent"], tool["outputSchema"])


@requirement("tools.image", "tools.embedded")
async def test_images_and_resources_are_content_in_every_revision(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        content = (await client.call("everything"))["content"]
    assert b64decode(content[1]["data"], validate=True) == b"\x89PNG"
    assert content[1]["mimeType"] == "image/png"
    assert content[3]["resource"]["uri"] == "memo://1"
    assert content[3]["resource"]["text"] == "memo"
    assert b64decode(content[4]["resource"]["blob"], validate=True) == b"\x00"


@requirement("tools.audio")
@since(R2025_03_26)
async def test_audio_is_content_from_the_second_revision_on(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        audio = (await client.call("everything"))["content"][2]
    assert (audio["type"], b64decode(audio["data"], validate=True)) == ("audio", b"RIFF")
    assert audio["mimeType"].startswith("audio/")


@requirement("tools.link")
@since(R2025_06_18)
async def test_links_are_content_from_the_third_revision_on(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        link = (await client.call("everything"))["content"][5]
    assert (link["type"], link["uri"], link["name"]) == ("resource_link", "memo://today", "today")


@requirement("fallback.no-link")
@before(R2025_06_18)
async def test_links_and_audio_become_text_where_they_are_unknown(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        content = (await client.call("everything"))["content"]
    assert content[5] == {"type": "text", "text": "Today: memo://today - what to do"}
    assert content[2]["type"] == ("audio" if "audio" in revision.content else "text")
    assert not any("_meta" in block for block in content)


@requirement("fallback.fields")
async def test_nothing_is_listed_that_the_revision_does_not_know(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for method, member, wire_type in (
            ("tools/list", "tools", "Tool"),
            ("resources/list", "resources", "Resource"),
            ("resources/templates/list", "resourceTemplates", "ResourceTemplate"),
            ("prompts/list", "prompts", "Prompt"),
        ):
            for item in (await client.ask(method))["result"][member]:
                assert set(item) <= revision.fields[wire_type]
                for argument in item.get("arguments", ()):
                    assert set(argument) <= revision.fields["PromptArgument"]


@requirement("json-schema.unchanged")
async def test_a_schema_is_listed_with_every_keyword_it_was_given(revision: Revision) -> None:
    schema: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"x": {"$anchor": "x", "type": "string"}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"if": {"const": 1}, "then": {"minimum": 0}}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "additionalProperties": False,
    }
    server = Server("schemas")

    @server.tool(input_schema=schema)
    async def any_of(a: str = "", b: int = 0) -> str:
        """Take one."""
        return a or str(b)

    async with speak(server, revision) as client:
        assert (await client.ask("tools/list"))["result"]["tools"][0]["inputSchema"] == schema


def dialects() -> Server:
    """A server with tools of schemas that are not quite right."""
    server = Server("dialects")
    schemas: dict[str, Json] = {
        "old": {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object", "properties": {"a": {}}},
        "far": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        "nowhere": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
    }
    for name, schema in schemas.items():
        tool = Tool(name, {"name": name, "inputSchema": schema})
        tool.handler, tool.bind = same, compile_schema(schema).validate
        server.add_tool(tool)
    return server


async def same(**values: Any) -> str:
    """Give back."""
    return json.dumps(values)


@requirement("json-schema.no-fetch")
async def test_no_reference_is_fetched(revision: Revision, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: asked.append(address))
    async with speak(dialects(), revision) as client:
        assert (await client.call("far", {"a": 1}))["content"][0]["text"] == '{"a": 1}'
    assert asked == []


@requirement("json-schema.other-dialect")
def test_a_schema_of_another_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="dialect"):
        compile_schema({"$schema": "http://json-schema.org/draft-03/schema#", "type": "object"})


@requirement("json-schema.unresolved")
def test_a_schema_that_refers_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        compile_schema({"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}})


@requirement("tools.name-letters")
def test_names_that_clients_may_refuse_are_refused_first() -> None:
    async def anything() -> None:
        """Do nothing."""

    for name in ("", "with blank", "ü", "x" * 129, "a,b"):
        with pytest.raises(ValueError, match="hint:"):
            Server("names").tool(name=name)(anything)


# -- resources and prompts -------------------------------------------------------------------------------------------------


@requirement("resources.validate-uri", "resources.template-read", "resources.no-empty-contents")
async def test_only_uris_that_something_serves_are_read(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for uri in ("memo://none", "book://", "book://a", "book://a/1/2", "book://a/b", "", "no uri", "BOOK://a/1"):
            answer = await client.ask("resources/read", {"uri": uri})
            assert answer["error"]["code"] == revision.resource_not_found, uri
        wrong: Any
        for wrong in (5, None, [], {}):
            assert await client.code("resources/read", {"uri": wrong}) == INVALID_PARAMS


@requirement("resources.traversal")
async def test_no_variable_of_a_template_takes_a_slash_unless_it_says_so(revision: Revision) -> None:
    server = Server("files")

    @server.resource("file:///notes/{name}")
    async def note(name: str) -> str:
        """A note."""
        return name

    async with speak(server, revision) as client:
        for uri in ("file:///notes/../secret", "file:///notes/a/b", "file:///notes/../../etc/passwd"):
            assert await client.code("resources/read", {"uri": uri}) == revision.resource_not_found, uri
        plain = await client.ask("resources/read", {"uri": "file:///notes/today"})
        assert plain["result"]["contents"][0]["text"] == "today"


@requirement("resources.read-text", "resources.read-blob", "resources.mime-type", "resources.metadata")
async def test_text_and_bytes_are_read_with_their_type(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        listed = {item["uri"]: item for item in (await client.ask("resources/list"))["result"]["resources"]}
        assert listed["memo://today"]["size"] == 10 or "size" not in revision.fields["Resource"]
        assert listed["memo://today"]["annotations"] == {"priority": 1}
        for uri, kind, value in (("memo://today", "text", "a fine day"), ("memo://picture", "blob", "iVBORw==")):
            contents = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"]
            assert [(part["uri"], part["mimeType"], part[kind]) for part in contents] == [
                (uri, listed[uri]["mimeType"], value)
            ]


@requirement("resources.title", "prompts.title")
@since(R2025_06_18)
async def test_titles_are_listed(revision: Revision) -> None:
    server = Server("titles")
    marks = {"lastModified": "2025-01-01T00:00:00Z"}

    @server.resource("a://b", title="A", annotations=marks)
    async def some() -> str:
        """Some."""
        return ""

    @server.prompt(title="P")
    async def say(word: str) -> str:
        """Say."""
        return word

    async with speak(server, revision) as client:
        resource = (await client.ask("resources/list"))["result"]["resources"][0]
        assert (resource["title"], resource["annotations"]) == ("A", marks)
        assert (await client.ask("prompts/list"))["result"]["prompts"][0]["title"] == "P"


@requirement("resources.internal-error", "prompts.internal-error", "message.internal-error")
async def test_failures_of_resources_and_prompts_are_internal_errors_without_their_text(revision: Revision) -> None:
    server = Server("broken")

    @server.resource("a://b")
    async def broken() -> str:
        """Break."""
        raise RuntimeError("the password")

    @server.prompt
    async def broken_prompt() -> str:
        """Break."""
        raise RuntimeError("the password")

    async with speak(server, revision) as client:
        for method, params in (("resources/read", {"uri": "a://b"}), ("prompts/get", {"name": "broken_prompt"})):
            answer = await client.ask(method, params)
            assert answer["error"]["code"] == INTERNAL_ERROR
            assert "password" not in json.dumps(answer)


@requirement("prompts.unknown", "prompts.missing-argument", "prompts.validate", "prompts.get", "prompts.list")
async def test_prompts_are_filled_in_with_good_arguments_only(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        names = [prompt["name"] for prompt in (await client.ask("prompts/list"))["result"]["prompts"]]
        assert names[0] == "ask_for"
        for params in (
            {"name": "nothing"},
            {},
            {"name": "ask_for"},
            {"name": "ask_for", "arguments": {"topic": "x", "words": "many"}},
            {"name": "ask_for", "arguments": {"topic": "x", "other": "y"}},
            {"name": "ask_for", "arguments": {"topic": 5}},
        ):
            assert await client.code("prompts/get", params) == INVALID_PARAMS
        good = await client.ask("prompts/get", {"name": "ask_for", "arguments": {"topic": "x", "words": "3"}})
        assert good["result"]["messages"][0]["content"]["text"] == "Write 3 words about x"


@requirement("prompts.content")
async def test_prompts_carry_images_audio_and_resources(revision: Revision) -> None:
    server = Server("rich")

    @server.prompt
    async def rich() -> list[Message]:
        """Rich."""
        return [Message(Image(b"\x89PNG")), Message(Audio(b"RIFF")), Message(EmbeddedText("a://b", "x"))]

    async with speak(server, revision) as client:
        content = [m["content"] for m in (await client.ask("prompts/get", {"name": "rich"}))["result"]["messages"]]
    assert (content[0]["data"], content[0]["mimeType"]) == ("iVBORw==", "image/png")
    assert content[1]["type"] == ("audio" if "audio" in revision.content else "text")
    assert content[2]["resource"]["uri"] == "a://b"


@requirement("resources.subscribe", "resources.unsubscribe", "resources.not-subscribed")
@HANDSHAKES
async def test_only_subscribers_are_told_and_only_as_long_as_they_are(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.call("grow")
        assert [m for m in await client.silence() if m["method"].endswith("updated")] == []
        await client.ask("resources/subscribe", {"uri": "memo://today"})
        await client.call("grow")
        told = await client.silence()
        assert [m["params"]["uri"] for m in told if m["method"].endswith("updated")] == ["memo://today"]
        await client.ask("resources/unsubscribe", {"uri": "memo://today"})
        await client.call("grow")
        assert [m for m in await client.silence() if m["method"].endswith("updated")] == []


# -- completion --------------------------------------------------------------------------------------------------------------


@requirement("completion.bad-argument", "completion.validate", "completion.not-offered")
async def test_malformed_questions_for_completion_are_refused(revision: Revision) -> None:
    reference = {"type": "ref/prompt", "name": "ask_for"}
    async with speak(sample, revision) as client:
        for params in (
            {},
            {"ref": reference},
            {"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "a", "value": ""}},
            {"ref": reference, "argument": {"name": "a"}},
            {"ref": reference, "argument": {"name": 5, "value": ""}},
            {"ref": {"type": "ref/resource"}, "argument": {"name": "a", "value": ""}},
        ):
            assert await client.code("completion/complete", params) == INVALID_PARAMS
    async with speak(Server("empty"), revision) as client:
        params = {"ref": reference, "argument": {"name": "a", "value": ""}}
        assert await client.code("completion/complete", params) == METHOD_NOT_FOUND


@requirement("completion.bad-reference")
async def test_what_does_not_exist_is_not_completed(revision: Revision) -> None:
    argument = {"name": "topic", "value": ""}
    async with speak(sample, revision) as client:
        reference = {"type": "ref/prompt", "name": "nothing"}
        assert await client.code("completion/complete", {"ref": reference, "argument": argument}) == INVALID_PARAMS


@requirement("completion.complete", "completion.at-most-100", "completion.context")
async def test_prompts_and_templates_are_completed_with_what_is_settled(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        template = {"type": "ref/resource", "uri": "book://{shelf}/{number}{?lang}"}
        context = {"arguments": {"shelf": "a"}}
        params = {"ref": template, "argument": {"name": "number", "value": "4"}, "context": context}
        assert (await client.ask("completion/complete", params))["result"]["completion"]["values"] == [
            "ref/resource/4/a"
        ]
        params = {"ref": {"type": "ref/prompt", "name": "ask_for"}, "argument": {"name": "many", "value": ""}}
        completion = (await client.ask("completion/complete", params))["result"]["completion"]
        assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)


# -- logging -----------------------------------------------------------------------------------------------------------------


@requirement("logging.level", "logging.levels", "logging.bad-level")
@HANDSHAKES
async def test_a_session_gets_messages_of_its_level_and_above(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for level in ("loud", "", None, 5, "ERROR"):
            assert await client.code("logging/setLevel", {"level": level}) == INVALID_PARAMS
        for number, level in enumerate(LOG_LEVELS):
            assert (await client.ask("logging/setLevel", {"level": level}))["result"] == {}
            client.heard.clear()
            await client.call("speak")
            heard = [m["params"]["level"] for m in client.heard if m["method"] == "notifications/message"]
            assert heard == [name for name in ("debug", "info", "warning", "error") if LOG_LEVELS[name] >= number]


@requirement("logging.silent", "logging.own-stream", "logging.levels", "logging.bad-level", "logging.no-secrets")
async def test_a_request_gets_messages_only_if_it_names_a_level() -> None:
    async with speak(sample, LATEST) as client:
        await client.call("speak", meta={META_LOG_LEVEL: "warning"})
        heard = [m["params"]["level"] for m in client.heard if m["method"] == "notifications/message"]
        assert heard == ["warning", "error"]
        client.heard.clear()
        await client.call("speak")
        assert client.heard == []
        await client.call("crash", meta={META_LOG_LEVEL: "debug"})
        assert client.heard == []
        answer = await client.ask("tools/list", None, {META_LOG_LEVEL: "loud"})
        assert answer["error"]["code"] == INVALID_PARAMS


# -- progress and cancellation ---------------------------------------------------------------------------------------------------


def stepping(*steps: float) -> Server:
    server = Server("steps")
    late: list[Context] = []

    @server.tool
    async def work(ctx: Context) -> str:
        """Work."""
        late.append(ctx)
        for step in steps:
            await ctx.report_progress(step, None, "on the way")
        return "done"

    @server.tool
    async def haunt() -> str:
        """Report for a call that has ended."""
        await late[0].report_progress(1000)
        return "boo"

    return server


@requirement("progress.asked-for", "progress.token-types", "progress.message")
async def test_progress_goes_to_those_who_gave_a_token(revision: Revision) -> None:
    async with speak(stepping(1, 2, 3), revision) as client:
        await client.call("work")
        assert client.heard == []
        for token in ("t", "", 0, 7):
            client.heard.clear()
            await client.call("work", meta={"progressToken": token})
            assert [message["params"]["progressToken"] for message in client.heard] == [token] * 3
            said = [message["params"].get("message") for message in client.heard]
            known = "message" in revision.fields["ProgressNotificationParams"]
            assert said == [("on the way" if known else None)] * 3
        wrong: Any
        for wrong in (None, 1.5, True, [], {}):
            client.heard.clear()
            await client.call("work", meta={"progressToken": wrong})
            assert client.heard == []


@requirement("progress.increases")
async def test_progress_that_does_not_grow_is_not_sent(revision: Revision) -> None:
    async with speak(stepping(1, 1, 0.5, 2, 2, -1, 3), revision) as client:
        await client.call("work", meta={"progressToken": "t"})
        assert [message["params"]["progress"] for message in client.heard] == [1, 2, 3]


@requirement("progress.stops")
async def test_no_progress_is_reported_for_a_call_that_has_ended(revision: Revision) -> None:
    async with speak(stepping(1), revision) as client:
        await client.call("work", meta={"progressToken": "t"})
        client.heard.clear()
        await client.call("haunt")
        assert client.heard == []


@requirement("cancel.stop", "cancel.silence", "stdio.cancelled-silence", "cancel.only-listen")
async def test_a_cancelled_request_ends_without_an_answer(revision: Revision) -> None:
    server = Server("patient")
    ended = asyncio.Event()

    @server.tool
    async def wait(ctx: Context) -> str:
        """Wait for ever."""
        ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with speak(server, revision) as client:
        message = client.make("tools/call", {"name": "wait"}, {"progressToken": 1})
        await client.say(message)
        await client.until("notifications/progress")
        await client.say(notification("notifications/cancelled", {"requestId": message["id"], "reason": "enough"}))
        async with asyncio.timeout(5):
            await ended.wait()
        assert await client.silence() == []


@requirement("cancel.ignore", "cancel.late", "message.notification-silence")
async def test_cancellations_of_nothing_are_ignored(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.ask("tools/list")
        params: Any
        for params in ({"requestId": "q1"}, {"requestId": "never"}, {"requestId": None}, {"requestId": []}, {}, []):
            await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await client.say(notification("notifications/nonsense"), notification("tools/list"))
        assert await client.silence() == []


@requirement("cancel.own-requests")
@HANDSHAKES
async def test_a_question_that_nobody_waits_for_any_more_is_cancelled(revision: Revision) -> None:
    server = Server("asking")

    @server.tool
    async def where(ctx: Context, patience: float | None = None) -> str:
        """Ask."""
        try:
            async with asyncio.timeout(patience):
                return str(await ctx.roots())
        except TimeoutError:
            return "too late"

    async with speak(server, revision, roots={}) as client:
        message = client.make("tools/call", {"name": "where"})
        await client.say(message)
        asked = await client.until("roots/list")
        await client.say(notification("notifications/cancelled", {"requestId": message["id"]}))
        cancelled = await client.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        assert (await client.call("where", {"patience": 0}))["content"][0]["text"] == "too late"
        asked, cancelled = client.heard
        assert (asked["method"], cancelled["params"]["requestId"]) == ("roots/list", asked["id"])


@requirement("ping.answer")
@HANDSHAKES
async def test_ping_is_answered_with_nothing(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        assert (await client.ask("ping"))["result"] == {}
        await client.say(dressed(revision, request("ping", {"_meta": {"progressToken": 1}}, "p")))
        assert await client.answer("p") == {"jsonrpc": "2.0", "id": "p", "result": {}}
