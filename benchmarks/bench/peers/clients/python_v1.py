"""The official Python client 1.x, unmodified, against a server of ours: does what it is told, prints one JSON line.

  PYTHON python_v1.py stdio TASKS COMMAND ARGS…
  PYTHON python_v1.py http|sse TASKS URL
Runs in an environment that has `mcp<2` and nothing of ours. What to do and how to answer stands in benchmarks/bench/peers/client_tasks.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

from form import fill
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

ASKED = {"elicitation": 0, "sampling": 0, "roots": 0}


async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    ASKED["elicitation"] += 1
    if "decline" in params.message:
        return types.ElicitResult(action="decline")
    return types.ElicitResult(action="accept", content=fill(params.requestedSchema))


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    ASKED["sampling"] += 1
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", model="m", content=content)


async def roots(context: Any) -> types.ListRootsResult:
    ASKED["roots"] += 1
    return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})


async def do(session: ClientSession, task: dict[str, Any]) -> str:
    """The text of the outcome."""
    target, arguments = task["target"], task["arguments"]
    match task["kind"]:
        case "tools":
            return " ".join(tool.name for tool in (await session.list_tools()).tools)
        case "read":
            return str((await session.read_resource(target)).contents)
        case "prompt":
            return str((await session.get_prompt(target, arguments)).messages[0].content.text)
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    result = await session.call_tool(target, arguments, progress_callback=step)
    text = " ".join(getattr(block, "text", block.type) for block in result.content)
    return f"{'isError ' if result.isError else ''}progress {','.join(f'{one:g}' for one in steps)} {text}"


async def main(transport: str, tasks: list[dict[str, Any]], target: list[str]) -> dict[str, Any]:
    """All tasks, one after the other."""
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            opened = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        else:
            opened = (sse_client if transport == "sse" else streamablehttp_client)(target[0])
        streams = await stack.enter_async_context(opened)
        session = await stack.enter_async_context(
            ClientSession(
                streams[0],
                streams[1],
                elicitation_callback=elicit,
                sampling_callback=sample,
                list_roots_callback=roots,
            )
        )
        hello = await session.initialize()
        heard = {}
        for task in tasks:
            try:
                heard[task["name"]] = await do(session, task)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this task's outcome
                heard[task["name"]] = f"failed: {error}"
    known = {"client": f"Python {version('mcp')}", "transport": transport, "revision": hello.protocolVersion}
    return {**known, "asked": ASKED, "heard": heard}


if __name__ == "__main__":
    outcome = asyncio.run(asyncio.wait_for(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]), 60))
    print(json.dumps(outcome))
