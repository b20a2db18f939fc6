"""Questions that travel in results: rounds, sealed state, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime import Context, Elicit, Roots, Sample, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, McpError
from mcpfactory_runtime.revisions import LATEST
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.questions import SAID
from tests.runtime.wire.raw_client import Json, speak

pytestmark = pytest.mark.anyio


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
