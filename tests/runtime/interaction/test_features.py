"""What a client sees, on every transport and in every revision."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import R2025_06_18, R2025_11_25, Revision
from tests.runtime.interaction.conftest import Connect
from tests.runtime.requirements import requirement

pytestmark = pytest.mark.anyio


def since(revision: Revision, first: Revision) -> bool:
    """Names of revisions are dates."""
    return revision.name >= first.name


@requirement(
    "initialize.answer",
    "initialize.same-version",
    "initialize.offer",
    "completion.capability",
    "completion.no-capability",
)
async def test_the_server_introduces_itself(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        assert client.revision is revision
        assert client.instructions == "Be kind."
        info = client.server_info
        assert (info["name"], info["version"]) == ("sample", "1.2.3")
        assert set(info) <= revision.fields["Implementation"]
        assert ("websiteUrl" in info) == since(revision, R2025_11_25)
        offered = {"logging", "tools", "resources", "prompts", "completions"}
        assert set(client.capabilities) == offered & revision.fields["ServerCapabilities"]
        assert client.capabilities["resources"] == {"subscribe": True, "listChanged": True}
        await client.ping()


@requirement("tools.list", "tools.order", "fallback.fields")
async def test_tools_are_listed_with_what_the_revision_knows(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
    add = tools["add"]
    assert add["description"] == "Add two numbers."
    assert add["inputSchema"]["properties"]["a"] == {"type": "integer", "description": "the first"}
    assert set(add) <= revision.fields["Tool"]
    assert ("outputSchema" in add) == ("outputSchema" in revision.fields["Tool"])
    assert ("annotations" in add) == ("annotations" in revision.fields["Tool"])
    assert next(iter(tools)) == "add"


@requirement("tools.call", "tools.structured", "tools.structured-text", "fallback.no-structured")
async def test_a_tool_is_called_and_its_output_is_structured_where_the_revision_has_that(
    connect: Connect, revision: Revision
) -> None:
    async with connect() as client:
        result = await client.call_tool("add", {"a": 3})
        assert result["content"] == [{"type": "text", "text": "5"}]
        assert result.get("structuredContent") == ({"result": 5} if since(revision, R2025_06_18) else None)
        assert "isError" not in result
        model = await client.call_tool("describe", {"book": {"title": "T"}})
        assert model["content"][0]["text"] == '{"title":"T","pages":0}'


@requirement("fallback.no-link", "fallback.fields", "tools.link", "tools.audio")
async def test_content_that_the_revision_does_not_know_becomes_text(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        result = await client.call_tool("everything")
    kinds = [block["type"] for block in result["content"]]
    known = ["text", "image", "audio", "resource", "resource", "resource_link"]
    assert kinds == [kind if kind in revision.content else "text" for kind in known]
    assert ("_meta" in result["content"][0]) == ("_meta" in revision.fields["TextContent"])
    assert ("lastModified" in result["content"][0]["annotations"]) == ("lastModified" in revision.fields["Annotations"])
    if "resource_link" not in revision.content:
        assert result["content"][-1]["text"] == "Today: memo://today - what to do"
    assert result["_meta"]["trace"] == "x"


@requirement("tools.structured-object", "tools.structured-any")
async def test_structured_content_that_is_no_object_goes_only_where_it_may(
    connect: Connect, revision: Revision
) -> None:
    async with connect() as client:
        result = await client.call_tool("untyped_list")
    assert result.get("structuredContent") == ([1, 2] if revision.structured_any else None)


FAILURES: list[tuple[str, dict[str, Any], str]] = [
    ("refuse", {}, "try something else"),
    ("add", {}, "a: required but missing"),
    ("add", {"a": "x"}, "valid integer"),
    ("add", {"a": 1, "c": 1}, "no such argument"),
    ("crash", {}, "internal error"),
    ("leave", {}, "internal error"),
    ("wrong_type", {}, "internal error"),
]


@requirement("tools.tool-failure", "tools.input-error", "tools.validate")
async def test_failures_of_a_tool_are_results_that_the_model_reads(connect: Connect) -> None:
    async with connect() as client:
        for tool, arguments, text in FAILURES:
            result = await client.call_tool(tool, arguments)
            assert result["isError"] is True
            assert text in result["content"][0]["text"]
            assert "1234" not in str(result)
        assert (await client.call_tool("add", {"a": 1}))["content"][0]["text"] == "3"


WRONG: list[tuple[str, dict[str, Any], int]] = [
    ("tools/call", {"name": "nothing"}, INVALID_PARAMS),
    ("tools/call", {"name": 5}, INVALID_PARAMS),
    ("tools/call", {}, INVALID_PARAMS),
    ("tools/call", {"name": "add", "arguments": []}, INVALID_PARAMS),
    ("tools/call", {"name": "protocol_error"}, -5),
    ("tools/call", {"name": "unencodable"}, INTERNAL_ERROR),
    ("tools/list", {"cursor": "bm90aGluZw=="}, INVALID_PARAMS),
    ("tools/list", {"cursor": "%%%"}, INVALID_PARAMS),
    ("tools/list", {"cursor": ""}, INVALID_PARAMS),
    ("tools/list", {"cursor": 5}, INVALID_PARAMS),
    ("prompts/get", {"name": "nothing"}, INVALID_PARAMS),
    ("prompts/get", {"name": "ask_for"}, INVALID_PARAMS),
    ("prompts/get", {"name": "ask_for", "arguments": {"topic": 5}}, INVALID_PARAMS),
    ("prompts/get", {"name": "ask_for", "arguments": {"topic": "x", "words": "many"}}, INVALID_PARAMS),
    ("resources/read", {}, INVALID_PARAMS),
    ("resources/read", {"uri": "memo://broken"}, INTERNAL_ERROR),
    ("completion/complete", {"ref": {"type": "ref/tool"}, "argument": {}}, INVALID_PARAMS),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a"}}, INVALID_PARAMS),
    ("nonsense", {}, METHOD_NOT_FOUND),
]


@requirement(
    "message.unknown-method",
    "message.internal-error",
    "tools.unknown-tool",
    "pages.invalid-cursor",
    "prompts.unknown",
    "prompts.missing-argument",
    "completion.bad-argument",
)
async def test_wrong_requests_get_their_code_and_the_next_one_is_served(connect: Connect) -> None:
    async with connect() as client:
        for method, params, code in WRONG:
            with pytest.raises(McpError) as refused:
                await client.request(method, params)
            assert (method, params, refused.value.code) == (method, params, code)
            assert "secret" not in refused.value.message
            assert await client.list_prompts()


@requirement(
    "resources.list", "resources.templates", "resources.template-read", "resources.read-text", "resources.read-blob"
)
async def test_resources_are_listed_and_read(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        listed = {resource["uri"]: resource for resource in await client.list_resources()}
        assert listed["memo://today"]["size"] == 10
        assert set(listed["memo://today"]) <= revision.fields["Resource"]
        assert await client.read_resource("memo://today") == [
            {"uri": "memo://today", "mimeType": "text/plain", "text": "a fine day"}
        ]
        assert (await client.read_resource("memo://picture"))[0]["blob"] == "iVBORw=="
        templates = await client.list_resource_templates()
        assert [template["uriTemplate"] for template in templates] == ["book://{shelf}/{number}{?lang}"]
        read = await client.read_resource("book://a%20b/7?lang=de")
        assert read[0]["text"] == '{"shelf":"a b","number":7,"lang":"de"}'
        assert read[0]["mimeType"] == "application/json"


@requirement("resources.not-found", "resources.not-found-legacy")
async def test_a_resource_that_does_not_exist_has_the_code_of_the_revision(
    connect: Connect, revision: Revision
) -> None:
    async with connect() as client:
        for uri in ("memo://none", "book://a/x", "book://a/0"):
            with pytest.raises(McpError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == revision.resource_not_found
            assert refused.value.data == {"uri": uri}


@requirement("prompts.list", "prompts.get")
async def test_prompts_are_listed_and_filled_in(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        prompts = {prompt["name"]: prompt for prompt in await client.list_prompts()}
        assert prompts["ask_for"]["arguments"] == [
            {"name": "topic", "description": "what about", "required": True},
            {"name": "words", "description": "how long", "required": False},
        ]
        assert set(prompts["ask_for"]) <= revision.fields["Prompt"]
        result = await client.get_prompt("ask_for", {"topic": "tea", "words": "5"})
    assert result["messages"][0] == {"role": "user", "content": {"type": "text", "text": "Write 5 words about tea"}}
    assert result["messages"][1]["role"] == "assistant"
    assert result["messages"][1]["content"]["type"] in revision.content


@requirement("completion.complete", "completion.at-most-100", "completion.context")
async def test_arguments_are_completed(connect: Connect) -> None:
    async with connect() as client:
        reference = {"type": "ref/resource", "uri": "book://{shelf}/{number}"}
        assert await client.complete(reference, "number", "4", {"shelf": "a"}) == {
            "values": ["ref/resource/4/a"],
            "total": 1,
            "hasMore": False,
        }
        many = await client.complete({"type": "ref/prompt", "name": "ask_for"}, "many", "")
        assert (len(many["values"]), many["total"], many["hasMore"]) == (100, 150, True)


@requirement("progress.asked-for", "logging.level", "http.stream-related")
async def test_progress_and_logs_arrive_before_the_result(connect: Connect, revision: Revision) -> None:
    heard: list[tuple[str, Any]] = []
    steps: list[Any] = []
    async with connect(notified=lambda method, params: heard.append((method, params)), log_level="warning") as client:
        await client.call_tool("speak", progress=steps.append)
    assert [step["progress"] for step in steps] == [1, 2, 3]
    assert ("message" in steps[0]) == ("message" in revision.fields["ProgressNotificationParams"])
    levels = [params["level"] for method, params in heard if method == "notifications/message"]
    assert levels == ["warning", "error"]


@requirement("logging.silent")
async def test_without_a_level_the_newest_lifecycle_sends_no_logs_and_the_others_info(
    connect: Connect, revision: Revision
) -> None:
    levels: list[str] = []

    def listen(method: str, params: Any) -> None:
        if method == "notifications/message":
            levels.append(params["level"])

    async with connect(notified=listen) as client:
        await client.call_tool("speak")
    assert levels == ([] if revision.modern else ["info", "warning", "error"])


@requirement("stdio.only-messages")
async def test_plain_functions_run_in_threads_and_their_output_stays_out_of_the_protocol(connect: Connect) -> None:
    steps: list[Any] = []
    async with connect() as client:
        result = await client.call_tool("in_a_thread", {"text": "hi"}, progress=steps.append)
    assert result["content"][0]["text"] == "hi"
    assert [step["progress"] for step in steps] == [1]


@requirement("meta.no-memory")
async def test_a_handler_knows_its_client(connect: Connect, revision: Revision) -> None:
    async with connect(info={"name": "tester", "version": "1"}, roots=[]) as client:
        result = await client.call_tool("about_me")
    text = result["content"][0]["text"]
    assert f'"revision":"{revision.name}"' in text
    assert '"client":"tester"' in text
    assert '"capabilities":["roots"]' in text
    assert '"state":{"started":true}' in text
