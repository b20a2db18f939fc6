"""Handlers that ask the client: one way to write them, both lifecycles, every transport."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.revisions import Revision
from tests.runtime.interaction.conftest import Connect
from tests.runtime.requirements import requirement
from tests.runtime.wire.questions import ASKED, eliciting

pytestmark = pytest.mark.anyio


@pytest.fixture
def answers(revision: Revision) -> dict[str, Any]:
    """What the client can do; without elicitation where the revision has none."""

    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        field = next(iter(params["requestedSchema"]["properties"]))
        return {"action": "accept", "content": {field: {"title": "Emma", "name": "Ann"}.get(field, "green")}}

    def sample(params: dict[str, Any]) -> dict[str, Any]:
        said = params["messages"][0]["content"]["text"]
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": f"re: {said}"}}

    return {"elicitation": elicit, "sampling": sample, "roots": [{"uri": "file:///work"}]}


@requirement("elicitation.form", "input-required.several")
@eliciting
async def test_a_tool_asks_twice(connect: Connect, revision: Revision, answers: dict[str, Any]) -> None:
    async with connect(**answers) as client:
        assert (await client.call_tool("greet"))["content"][0]["text"] == "Ann likes green"


@eliciting
async def test_a_tool_in_a_thread_asks_for_a_model(
    connect: Connect, revision: Revision, answers: dict[str, Any]
) -> None:
    async with connect(**answers) as client:
        assert (await client.call_tool("greet_from_a_thread"))["content"][0]["text"] == "Emma"


@requirement("sampling.ask", "roots.list", "elicitation.form")
@eliciting
async def test_a_tool_asks_three_things_at_once(connect: Connect, revision: Revision, answers: dict[str, Any]) -> None:
    async with connect(**answers) as client:
        result = await client.call_tool("ask_everything")
    assert result["content"][0]["text"] == "Ann: re: A poem! in file:///work"


@requirement("input-required.methods")
@eliciting
async def test_resources_and_prompts_ask_too(connect: Connect, revision: Revision, answers: dict[str, Any]) -> None:
    async with connect(**answers) as client:
        read = await client.call("resources/read", {"uri": "memo://asks"})
        assert read["contents"][0]["text"] == "green"
        prompt = await client.call("prompts/get", {"name": "asking_prompt"})
        assert prompt["messages"][0]["content"]["text"] == "About green"


@requirement("elicitation.declared", "meta.undeclared-capability", "input-required.declared")
async def test_a_client_that_declared_nothing_is_not_asked(connect: Connect, revision: Revision) -> None:
    async with connect() as client:
        with pytest.raises(McpError) as refused:
            await client.call_tool("greet")
    assert refused.value.code == (MISSING_CAPABILITY if revision.modern else INVALID_REQUEST)
    assert "elicitation" in refused.value.data["requiredCapabilities"]


@requirement("elicitation.actions")
@eliciting
async def test_a_user_who_declines_is_an_answer(connect: Connect, revision: Revision, answers: dict[str, Any]) -> None:
    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        if "name" in params["requestedSchema"]["properties"]:
            return {"action": "accept", "content": {"name": "Ann"}}
        return {"action": "decline"}

    async with connect(**{**answers, "elicitation": elicit}) as client:
        assert (await client.call_tool("greet"))["content"][0]["text"] == "Ann likes nothing"


@requirement("elicitation.validated", "input-required.malformed")
@eliciting
async def test_a_malformed_answer_is_an_error_and_the_server_goes_on(
    connect: Connect, revision: Revision, answers: dict[str, Any]
) -> None:
    wrong = [{"action": "maybe"}, {}, {"action": "accept", "content": {}}, {"action": "accept", "content": []}]
    said = iter(wrong)
    async with connect(**{**answers, "elicitation": lambda _: next(said)}) as client:
        for _ in wrong:
            with pytest.raises(McpError) as refused:
                await client.call_tool("greet")
            assert refused.value.code == INVALID_PARAMS


@requirement("sampling.refused")
# in the newest lifecycle a client that refuses does not repeat its request
@pytest.mark.parametrize("revision", [one for one in ASKED if not one.modern], ids=str)
async def test_an_error_of_the_client_reaches_the_handler(
    connect: Connect, revision: Revision, answers: dict[str, Any]
) -> None:
    def sample(params: dict[str, Any]) -> dict[str, Any]:
        raise McpError(-1, "the user said no")

    async with connect(**{**answers, "sampling": sample}) as client:
        with pytest.raises(McpError) as refused:
            await client.call_tool("ask_everything")
    assert refused.value.code == -1
