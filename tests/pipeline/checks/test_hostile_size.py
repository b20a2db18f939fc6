"""What a server sends to be judged costs in proportion to its size, and kinds that are no words break nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.checks.canaries import tool_probes
from mcpfactory_pipeline.checks.evidence import Session
from mcpfactory_pipeline.checks.transport import conversation
from mcpfactory_pipeline.checks.transport.conversation import MessageLog, split_streams
from tests.subtest_table import parametrize_subtests


def test_a_flood_on_streams_is_kept_up_to_a_bound_and_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    real = conversation.is_acknowledgement
    monkeypatch.setattr(conversation, "is_acknowledgement", lambda message: looked.append(message) or real(message))
    log = MessageLog(Session("a flood"))
    log.heard = []
    for _ in range(12_000):
        log.received({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    assert len(log.heard) == 10_000
    first, second = split_streams([{"id": 1}, {"id": 2}], log.heard)
    assert (len(first.heard), len(second.heard)) == (10_000, 0)
    assert len(looked) == 10_000


@parametrize_subtests(
    "name, description, tempted",
    [
        ("transcript", "Fetches the transcript of a video.", True),
        ("subscribe", "Stores a subscription and its description.", True),
        ("rates", "Rates of a currency code at the terminal of an airport.", True),
        ("run_cmd", "Does it.", False),
        ("exec", "Runs a program in the sandbox and returns what it prints.", False),
        ("pythonRepl", "A session.", False),
        ("do", "Run the given Python code.", False),
        ("do", "Executes a shell command.", False),
    ],
)
def test_only_tools_that_are_there_to_run_something_get_no_commands(
    name: str, description: str, *, tempted: bool
) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    tool = {"name": name, "description": description, "inputSchema": schema}

    class _Canaries:
        file = Path("/x")
        url = "http://127.0.0.1:1"

    kinds = {one.kind for one in tool_probes([(name, tool)], {name: {"word": "x"}}, _Canaries())}  # type: ignore[arg-type] # what it reads
    assert ("command" in kinds) is tempted
