"""Prompts on the wire of each revision."""

from __future__ import annotations

import pytest

from mcpfactory_runtime import Audio, EmbeddedText, Image, Message, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.revisions import Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak

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
