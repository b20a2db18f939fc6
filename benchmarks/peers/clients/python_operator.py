"""The official Python client 2.x, unmodified, operating the factory: does the steps that it is told, prints one JSON line.

  PYTHON python_operator.py legacy|modern STEPS COMMAND ARGS…
A step is {"tool": name, "arguments": {…}, "yes": what the person answers} or {"read": URI}. Runs in an environment that has
`mcp>=2` and nothing of ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib.metadata import version
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client
from mcp_types import ElicitResult

PERSON: dict[str, Any] = {"asked": [], "yes": False}


async def elicit(context: Any, params: Any) -> ElicitResult:
    PERSON["asked"].append(params.message)
    if not PERSON["yes"]:
        return ElicitResult(action="decline")
    return ElicitResult(action="accept", content=dict.fromkeys(params.requested_schema["properties"], True))


async def do(client: Client, step: dict[str, Any]) -> dict[str, Any]:
    """What came of one step."""
    if "read" in step:
        return {"text": (await client.read_resource(step["read"])).contents[0].text}
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    PERSON["asked"], PERSON["yes"] = [], bool(step.get("yes"))
    result = await client.call_tool(
        step["tool"], step["arguments"], progress_callback=progress, read_timeout_seconds=500
    )
    return {
        "text": " ".join(getattr(block, "text", block.type) for block in result.content),
        "data": result.structured_content,
        "error": bool(result.is_error),
        "progress": told,
        "asked": list(PERSON["asked"]),
    }


async def main(era: str, steps: list[dict[str, Any]], command: list[str]) -> dict[str, Any]:
    """All steps, one after the other."""
    # all of ours: builds want the settings of the package index, which the client does not hand on by itself
    place = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(place, mode="auto" if era == "modern" else "legacy", elicitation_callback=elicit) as client:
        done = [await do(client, step) for step in steps]
        return {"client": f"Python {version('mcp')}", "revision": client.protocol_version, "done": done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]))))
