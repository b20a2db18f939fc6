"""Answers without an ID, which some servers send to notifications, are not taken for the answer to the next request."""

from __future__ import annotations

import asyncio
import sys

from mcpfactory_pipeline.checks.evidence import Session
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from mcpfactory_runtime.types import Json

SERVER = """
import json, sys
for line in sys.stdin:
    number = json.loads(line).get("id")
    body = {"result": {}} if number is not None else {"error": {"code": -32600, "message": "no id"}}
    print(json.dumps({"jsonrpc": "2.0", "id": number, **body}), flush=True)
"""


async def ids_of_answers() -> list[object]:
    conversation = await StdioConversation.start((sys.executable, "-c", SERVER), None, {}, "a test")
    assert not isinstance(conversation, Session)
    requests: list[Json] = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2, 3)]
    try:
        exchanges = []
        for request in requests:
            await conversation.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
            exchanges.append(await conversation.ask(request, 10.0))
    finally:
        await conversation.close()
    return [(one.received or {}).get("id") for one in exchanges]


def test_the_answer_to_a_notification_is_not_the_answer_to_the_next_request() -> None:
    assert asyncio.run(ids_of_answers()) == [1, 2, 3]
