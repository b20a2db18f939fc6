"""Calls of `def` tools that one thread reads, runs and answers, and how the event loop gets the stream back."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE, until
from tests.runtime.transports import direct_server
from tests.runtime.transports.conftest import Process, hello, modern, request

DIRECT = "stdio"  # the name of the thread
IN_A_ROW = 5  # more calls in a row than the thread needs to get the stream


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
    """Call the server until the thread has the stream; on a busy machine it can get it later than after the first calls."""
    until(lambda: text(process.ask(call("where"))) == DIRECT)
    return process


def test_after_some_calls_of_def_tools_their_handlers_run_where_the_input_is_read(process: Process) -> None:
    assert text(process.ask(call("where"))) == "handler"
    led(process)
    new = modern("tools/call", {"name": "where", "arguments": {}}, 9)
    until(lambda: text(process.ask(new)) == DIRECT)
    assert process.end() == 0


def test_another_message_is_answered_by_the_event_loop_and_the_thread_gets_the_stream_again(process: Process) -> None:
    for _ in range(3):
        led(process)
        assert process.ask(request("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert process.ask(b"nonsense\n")["error"]["code"] == -32700
        assert text(process.ask(call("add_async", a=1, b=2))) == "3"
        assert process.ask(call("nobody"))["error"]["code"] == -32602
        assert process.ask(request("tools/list"))["result"]["tools"][0]["name"] == "where"


def test_what_a_handler_raises_or_cannot_send_is_answered_as_elsewhere(process: Process) -> None:
    wrong = [call("fail", 1, how=how) for how in ("tool", "bug", "exit")]
    wrong += [call("odd"), call("add", a="x", b=1), call("add"), request("tools/call", {"name": "add", "arguments": 5})]
    elsewhere = [[process.ask(request("ping", id="between")), process.ask(one)][1] for one in wrong]
    led(process)
    assert [process.ask(one) for one in wrong] == elsewhere
    assert text(process.ask(call("add", a=1, b=2))) == "3"


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
    assert (text(answers[10]), text(answers[13])) == (DIRECT, "opened")
    assert text(process.ask(call("add", a=2, b=2))) == "4"


def test_another_message_does_not_wait_for_all_calls_that_came_before_it(process: Process) -> None:
    led(process)
    calls = [call("count", number) for number in range(600)]
    process.say(b"".join(json.dumps(one).encode() + b"\n" for one in [*calls, request("ping", id="behind")]))
    order = [process.hear()["id"] for _ in range(len(calls) + 1)]
    assert sorted(one for one in order if one != "behind") == list(range(600))
    assert order.index("behind") < 400


def test_answers_before_one_that_waits_do_not_wait_with_it(process: Process) -> None:
    led(process)
    messages = [call("add", 20, a=1, b=2), call("add", 21, a=1, b=2), call("wait", 22)]
    process.say(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
    assert [process.hear()["id"], process.hear()["id"]] == [20, 21]
    process.say(call("open", 23))
    assert {process.hear()["id"], process.hear()["id"]} == {22, 23}


def test_a_call_that_runs_there_can_be_cancelled_and_is_not_answered(process: Process) -> None:
    led(process)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 30}}
    process.say(call("wait", 30), cancel)
    assert process.ask(request("ping", id=31))["id"] == 31
    assert process.ask(call("open", 32))["id"] == 32
    assert process.ask(call("add", 33, a=1, b=2))["id"] == 33
    assert process.end() == 0
    assert process.stdout.read() == b""


def test_while_anything_else_is_in_flight_the_event_loop_keeps_the_stream(process: Process) -> None:
    process.say(call("wait_async", 40))
    assert {text(process.ask(call("where", number))) for number in range(2 * IN_A_ROW)} == {"handler"}
    process.say(call("open", 41))
    assert {process.hear()["id"], process.hear()["id"]} == {40, 41}
    process.ask(request("ping"))
    led(process)


def test_a_thread_whose_stream_was_taken_reads_no_more(process: Process) -> None:
    led(process)
    process.say(call("wait", 42))
    assert process.ask(request("ping", id=43))["id"] == 43
    process.say(call("open", 44))
    assert {process.hear()["id"], process.hear()["id"]} == {42, 44}
    for number in range(100):
        process.ask(request("ping"))
        assert text(process.ask(call("where", number))) == "handler"


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
    listener.join(PATIENCE)
    assert sorted(heard) == [one["id"] for one in messages]
    assert process.end() == 0


def test_a_client_that_does_not_read_for_a_while_gets_all_in_the_end(process: Process) -> None:
    led(process)
    count, size = 40, 300_000  # more than a pipe holds
    sender = threading.Thread(
        target=lambda: process.say(*(call("much", number, size=size) for number in range(count))), daemon=True
    )
    sender.start()
    sender.join(PATIENCE)
    answers = [process.hear() for _ in range(count)]
    assert sorted(one["id"] for one in answers) == list(range(count))
    assert {len(text(one)) for one in answers} == {size}
    assert text(process.ask(call("add", a=1, b=2))) == "3"


def test_a_last_message_without_a_line_break_is_answered_and_the_end_ends_the_process(process: Process) -> None:
    led(process)
    process.say(json.dumps(call("add", 50, a=1, b=2)).encode())
    process.stdin.close()
    assert process.hear()["id"] == 50
    assert process.process.wait(PATIENCE) == 0
    assert process.errors() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_whose_thread_waits_for_input(process: Process, number: signal.Signals) -> None:
    led(process)
    process.process.send_signal(number)
    assert process.process.wait(PATIENCE) == 0
    assert process.errors() == ""


def test_a_call_that_runs_there_when_a_signal_comes_is_answered_first(process: Process, tmp_path: Path) -> None:
    led(process)
    process.say(call("wait", 60))
    assert process.ask(request("ping", id=61))["id"] == 61  # the handler runs, and the event loop has the stream
    process.say(call("open", 62))
    process.process.send_signal(signal.SIGTERM)
    rest = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert 60 in {one["id"] for one in rest if "result" in one}
    assert process.process.wait(PATIENCE) == 0


def test_the_end_of_the_input_ends_a_process_whose_handler_never_does(process: Process) -> None:
    led(process)
    process.say(call("wait", 70))
    assert process.end() == 0


def test_a_client_that_has_closed_the_output_ends_the_process(process: Process) -> None:
    led(process)
    process.stdout.close()
    process.say(call("add", 80, a=1, b=2))
    assert process.process.wait(PATIENCE) == 0


def test_handlers_that_are_never_done_at_once_get_the_stream_ever_more_rarely(process: Process) -> None:
    led(process)
    process.say(call("wait", 90))
    assert process.ask(request("ping", id=91))["id"] == 91
    process.say(call("open", 92))
    assert {process.hear()["id"], process.hear()["id"]} == {90, 92}
    process.ask(request("ping"))
    names = [text(process.ask(call("where", number))) for number in range(IN_A_ROW)]
    assert names == ["handler"] * IN_A_ROW  # as many calls in a row as before are not enough
    led(process)


def test_it_works_where_the_server_is_a_part_of_a_program_that_goes_on(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.runtime.transports.direct_server import server

async def main():
    task = asyncio.ensure_future(server.run_async("stdio"))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler({int(signal.SIGUSR1)}, stop.set)
    await stop.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    sys.stderr.write("went on")

asyncio.run(main())
"""
    other = Process([sys.executable, "-c", program])
    with other.process:
        other.ask(hello())
        led(other)
        os.kill(other.process.pid, signal.SIGUSR1)
        assert other.process.wait(PATIENCE) == 0
        assert other.errors() == "went on"
