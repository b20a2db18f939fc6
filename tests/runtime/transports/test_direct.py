"""Calls of `def` tools that one thread reads, runs and answers, and how the event loop gets the stream back."""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.transports import direct_server
from tests.runtime.transports.conftest import Process, hello, modern, request
from tests.timeouts import TIMEOUT, wait_until

DIRECT = "direct"


@pytest.fixture
def process() -> Iterator[Process]:
    server = Process([sys.executable, str(Path(direct_server.__file__))])
    with server.process:
        server.ask(hello())
        server.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield server
        server.process.kill()


def call(name: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments}, number)


def text(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


def led(process: Process) -> Process:
    """Call the server until a thread has the stream; on a busy machine the event loop can take it again."""
    wait_until(lambda: text(process.ask(call("where"))) == DIRECT)
    return process


def test_handlers_of_lone_calls_run_where_the_input_is_read(process: Process) -> None:
    led(process)
    new = modern("tools/call", {"name": "where", "arguments": {}}, 9)
    wait_until(lambda: text(process.ask(new)) == DIRECT)
    assert process.end() == 0


def test_a_call_beside_another_runs_in_a_worker_thread(process: Process) -> None:
    process.say(call("wait", 10))
    assert text(process.ask(call("where", 11))) == "handler"
    process.say(call("open", 12))
    assert sorted(process.hear()["id"] for _ in range(2)) == [10, 12]


def test_another_message_is_answered_by_the_event_loop_and_the_thread_gets_the_stream_again(process: Process) -> None:
    for _ in range(3):
        led(process)
        assert process.ask(request("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert process.ask(b"nonsense\n")["error"]["code"] == -32700
        assert text(process.ask(call("add_async", a=1, b=2))) == "3"
        assert process.ask(call("nobody"))["error"]["code"] == -32602
        assert process.ask(request("tools/list"))["result"]["tools"][0]["name"] == "where"


@pytest.mark.parametrize("opener", ["open", "open_async"])
@pytest.mark.parametrize("together", [True, False], ids=["in one write", "one by one"])
def test_a_handler_that_waits_holds_no_other(process: Process, opener: str, together: bool) -> None:
    led(process)
    messages = [call("wait", 10), call("add", 11, a=1, b=2), request("ping", id=12), call(opener, 13)]
    if together:
        process.say(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
    else:
        process.say(messages[0])
        assert [process.ask(one)["id"] for one in messages[1:3]] == [11, 12]
        process.say(messages[3])
    answers = {one["id"]: one for one in (process.hear() for _ in range(4 if together else 2))}
    assert text(answers[13]) == "opened"
    assert text(process.ask(call("add", a=2, b=2))) == "4"


def test_a_call_that_runs_there_can_be_cancelled_and_is_not_answered(process: Process) -> None:
    led(process)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 30}}
    process.say(call("wait", 30), cancel)
    assert process.ask(request("ping", id=31))["id"] == 31
    assert process.ask(call("open", 32))["id"] == 32
    assert process.ask(call("add", 33, a=1, b=2))["id"] == 33
    assert process.end() == 0
    assert (process.stdout.read(), process.errors()) == (b"", "")


@pytest.mark.parametrize("seed", range(3))
def test_of_all_kinds_of_messages_in_all_orders_each_is_answered_once(process: Process, seed: int) -> None:
    choice = random.Random(seed)
    kinds = ("add", "add", "add", "add", "where", "add_async", "fail", "ping", "much")
    messages: list[dict[str, Any]] = []
    for number in range(1500):
        kind = choice.choice(kinds) if number % 300 < 150 else choice.choice(("add", "where"))
        arguments = {
            "add": {"a": 1, "b": 2},
            "add_async": {"a": 1, "b": 2},
            "fail": {"how": "tool"},
            "much": {"size": 9000},
        }
        known = request("ping", id=number) if kind == "ping" else call(kind, number, **arguments.get(kind, {}))
        messages.append(known)
    heard: list[Any] = []
    listener = threading.Thread(target=lambda: heard.extend(process.hear()["id"] for _ in messages), daemon=True)
    listener.start()
    data = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    while data:  # in pieces that end anywhere
        size = choice.choice((1, 50, 400, 5000, 60_000))
        process.stdin.write(data[:size])
        process.stdin.flush()
        data = data[size:]
    listener.join(TIMEOUT)
    assert sorted(heard) == [one["id"] for one in messages]
    assert process.end() == 0


def test_a_last_message_without_a_line_break_is_answered_and_the_end_ends_the_process(process: Process) -> None:
    led(process)
    process.say(json.dumps(call("add", 50, a=1, b=2)).encode())
    process.stdin.close()
    assert process.hear()["id"] == 50
    assert process.process.wait(TIMEOUT) == 0
    assert process.errors() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_whose_thread_waits_for_input(process: Process, number: signal.Signals) -> None:
    led(process)
    process.process.send_signal(number)
    assert process.process.wait(TIMEOUT) == 0
    assert process.errors() == ""
