"""The end of a process: requests in flight are answered, new ones are refused, streams end."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST
from tests.runtime.transports.blocking_http_server import GATED, Gate, Web, calling, serving
from tests.runtime.transports.conftest import Process, hello, modern, request
from tests.timeouts import TIMEOUT, wait_until


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def refuses_connections(web: Web) -> bool:
    try:
        socket.create_connection(("127.0.0.1", web.port or 0), 1).close()
    except OSError:
        return True
    return False


FOR_AN_HOUR = """
from mcpfactory_runtime.transports import shutdown, stdio
shutdown.DRAIN = 3600
stdio._GRACE = 0
from tests.runtime.transports.blocking_server import server
server.run()
"""


@pytest.mark.parametrize(
    ("number", "lifecycle", "tool"),
    [(signal.SIGTERM, "session", "hold"), (signal.SIGINT, "per request", "hold_in_a_thread")],
)
def test_a_request_in_flight_is_answered_and_new_ones_are_refused(
    tmp_path: Path, gate: Gate, number: signal.Signals, lifecycle: str, tool: str
) -> None:
    with serving(tmp_path) as web, ThreadPoolExecutor() as threads:
        headers = web.begin() if lifecycle == "session" else None
        waiting = threads.submit(web.call, tool, {"gate": gate.path}, headers)
        gate.wait()
        web.process.send_signal(number)
        wait_until(lambda: refuses_connections(web))
        assert web.process.poll() is None
        gate.open("kept")
        answer = waiting.result(TIMEOUT)
        assert answer.status_code == 200
        assert answer.json()["result"]["content"][0]["text"] == "kept"
        assert web.process.wait(TIMEOUT) == 0
        assert "Traceback" not in web.told


def test_streams_without_a_request_end(tmp_path: Path) -> None:
    listen: dict[str, Any] = {"json": modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 9)}
    listen["headers"] = {"mcp-protocol-version": LATEST.name, "mcp-method": "subscriptions/listen"}
    with serving(tmp_path) as web:
        headers = web.begin()
        with (
            web.http.stream("GET", "/mcp", headers=headers) as own,
            web.http.stream("GET", "/sse") as old,
            web.http.stream("POST", "/mcp", **listen) as listening,
        ):
            lines = listening.iter_lines()
            assert "acknowledged" in next(line for line in lines if line.startswith("data:"))
            web.process.terminate()
            assert own.read() == b""
            assert b"endpoint" in old.read()
            assert json.loads(next(line for line in lines if line.startswith("data:"))[6:])["id"] == 9
        assert web.process.wait(TIMEOUT) == 0
        assert "Traceback" not in web.told


def test_a_question_that_nobody_can_answer_any_more_fails_the_call_instead_of_the_drain(tmp_path: Path) -> None:
    with serving(tmp_path) as web:
        headers = web.begin(elicitation={})
        with web.http.stream("POST", "/mcp", **calling("ask", {}, headers)) as asking:
            lines = (line for line in asking.iter_lines() if line.startswith("data: {"))
            assert json.loads(next(lines)[6:])["method"] == "elicitation/create"
            web.process.terminate()
            assert json.loads(next(lines)[6:])["error"]["code"] == INTERNAL_ERROR
        assert web.process.wait(TIMEOUT) == 0


LIFESPAN = """
import asyncio, sys, time
from collections.abc import AsyncIterator
from mcpfactory_runtime import Server
from mcpfactory_runtime.transports import shutdown
shutdown.DRAIN = shutdown.LIFESPAN_END = shutdown._REST = 0.1
hanging = sys.argv.pop(1)
server = Server("late", version="1")
@server.lifespan
async def started(server: Server) -> AsyncIterator[None]:
    sys.stderr.write("the lifespan began\\n")
    sys.stderr.flush()
    if hanging == "start":
        await asyncio.Event().wait()
    yield
    if hanging == "end":
        await asyncio.Event().wait()
    if hanging == "thread":
        await asyncio.to_thread(time.sleep, 1e9)
@server.tool
async def ping() -> str:
    return "pong"
server.run()
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_url_is_printed_when_the_server_serves(workers: str) -> None:
    command = [sys.executable, "-c", LIFESPAN, "nothing", "--http", "--port", "0", "--workers", workers]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stderr or ())
        before = list(itertools.takewhile(lambda line: "serving MCP" not in line, lines))
        assert set(before) == {"the lifespan began\n"}
        process.terminate()
        assert "serving MCP" not in "".join(lines)
        assert process.wait(TIMEOUT) == 0


