"""What servers ask of users, on the wire of each revision that can."""

from __future__ import annotations

import enum
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.revisions import LATEST_LEGACY, R2025_06_18, R2025_11_25, Revision
from mcpfactory_runtime.server.inputs import Elicit
from tests.runtime.requirements import requirement
from tests.runtime.spec_types import faults
from tests.runtime.wire.questions import RICH, converse, eliciting, question, rich
from tests.runtime.wire.raw_client import Json, speak

pytestmark = pytest.mark.anyio


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


CHOICE = {"type": "string", "enum": ["s", "l"]}


@pytest.mark.parametrize(
    ("kind", "field", "answer", "content"),
    [
        (["s", "l"], CHOICE, "l", "l"),
        (Literal["s", "l"], CHOICE, "l", "l"),
        (Size, CHOICE, "l", Size.LARGE),
        (Size | None, CHOICE, "l", Size.LARGE),
        (list[Size], {"type": "array", "items": CHOICE}, ["l"], [Size.LARGE]),
        (bool, {"type": "boolean"}, True, True),
    ],
)
async def test_a_type_asks_for_one_value(kind: Any, field: Json, answer: Any, content: Any) -> None:
    asked = Elicit("?", kind)
    assert asked.schema == {"type": "object", "properties": {"value": field}, "required": ["value"]}
    assert asked.read({"action": "accept", "content": {"value": answer}}).content == content
    with pytest.raises(McpError, match="content"):
        asked.read({"action": "accept", "content": {"value": "x"}})


async def test_a_form_may_have_optional_choices() -> None:
    class Wish(BaseModel):
        size: Size | None = None
        sizes: list[Size] = []

    asked = Elicit("?", Wish)
    assert asked.schema["properties"]["size"] == CHOICE
    assert asked.schema["properties"]["sizes"]["items"] == CHOICE
    assert asked.read({"action": "accept", "content": {"size": "s"}}).content == Wish(size=Size.SMALL)


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
    tools = ["titled", "named", "number", "order"] + (["several", "titled_several"] if revision in RICH else [])
    async with speak(forms(), revision, elicitation={}) as client:
        for tool in tools:
            method, params = await question(client, tool)
            assert (method, params["message"]) == ("elicitation/create", "?")
            for field in params["requestedSchema"]["properties"].values():
                assert faults(field, "PrimitiveSchemaDefinition", revision) == [], field


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
