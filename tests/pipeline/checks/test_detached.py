"""A server whose descendant left its session and holds its pipes: the conversation ends all the same, and nobody is left behind."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mcpfactory_pipeline.checks.evidence import Session
from mcpfactory_pipeline.checks.transport import stdio
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from mcpfactory_pipeline.isolation.processes import adopt_orphans
from tests.skip_conditions import needs
from tests.system import is_running
from tests.timeouts import TIMEOUT, wait_until

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)

# It answers with the number of a process that left its session; then neither of them ends: not with its input, not by SIGTERM.
STAYS = """
import json, os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stays = os.fork()
if stays == 0:
    os.setsid()
    signal.alarm(600)
    signal.pause()
sys.stdin.readline()
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"pid": stays}}), flush=True)
sys.stdin.read()
if sys.argv[1] == "both":
    signal.alarm(600)
    signal.pause()
"""


@pytest.fixture
def adopting() -> Iterator[None]:
    """Adopt orphans, as every process that examines a server does."""
    assert adopt_orphans()
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@needs("linux")
@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize(("who", "terminate"), [("both", False), ("both", True), ("child", False)])
def test_a_detached_descendant_keeps_no_conversation_from_its_end(
    who: str, monkeypatch: pytest.MonkeyPatch, *, terminate: bool
) -> None:
    monkeypatch.setattr(stdio, "END_PATIENCE", 0.3 if who == "both" else 20.0)

    async def speak() -> tuple[int, Session]:
        command = (sys.executable, "-S", "-c", STAYS, who)
        conversation = await StdioConversation.start(command, None, {}, "a test")
        assert isinstance(conversation, StdioConversation)
        answer = await conversation.ask({"jsonrpc": "2.0", "id": 1, "method": "ping"}, TIMEOUT)
        assert answer.result is not None, json.dumps(answer.received)
        await conversation.close(terminate=terminate)
        return int(answer.result["pid"]), conversation.session

    pid, ended = asyncio.run(asyncio.wait_for(speak(), TIMEOUT))
    assert (ended.ended_after is None) is (who == "both")
    wait_until(lambda: not is_running(pid))
    os.waitpid(pid, 0)


@needs("linux")
def test_a_process_of_somebody_else_is_not_ended_though_its_id_was_known() -> None:
    """Ids are used again: only who still descends from this process is ended."""
    with subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"]) as other:
        program = f"from mcpfactory_pipeline.isolation.processes import kill_known_processes; kill_known_processes({{{other.pid}}})"
        try:
            subprocess.run([sys.executable, "-c", program], check=True)  # from a process that it does not descend from
            assert is_running(other.pid)
        finally:
            other.kill()
