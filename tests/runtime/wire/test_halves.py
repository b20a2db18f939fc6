"""Half of a surrogate pair, which JSON may name and UTF-8 cannot hold: in what clients send, and in what handlers say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_runtime import McpError, Server, ToolError
from mcpfactory_runtime.revisions import Revision
from tests.runtime.wire.raw_client import speak

pytestmark = pytest.mark.anyio

HALF = "a\ud800b"


@pytest.fixture
def server() -> Server:
    made = Server("halves")

    @made.tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @made.tool
    def untyped(kind: str) -> Any:
        """Say it without an annotation."""
        return {"text": HALF, "object": {HALF: [HALF, 1]}, "list": [HALF], "deep": {"a": [{"b": (HALF,)}]}}[kind]

    @made.tool
    def typed() -> dict[str, list[str]]:
        """Say it with one."""
        return {HALF: [HALF]}

    @made.tool
    def named() -> str:
        """Say it as a text."""
        return HALF

    @made.tool
    async def refuse(how: str) -> None:
        """Fail with it."""
        raise {"tool": ToolError(HALF), "protocol": McpError(7, HALF)}[how]

    made.prompt("prompt")(lambda: HALF)
    made.resource("half://text", name="text")(lambda: HALF)
    made.resource("half://json", name="json")(lambda: {"a": HALF})
    return made


@pytest.mark.parametrize("said", ['"a\\ud800b"', '"a\\uDFFFb"', '"a\\udc00\\ud800b"', '"\\\\\\ud800"'])
async def test_a_request_with_one_is_taken_with_the_replacement_character(
    server: Server, revision: Revision, said: str
) -> None:
    async with speak(server, revision) as client:
        message = client.make("tools/call", {"name": "echo", "arguments": {"text": "TEXT"}})
        await client.say(json.dumps(message).replace('"TEXT"', said).encode() + b"\n")
        result = (await client.answer(message["id"]))["result"]
    expected = json.loads(said).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert result["content"][0]["text"].replace("\ufffd", "") == expected.replace("\ufffd", "")
    assert "\ufffd" in result["content"][0]["text"]


async def test_results_have_a_question_mark_in_its_place(server: Server, revision: Revision) -> None:
    async with speak(server, revision) as client:
        texts = {kind: (await client.call("untyped", {"kind": kind})) for kind in ("text", "object", "list", "deep")}
        typed, named = await client.call("typed"), await client.call("named")
    assert texts["text"]["content"] == [{"type": "text", "text": "a?b"}]
    assert texts["list"]["content"] == [{"type": "text", "text": "a?b"}]
    assert json.loads(texts["object"]["content"][0]["text"]) == {"a?b": ["a?b", 1]}
    assert json.loads(texts["deep"]["content"][0]["text"]) == {"a": [{"b": ["a?b"]}]}
    assert json.loads(typed["content"][0]["text"]) == {"a?b": ["a?b"]}
    assert named["content"] == [{"type": "text", "text": "a?b"}]
    assert not any(one.get("isError") for one in (*texts.values(), typed, named))
