"""Requests of a server to its client, and their responses, in either lifecycle."""

from __future__ import annotations

import pytest

from mcpfactory_runtime.revisions import R2025_06_18, REVISIONS
from tests.runtime.wire.raw_client import Json, Speaker

ASKED = [revision for revision in REVISIONS.values() if "elicitation/create" in revision.client_requests]
RICH = [revision for revision in ASKED if revision is not R2025_06_18]
eliciting = pytest.mark.parametrize("revision", ASKED, ids=str)
rich = pytest.mark.parametrize("revision", RICH, ids=str)


async def question(client: Speaker, tool: str) -> tuple[str, Json]:
    """Return method and params of the first request that a call of the tool sends to the client."""
    message = client.make("tools/call", {"name": tool, "arguments": {}})
    await client.say(message)
    if client.revision.modern:
        result = (await client.answer(message["id"]))["result"]
        asked = next(iter(result["inputRequests"].values()))
    else:
        asked = await client.hear()
    return asked["method"], asked.get("params", {})


async def converse(client: Speaker, tool: str, answer: Json) -> Json:
    """Call a tool that asks once, and answer; return the final response."""
    message = client.make("tools/call", {"name": tool, "arguments": {}})
    await client.say(message)
    if not client.revision.modern:
        asked = await client.hear()
        await client.say({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        response: Json = await client.answer(message["id"])
        return response
    result = (await client.answer(message["id"]))["result"]
    again = {
        "name": tool,
        "arguments": {},
        "inputResponses": dict.fromkeys(result["inputRequests"], answer),
        "requestState": result["requestState"],
    }
    return await client.ask("tools/call", again)


SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Roses"}}