@pytest.mark.anyio
async def test_the_url_of_an_embedded_server_is_printed_when_it_serves(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server("embedded")

    @server.lifespan
    async def started(_: Server) -> AsyncIterator[None]:
        sys.stderr.write("the lifespan began\n")
        yield

    serving = asyncio.create_task(server.run_async("http", port=0))
    told = ""
    while "serving MCP" not in told:
        await asyncio.sleep(0)
        told += capsys.readouterr().err
    assert told.startswith("the lifespan began\n")
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


def test_a_second_interrupt_over_http_does_not_wait_for_the_lifespan(tmp_path: Path) -> None:
    program = LIFESPAN.replace("shutdown.LIFESPAN_END = shutdown._REST = 0.1", "shutdown.LIFESPAN_END = 3600")
    with serving(tmp_path, command=[sys.executable, "-c", program, "end"]) as web:
        web.process.send_signal(signal.SIGINT)
        wait_until(lambda: refuses_connections(web))
        web.process.send_signal(signal.SIGINT)
        assert web.process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("hanging", ["start", "end", "thread"])
@pytest.mark.parametrize("how", ["end of the input", "SIGTERM", "SIGINT", "SIGTERM over HTTP", "SIGINT over HTTP"])
def test_a_lifespan_that_hangs_does_not_keep_the_process(hanging: str, how: str) -> None:
    web = ["--http", "--port", "0"] if how.endswith("HTTP") else []
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", LIFESPAN, hanging, *web]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(hello()) + "\n")
        process.stdin.flush()
        assert process.stderr.readline() == "the lifespan began\n"
        if web and hanging != "start":
            assert "serving MCP" in process.stderr.readline()
        if how.startswith("SIG"):
            process.send_signal(getattr(signal, how.split(maxsplit=1)[0]))
        else:
            process.stdin.close()
        assert process.wait(TIMEOUT) == 0
        told = process.stderr.read()
        assert "the lifespan" in told or "although some code still runs" in told
        assert "Traceback" not in told
        assert "exception was never retrieved" not in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_stdio_a_signal_lets_requests_in_flight_end_and_refuses_new_ones(gate: Gate, number: signal.Signals) -> None:
    server = Process(GATED)
    with server.process:
        server.ask(hello())
        server.say(request("tools/call", {"name": "hold", "arguments": {"gate": gate.path}}, 1))
        gate.wait()
        server.process.send_signal(number)
        numbers = iter(range(2, 100_000))

        def refused() -> bool:  # the signal is handled a moment after it was sent
            return "error" in server.ask(request("ping", id=next(numbers)))

        wait_until(refused)
        assert server.ask(request("ping", id="x"))["error"]["code"] == INTERNAL_ERROR
        gate.open("kept")
        assert server.hear()["result"]["content"][0]["text"] == "kept"
        assert server.process.wait(TIMEOUT) == 0


def ask_anything(server: Process) -> Any:
    return server.ask(request("ping", id=str(object())))


@pytest.mark.parametrize("first", ["end of the input", "signal"])
@pytest.mark.parametrize("then", ["answer", "signal"])
def test_on_stdio_the_drain_ends_with_the_answers_or_a_signal(gate: Gate, first: str, then: str) -> None:
    server = Process([sys.executable, "-c", FOR_AN_HOUR])
    with server.process:
        server.ask(hello(elicitation={}))
        server.say(request("tools/call", {"name": "hold_in_a_thread", "arguments": {"gate": gate.path}}, "held"))
        gate.wait()
        server.say(request("tools/call", {"name": "ask_twice"}, "asking"))
        assert server.hear()["method"] == "elicitation/create"
        if first == "signal":
            server.process.terminate()
            wait_until(lambda: "error" in ask_anything(server))
        server.stdin.close()
        assert server.hear()["id"] == "asking"  # both questions fail, because no response can arrive
        if then == "signal":
            server.process.terminate()
        else:
            gate.open("kept")
        answer = server.hear()
        assert answer["id"] == "held"
        assert ("error" in answer) is (then == "signal")
        assert server.process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("lifecycle", ["session", "per request"])
def test_a_request_that_the_end_cuts_off_leaves_no_traceback_and_gets_an_error_where_it_can(
    tmp_path: Path, gate: Gate, lifecycle: str
) -> None:
    program = (
        "from mcpfactory_runtime.transports import shutdown; shutdown.DRAIN = 0\n"
        "from tests.runtime.transports.blocking_server import server; server.run()"
    )
    with serving(tmp_path, command=[sys.executable, "-c", program]) as web, ThreadPoolExecutor() as threads:
        headers = web.begin() if lifecycle == "session" else None
        waiting = threads.submit(web.call, "hold", {"gate": gate.path}, headers)
        gate.wait()
        web.process.terminate()
        wait([waiting], TIMEOUT)
        gate.open("late")
        assert web.process.wait(TIMEOUT) == 0
        assert "Traceback" not in web.told
        answer = waiting.result()
        assert (answer.status_code, answer.json()["error"]["code"]) == (200, INTERNAL_ERROR)
