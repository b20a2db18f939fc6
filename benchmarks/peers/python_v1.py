"""The official Python client 1.x, unmodified, against a server of ours: lists, calls, reads, prompts, elicits and samples.

  PYTHON python_v1.py stdio COMMAND ARGS…
  PYTHON python_v1.py http|sse URL
Runs in an environment that has `mcp<2` and nothing of ours; prints one JSON line, ends with 1 when something was wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    fields = params.requestedSchema["properties"]
    return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "Ann"))


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", model="m", content=content)


async def main(transport: str, target: list[str]) -> dict[str, Any]:
    """Everything that the client can do, and whether it came out as it should."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            opened = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        else:
            opened = (sse_client if transport == "sse" else streamablehttp_client)(target[0])
        streams = await stack.enter_async_context(opened)
        steps: list[float] = []

        async def step(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        session = await stack.enter_async_context(
            ClientSession(streams[0], streams[1], elicitation_callback=elicit, sampling_callback=sample)
        )
        hello = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        called = await session.call_tool("test_simple_text", {})
        await session.call_tool("test_tool_with_progress", {}, progress_callback=step)
        read = await session.read_resource("test://static-text")  # type: ignore[arg-type]  # it takes text as well
        prompt = await session.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        elicited = await session.call_tool("test_elicitation", {"message": "Name?"})
        sampled = await session.call_tool("test_sampling", {"prompt": "Capital?"})
        wrong = await session.call_tool("test_error_handling", {})
        seen = {
            "list": "test_simple_text" in tools,
            "call": "simple text response" in str(called.content),
            "progress": steps == [0, 50, 100],
            "read": "static text resource" in str(read.contents),
            "prompt": "arg1='a'" in str(prompt.messages),
            "elicit": "action=accept" in str(elicited.content),
            "sample": "Paris" in str(sampled.content),
            "error": wrong.isError,
        }
    return {
        "mcp": version("mcp"),
        "transport": transport,
        "revision": hello.protocolVersion,
        "tools": len(tools),
        **seen,
    }


if __name__ == "__main__":
    outcome = asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 60))
    print(json.dumps(outcome))
    sys.exit(not all(value for value in outcome.values()))
