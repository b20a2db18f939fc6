from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.protocol.connection import META_SERVER, META_VERSION
from mcpfactory_runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from tests.runtime.requirements import requirement
from tests.runtime.transports.conftest import SAMPLE, Process, hello, modern, request
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
SUM = [{"type": "text", "text": "3"}]


@requirement(
    "version.handshake-after-probe", "version.modern-after-handshake", "version.unsupported", "meta.server-info"
)
def test_both_lifecycles_share_a_process_in_any_order(process: Process) -> None:
    assert process.ask(modern("tools/call", ADD))["result"]["content"] == SUM
    assert process.ask(modern("server/discover", None, 2, **{META_VERSION: "2099-01-01"}))["error"]["code"] == (
        UNSUPPORTED_VERSION
    )
    assert process.ask(hello())["result"]["serverInfo"]["name"] == "sample"
    for number in range(3, 33, 2):
        old = process.ask(request("tools/call", ADD, number))
        new = process.ask(modern("tools/call", ADD, number + 1))
        assert (old["id"], old["result"]["content"], "resultType" in old["result"]) == (number, SUM, False)
        assert (new["id"], new["result"]["content"], new["result"]["resultType"]) == (number + 1, SUM, "complete")
        assert META_SERVER in new["result"]["_meta"]


