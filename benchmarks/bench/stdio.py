"""Workloads over stdio: spawn to first tool answer, calls one at a time, calls 50 in flight, memory after them."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.bench.messages import Pipe, call

ADD = {"a": 1, "b": 2}


def startup(command: Sequence[str]) -> float:
    """Milliseconds from spawning the server to the answer of its first tool call."""
    begin = time.perf_counter()
    pipe = Pipe(command)
    try:
        pipe.handshake()
        pipe.send(call(1, "add", ADD))
        answer = pipe.answer(1)
        spent = (time.perf_counter() - begin) * 1000
        assert answer["result"]["content"][0]["text"] == "3", answer
        return spent
    finally:
        pipe.close()


def one_at_a_time(
    command: Sequence[str],
    calls: int = 4000,
    *,
    one_core: bool = False,
    tool: str = "add",
    environ: Mapping[str, str] | None = None,
) -> tuple[float, float]:
    """Calls a second when each waits for the one before, and the server's resident memory in MiB afterwards.

    Args:
        command: starts the server.
        calls: how many are counted; a tenth as many go before them.
        one_core: keep this process and the server on one core.
        tool: another name of `add`.
        environ: variables on top of ours.
    """
    with _kept_together(one_core):
        pipe = Pipe(command, environ=environ)
        try:
            pipe.handshake()
            return _serial(pipe, calls, tool), pipe.resident() / 1024
        finally:
            pipe.close()


def echo(calls: int = 4000, *, one_core: bool = False) -> float:
    """The same with `cat` as the server: what the machine and this client leave at most."""
    with _kept_together(one_core):
        pipe = Pipe(["cat"])
        try:
            return _serial(pipe, calls)
        finally:
            pipe.close()


def _serial(pipe: Pipe, calls: int, tool: str = "add") -> float:
    lines = [json.dumps(call(number, tool, ADD)).encode() + b"\n" for number in range(1, calls + 1)]
    for line in lines[: calls // 10]:
        _round(pipe, line)
    begin = time.perf_counter()
    for line in lines:
        _round(pipe, line)
    return calls / (time.perf_counter() - begin)


@contextlib.contextmanager
def _kept_together(wanted: bool) -> Iterator[None]:
    """Binds this process, and those that it starts meanwhile, to one core."""
    if not wanted or not hasattr(os, "sched_setaffinity"):  # macOS and Windows have no such call
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _round(pipe: Pipe, line: bytes) -> None:
    pipe.stdin.write(line)
    pipe.stdin.flush()
    pipe.stdout.readline()


def in_flight(
    command: Sequence[str],
    calls: int = 10000,
    width: int = 50,
    *,
    before: int = 0,
    tool: str = "add",
    environ: Mapping[str, str] | None = None,
) -> float:
    """Calls a second with `width` calls under way; `before` calls go first and are not counted."""
    pipe = Pipe(command, environ=environ)
    try:
        pipe.handshake()
        for number in range(before):
            _round(pipe, json.dumps(call(number, tool, ADD)).encode() + b"\n")
        return flood(
            pipe, [json.dumps(call(number, tool, ADD)).encode() + b"\n" for number in range(1, calls + 1)], width
        )
    finally:
        pipe.close()


def in_bursts(command: Sequence[str], calls: int = 10000, width: int = 50) -> float:
    """Calls a second when `width` requests go in one write, and the next ones after all their answers."""
    pipe = Pipe(command)
    try:
        pipe.handshake()
        lines = [json.dumps(call(number, "add", ADD)).encode() + b"\n" for number in range(1, calls + 1)]
        begin = time.perf_counter()
        for first in range(0, calls, width):
            flood(pipe, lines[first : first + width], width)
        return calls / (time.perf_counter() - begin)
    finally:
        pipe.close()


def flood(pipe: Pipe, lines: Sequence[bytes], width: int) -> float:
    """Sends the lines, `width` under way at a time: each answer lets the next one go. Returns answers a second."""
    begin = time.perf_counter()
    pipe.stdin.write(b"".join(lines[:width]))
    pipe.stdin.flush()
    sent, answered = width, 0
    while answered < len(lines):
        got = os.read(pipe.stdout.fileno(), 1 << 16).count(b"\n")
        if not got:
            raise RuntimeError("the server ended before it had answered everything")
        answered += got
        if more := lines[sent : sent + got]:
            sent += len(more)
            pipe.stdin.write(b"".join(more))
            pipe.stdin.flush()
    return len(lines) / (time.perf_counter() - begin)


def growth(command: Sequence[str], first: int = 10_000, last: int = 1_000_000) -> tuple[float, float]:
    """Resident MiB after so many calls, and after that many."""
    pipe = Pipe(command)
    try:
        pipe.handshake()
        lines = [json.dumps(call(1, "add", ADD)).encode() + b"\n"] * first
        flood(pipe, lines, 50)
        early = pipe.resident() / 1024
        for _ in range(last // first - 1):
            flood(pipe, lines, 50)
        return early, pipe.resident() / 1024
    finally:
        pipe.close()
