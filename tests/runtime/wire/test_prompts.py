"""Prompts on the wire of each revision."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime import Audio, EmbeddedText, Image, Message, Server
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS
from mcpfactory_runtime.revisions import Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.speech import speak

pytestmark = pytest.mark.anyio


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


MESSAGES: list[tuple[Any, list[tuple[str, str]]]] = [
    ({"role": "user", "content": "a"}, [("user", "a")]),
    ([{"role": "assistant", "content": {"type": "text", "text": "a"}}, "b"], [("assistant", "a"), ("user", "b")]),
    ({"type": "text", "text": "a"}, [("user", "a")]),
]


@pytest.mark.parametrize(("returned", "said"), MESSAGES)
async def test_a_prompt_may_return_messages_as_they_are_on_the_wire(
    revision: Revision, returned: Any, said: list[tuple[str, str]]
) -> None:
    server = Server("written")
    server.prompt("written")(lambda: returned)
    async with speak(server, revision) as client:
        messages = (await client.ask("prompts/get", {"name": "written"}))["result"]["messages"]
    assert [(one["role"], one["content"]["text"]) for one in messages] == said


@pytest.mark.parametrize(
    "returned",
    [
        {"a": 1},
        {"role": "system", "content": "a"},
        {"role": "user"},
        {"role": "user", "content": ["a"]},
        ["a", {"role": "user", "content": {"text": "a"}}],
        [5],
    ],
)
async def test_what_is_no_message_is_refused_and_the_log_says_what_to_return(
    revision: Revision, returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("wrong")
    server.prompt("wrong")(lambda: returned)
    async with speak(server, revision) as client:
        assert await client.code("prompts/get", {"name": "wrong"}) == INTERNAL_ERROR
    assert "hint: return text, content, Message" in caplog.text
