"""Tools and what they return, on the wire of each revision."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Literal

import jsonschema
import pytest
from pydantic import BaseModel

from mcpfactory_runtime import Server, ToolResult
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.revisions import LATEST, R2025_03_26, R2025_06_18, R2025_11_25, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, speak
from tests.runtime.wire.revision_ranges import before, since

pytestmark = pytest.mark.anyio


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
    server.offer(dialect="standard")

    @server.tool(input_schema=schema)
    async def any_of(a: str = "", b: int = 0) -> str:
        """Take one."""
        return a or str(b)

    async with speak(server, revision) as client:
        assert (await client.ask("tools/list"))["result"]["tools"][0]["inputSchema"] == schema


@requirement("tools.name-letters")
def test_names_that_clients_may_refuse_are_refused_first() -> None:
    async def anything() -> None:
        """Do nothing."""

    for name in ("", "with blank", "ü", "x" * 129, "a,b"):
        with pytest.raises(ValueError, match="hint:"):
            Server("names").tool(name=name)(anything)
