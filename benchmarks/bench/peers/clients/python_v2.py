"""The official Python client 2.x, unmodified, against a server of ours: does what it is told, prints one JSON line.

  PYTHON python_v2.py legacy|modern stdio TASKS COMMAND ARGS…
  PYTHON python_v2.py legacy|modern http TASKS URL
Runs in an environment that has `mcp>=2` and nothing of ours. What to do and how to answer stands in benchmarks/bench/peers/client_tasks.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from form import fill
from mcp import StdioServerParameters
from mcp.client import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

ASKED = {"elicitation": 0, "sampling": 0, "roots": 0}


async def elicit(context: Any, params: Any) -> ElicitResult:
    ASKED["elicitation"] += 1
    if "decline" in params.message:
        return ElicitResult(action="decline")
    return ElicitResult(action="accept", content=fill(params.requested_schema))


async def sample(context: Any, params: Any) -> CreateMessageResult:
    ASKED["sampling"] += 1
    return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text="Paris"))


async def roots(context: Any) -> ListRootsResult:
    ASKED["roots"] += 1
    return ListRootsResult.model_validate({"roots": [{"uri": "file:///work"}]})


async def do(client: Client, task: dict[str, Any]) -> str:
    """The text of the outcome."""
    target, arguments = task["target"], task["arguments"]
    match task["kind"]:
        case "tools":
            return " ".join(tool.name for tool in (await client.list_tools()).tools)
        case "read":
            return str((await client.read_resource(target)).contents)
        case "prompt":
            return str((await client.get_prompt(target, arguments)).messages[0].content.text)
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    result = await client.call_tool(target, arguments, progress_callback=step)
    text = " ".join(getattr(block, "text", block.type) for block in result.content)
    return f"{'isError ' if result.is_error else ''}progress {','.join(f'{one:g}' for one in steps)} {text}"


async def main(era: str, transport: str, tasks: list[dict[str, Any]], target: list[str]) -> dict[str, Any]:
    """All tasks, one after the other."""
    place = StdioServerParameters(command=target[0], args=target[1:]) if transport == "stdio" else target[0]
    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with Client(place, mode="auto" if era == "modern" else "legacy", **callbacks) as client:
        heard = {}
        for task in tasks:
            try:
                heard[task["name"]] = await do(client, task)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this task's outcome
                heard[task["name"]] = f"failed: {error}"
        known = {"client": f"Python {version('mcp')}", "transport": transport, "revision": client.protocol_version}
    return {**known, "asked": ASKED, "heard": heard}


if __name__ == "__main__":
    outcome = asyncio.run(asyncio.wait_for(main(*sys.argv[1:3], json.loads(sys.argv[3]), sys.argv[4:]), 60))
    print(json.dumps(outcome))
