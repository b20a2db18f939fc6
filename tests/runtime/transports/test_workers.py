"""Several worker processes behind one port, with real clients: any worker may get any request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from mcp.client import Client as OfficialClient
from mcp_types import ElicitResult

from tests.runtime.transports.blocking_http_server import GATED, Gate, Web, serving
from tests.skip_conditions import needs
from tests.system import is_running
from tests.timeouts import TIMEOUT, wait_until

pytestmark = [pytest.mark.anyio, needs("posix")]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with serving(tmp_path, "--workers", "2") as running:
        yield running
        end(running)


def end(web: Web) -> None:
    pids = children(web)
    web.process.terminate()
    assert web.process.wait(TIMEOUT) == 0, web.told
    assert not any(is_running(pid) for pid in pids)
    assert "Traceback" not in web.told, web.told


def children(web: Web) -> list[int]:
    """The workers; there are two of them unless one is just being replaced."""
    wait_until(lambda: len(_children(web)) == 2)
    return _children(web)


def _children(web: Web) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{web.process.pid}/task/{web.process.pid}/children").read_text().split()]


def who(web: Web, headers: dict[str, str] | None = None) -> int:
    """The process that answers over a new connection."""
    return int(web.call("who", {}, headers).json()["result"]["content"][0]["text"])


def session_of(web: Web, pid: int) -> dict[str, str]:
    """A session of one of the workers."""
    found: list[dict[str, str]] = []

    def begun() -> bool:
        with httpx.Client(base_url=web.root, trust_env=False, verify=False) as http:
            found.append(web.begin(http, elicitation={}))
        return who(web, found[-1]) == pid

    wait_until(begun)
    return found[-1]


def test_both_workers_serve_and_each_session_has_one_of_them(web: Web) -> None:
    pids = children(web)
    assert len(pids) == 2
    for pid in pids:
        wait_until(lambda wanted=pid: who(web) == wanted)  # type: ignore[misc] # - bound in this turn
    for pid in pids:
        headers = session_of(web, pid)
        assert {who(web, headers) for _ in range(20)} == {pid}
        assert web.http.delete("/mcp", headers=headers).status_code == 200
        assert web.call("who", {}, headers).status_code == 404
    assert web.call("who", {}, {"mcp-session-id": "7.unknown"}).status_code == 404
    assert web.call("who", {}, {"mcp-session-id": "1.unknown"}).status_code == 404
    assert web.http.post("/mcp", json={}, headers={"origin": "http://evil", "mcp-session-id": "1.x"}).status_code == 403


async def elicit(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ann"})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_calls_and_answers(web: Web, mode: Literal["auto", "legacy"]) -> None:
    for _ in range(4):
        async with OfficialClient(web.url, mode=mode, elicitation_callback=elicit) as client:
            pids = {(await client.call_tool("who")).structured_content["result"] for _ in range(10)}
            assert pids <= set(children(web))
            for _ in range(5):
                assert "Ann" in str((await client.call_tool("ask")).content)


def test_a_stream_of_another_worker_is_resumed(web: Web, tmp_path: Path) -> None:
    headers = session_of(web, children(web)[0])
    gate = Gate(tmp_path / "gate")
    with ThreadPoolExecutor() as threads:
        calling = threads.submit(web.call, "speak_and_hold", {"gate": gate.path, "words": ["one"]}, headers)
        gate.wait()
        gate.open("two")
        lines = calling.result(TIMEOUT).text.splitlines()
    first = next(line[4:] for line in lines if line.startswith("id: "))
    for _ in range(8):
        with httpx.Client(base_url=web.root, trust_env=False, verify=False) as http:
            again = http.get("/mcp", headers={**headers, "last-event-id": first})
        assert again.text.splitlines() == lines[lines.index("", 1) + 1 :] or "two" in again.text


def test_a_dead_worker_is_replaced_and_its_sessions_live_on(web: Web) -> None:
    dead, other = children(web)
    lost, kept = session_of(web, dead), session_of(web, other)
    os.kill(dead, signal.SIGKILL)
    wait_until(lambda: dead not in _children(web))
    assert who(web, lost) in children(web)
    assert who(web, kept) == other
    wait_until(lambda: who(web) not in (dead, other))
    assert "another takes its place" in web.told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_in_flight_are_answered_also_those_handed_over(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "--workers", "2") as web, ThreadPoolExecutor(8) as threads:
        sessions = [session_of(web, pid) for pid in children(web)]
        gates = [Gate(tmp_path / f"gate{turn}") for turn in range(8)]
        waiting = [
            threads.submit(web.call, "hold", {"gate": gate.path}, sessions[turn % 2], turn)
            for turn, gate in enumerate(gates)
        ]
        for gate in gates:
            gate.wait()
        web.process.send_signal(number)
        for gate in gates:
            gate.open("kept")
        assert [answer.result(TIMEOUT).json()["result"]["content"][0]["text"] for answer in waiting] == ["kept"] * 8
        assert web.process.wait(TIMEOUT) == 0
        assert "Traceback" not in web.told, web.told


def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as web:
        pids = children(web)
        assert who(web) in pids
        web.process.kill()
        wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_server_that_cannot_start_says_so_and_ends(tmp_path: Path) -> None:
    program = """
from mcpfactory_runtime import Server
async def life(server):
    raise RuntimeError("no database")
    yield
server = Server("broken", lifespan=life)
server.run()
"""
    command = [sys.executable, "-c", program, "--http", "--port", "0", "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=TIMEOUT)
    assert ended.returncode == 1
    assert "giving up" in ended.stderr
    assert "serving MCP" not in ended.stderr


def test_metrics_of_several_workers_are_refused(tmp_path: Path) -> None:
    refused = subprocess.run(
        [*GATED, "--http", "--port", "0", "--workers", "2", "--metrics"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert refused.returncode != 0
    assert "hint: use --otel" in refused.stderr