@requirement(
    "stdio.wrong-line",
    "message.not-json",
    "message.not-json-rpc",
    "message.utf-8",
    "message.id-null",
    "initialize.first",
)
@parametrize_subtests(
    "line, code, echoed",
    [
        (b"nonsense\n", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"\n', PARSE_ERROR, None),
        (b"\xff\xfe\n", PARSE_ERROR, None),
        (b"[]\n", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', INVALID_REQUEST, None),
        (b'"text"\n', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":9,"method":7}\n', INVALID_REQUEST, 9),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"x","method":"nothing"}\n', METHOD_NOT_FOUND, "x"),
        (b'{"jsonrpc":"2.0","id":8,"method":"tools/list"}\n', INVALID_REQUEST, 8),
    ],
)
def test_a_wrong_line_is_answered_and_the_process_lives(process: Process, line: bytes, code: int, echoed: Any) -> None:
    answer = process.ask(line)
    assert (answer["error"]["code"], answer["id"]) == (code, echoed)
    assert process.ask(request("ping", id="after")) == {"jsonrpc": "2.0", "id": "after", "result": {}}


def test_a_message_that_is_too_long_is_refused_without_being_kept() -> None:
    program = "from mcpfactory_runtime import Server\nServer('small', max_message_size=1000).run_stdio()"
    small = Process([sys.executable, "-c", program])
    with small.process:
        small.say(b"x" * 5000)
        small.say(b"x" * 100_000 + b"\n")
        assert small.hear()["error"]["code"] == INVALID_REQUEST
        refused = small.ask(request("tools/call", {"name": "x" * 5000}, "big"))
        assert (refused["id"], refused["error"]["code"]) == ("big", INVALID_REQUEST)
        assert small.ask(request("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert small.end() == 0


def test_only_a_result_that_follows_progress_waits() -> None:
    """Clients on the TypeScript SDK lose progress that they read together with the result of the same request."""
    program = """
from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.server.session import Session
from mcpfactory_runtime.transports import shutdown, stdio
assert stdio._StdioSession.progress_gap > Session.progress_gap == 0
stdio._StdioSession.progress_gap = 3600
shutdown.DRAIN = 0
server = Server("steps")
@server.tool
async def step(ctx: Context) -> str:
    ctx.report_progress(1)
    return "done"
server.run_stdio()
"""
    steps = Process([sys.executable, "-c", program])
    with steps.process:
        steps.ask(hello())
        steps.say(request("tools/call", {"name": "step", "_meta": {"progressToken": "t"}}, 1))
        assert steps.hear()["params"] == {"progressToken": "t", "progress": 1}
        assert steps.ask(request("tools/call", {"name": "step"}, 2))["id"] == 2
        assert steps.end() == 0
        assert "error" in steps.hear()


@requirement("stdio.only-messages", "tools.sanitize")
def test_what_handlers_print_and_what_crashes_goes_to_stderr(process: Process) -> None:
    process.ask(hello())
    assert process.ask(request("tools/call", {"name": "in_a_thread", "arguments": {"text": "x"}}))["result"]["content"]
    assert process.ask(request("tools/call", {"name": "crash"}, 2))["result"]["isError"]
    assert process.end() == 0
    told = process.errors()
    assert "noise that must not reach the client" in told
    assert "the password is 1234" in told


@requirement("stdio.only-messages")
def test_neither_a_child_process_nor_the_descriptor_can_write_into_the_protocol() -> None:
    program = """
import os, subprocess
from mcpfactory_runtime import Server
server = Server("noisy")
@server.tool
async def shout() -> str:
    os.write(1, b"raw noise\\n")
    subprocess.run(["echo", "child noise"], check=True)
    assert subprocess.run(["cat"], check=True, capture_output=True).stdout == b""
    return "quiet"
server.run_stdio()
"""
    noisy = Process([sys.executable, "-c", program])
    with noisy.process:
        noisy.ask(hello())
        assert noisy.ask(request("tools/call", {"name": "shout"}))["result"]["content"][0]["text"] == "quiet"
        assert noisy.end() == 0
        assert "raw noise" in (told := noisy.errors())
        assert "child noise" in told


@requirement("stdio.only-messages")
def test_text_printed_before_serving_goes_to_stderr_and_later_text_to_stdout() -> None:
    program = """
import asyncio
print("printed first")
from mcpfactory_runtime import Server
asyncio.run(Server("early").run_async("stdio"))
print("x" * 1_000_000)
"""
    line = json.dumps(hello()).encode() + b"\n"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=line, env=environ, capture_output=True, timeout=TIMEOUT, check=True)
    answer, afterwards = done.stdout.splitlines()
    assert json.loads(answer)["id"] == 0
    assert len(afterwards) == 1_000_000
    assert done.stderr == b"printed first\n"


@requirement("stdio.end-of-input")
@pytest.mark.parametrize("tool", ["wait_for_ever", "sleep_in_a_thread"])
def test_the_end_of_the_input_ends_the_process_though_a_handler_runs_too_long(tool: str) -> None:
    program = """
import asyncio, time
from mcpfactory_runtime import Server, Context
from mcpfactory_runtime.transports import shutdown
shutdown.DRAIN = 0.1
server = Server("slow")
@server.tool
async def wait_for_ever(ctx: Context) -> str:
    ctx.info("started")
    await asyncio.Event().wait()
@server.tool
def sleep_in_a_thread(ctx: Context) -> str:
    ctx.info("started")
    time.sleep(3600)
server.run_stdio()
"""
    slow = Process([sys.executable, "-c", program])
    with slow.process:
        slow.ask(hello())
        slow.say(request("tools/call", {"name": tool}))
        assert slow.hear()["method"] == "notifications/message"
        assert slow.end() == 0
        assert slow.hear()["error"]["code"] == INTERNAL_ERROR


@requirement("stdio.drain")
def test_what_is_piped_in_is_answered_before_the_end(tmp_path: Path) -> None:
    lines = "".join(
        json.dumps(message) + "\n" for message in (hello(), request("tools/call", ADD), request("ping", id=2))
    )
    piped = subprocess.run(SAMPLE, input=lines.rstrip(), capture_output=True, text=True, timeout=TIMEOUT, check=True)
    script = tmp_path / "script"
    script.write_text(lines)
    with script.open() as file:
        from_file = subprocess.run(SAMPLE, stdin=file, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    for done in (piped, from_file):
        assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {0, 1, 2}
        assert done.stderr == ""


@requirement("stdio.drain", "stdio.one-line")
def test_output_into_a_file_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with target.open("wb") as out:
        lines = json.dumps(hello()) + "\n" + json.dumps(request("tools/list")) + "\n"
        subprocess.run(SAMPLE, input=lines.encode(), stdout=out, timeout=TIMEOUT, check=True)
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == [0, 1]


@requirement("stdio.signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_without_a_traceback(process: Process, number: signal.Signals) -> None:
    process.ask(hello())
    process.process.send_signal(number)
    assert process.process.wait(TIMEOUT) == 0
    assert "Traceback" not in process.errors()


def test_a_client_that_goes_away_ends_the_process(process: Process) -> None:
    process.ask(hello())
    process.stdout.close()
    process.say(request("ping"))
    assert process.process.wait(TIMEOUT) == 0


@requirement("stdio.interleave")
def test_many_requests_in_flight_are_all_answered_once(process: Process) -> None:
    process.ask(hello())
    numbers = range(1, 501)
    for start in range(1, 501, 50):
        messages = []
        for number in range(start, start + 50):
            make = modern if number % 2 else request
            messages.append(make("tools/call", {"name": "add", "arguments": {"a": number, "b": 0}}, number))
        process.say(*messages)
    answers = {(answer := process.hear())["id"]: answer["result"]["content"][0]["text"] for _ in numbers}
    assert answers == {number: str(number) for number in numbers}


def test_a_stdio_server_with_builtin_types_loads_no_heavy_library() -> None:
    program = """
import sys
from mcpfactory_runtime import Server, Context
server = Server("light")
@server.tool
async def add(a: int, b: float = 1, names: list[str] | None = None, ctx: Context | None = None) -> dict[str, int]:
    "Add."
    heavy = {"pydantic", "anyio", "starlette", "uvicorn", "httpx", "httpcore", "jsonschema", "jinja2", "ssl_", "hashlib"}
    return {name: 1 for name in sys.modules if name.split(".")[0] in heavy}
server.run_stdio()
"""
    light = Process([sys.executable, "-c", program])
    with light.process:
        light.ask(hello())
        result = light.ask(request("tools/call", {"name": "add", "arguments": {"a": 1}}))["result"]
        assert result["structuredContent"] == {}
        assert light.end() == 0
