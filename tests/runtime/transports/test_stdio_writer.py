"""What is written to a pipe in one round of the event loop: nothing waits longer, and nothing overtakes."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

import pytest

from mcpfactory_runtime.transports.stdio import _open_writer, _PipeWriter

pytestmark = pytest.mark.anyio


class Pipe(asyncio.WriteTransport):
    """Keeps what is written to it, a write each."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Never full."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        """Nothing to do."""

    async def drain(self) -> None:
        """As a `StreamWriter`."""


def opened() -> tuple[_PipeWriter, Pipe]:
    writer, pipe = _PipeWriter(0, asyncio.Event()), Pipe()
    writer.connection_made(pipe)
    return writer, pipe


async def test_answers_of_one_round_go_in_one_write_and_before_what_comes_after_them() -> None:
    writer, pipe = opened()
    writer.send_soon(b"1")
    writer.send_soon(b"2")
    assert pipe.writes == []
    await asyncio.sleep(0)
    assert pipe.writes == [b"1\n2\n"]
    writer.send_soon(b"3")
    writer.send(b"4")
    assert pipe.writes[1:] == [b"3\n4\n"]
    writer.send_soon(b"5")
    await writer.close(0)
    assert pipe.writes[2:] == [b"5\n"]


async def test_a_large_answer_does_not_wait() -> None:
    writer, pipe = opened()
    writer.send_soon(b"x" * 5000)
    assert [len(data) for data in pipe.writes] == [5001]


async def test_a_thread_writes_nothing_between_the_parts_of_what_the_client_has_not_read() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    writer = await _open_writer(writing, asyncio.Event())
    first = b"x" * 1_000_000  # more than a pipe holds
    writer.send(first)
    got = os.read(reading, 65_536)  # now there is room
    writer.hold(b"second")
    assert isinstance(writer, _PipeWriter)
    assert not await asyncio.to_thread(writer.write_held)
    while len(got) < len(first) + 1 + len(b"second\n"):
        await asyncio.sleep(0)  # the event loop writes what it has
        with suppress(BlockingIOError):
            got += os.read(reading, 65_536)
    assert got == first + b"\nsecond\n"
    writer.hold(b"third")
    assert writer.write_held()
    assert os.read(reading, 100) == b"third\n"
    os.close(reading)
