"""The official Python client, unmodified, against our server: both lifecycles, stdio and HTTP."""

from __future__ import annotations

import sys
from typing import Any, Literal

import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

from mcpfactory_runtime.revisions import LEGACY, MODERN
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.transports.conftest import SAMPLE

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> Any:
    if request.param == "http":
        return request.getfixturevalue("sample_url")
    return StdioServerParameters(command=sys.executable, args=SAMPLE[1:])


async def elicit(context: Any, params: Any) -> ElicitResult:
    field = next(iter(params.requested_schema["properties"]))
    return ElicitResult(action="accept", content={field: {"name": "Ann"}.get(field, "green")})


async def sample(context: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="a poem"))


async def roots(context: Any) -> ListRootsResult:
    return ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_lists_calls_reads_prompts_and_answers(
    target: Any, mode: Literal["auto", "legacy"]
) -> None:
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with Client(
        target, mode=mode, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots
    ) as client:
        assert client.protocol_version in (MODERN if mode == "auto" else LEGACY)
        assert client.server_info is not None
        assert client.server_info.name == "sample"
        assert "add" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"result": 3}
        assert (await client.call_tool("refuse")).is_error
        everything = await client.call_tool("everything")
        assert [block.type for block in everything.content][-1] == "resource_link"
        await client.call_tool("speak", progress_callback=step)
        assert steps == [1, 2, 3]
        assert (await client.read_resource("memo://today")).contents[0].uri == "memo://today"
        assert len((await client.list_resource_templates()).resource_templates) == 1
        prompt = await client.get_prompt("ask_for", {"topic": "tea"})
        assert [message.role for message in prompt.messages] == ["user", "assistant"]
        greeting = await client.call_tool("greet")
        assert "Ann likes green" in str(greeting.content)
        asked = await client.call_tool("ask_everything")
        assert "Ann: a poem in file:///work" in str(asked.content)
