"""The API that fails on purpose: what happens to it is never printed among what people read."""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from contextlib import suppress
from typing import Any

import pytest

from mcpfactory_pipeline.checks.api_failures import FAILURES, FailingApi
from mcpfactory_pipeline.checks.evidence import ApiFailure
from tests.tiers import full
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

LONG = [failure for failure in FAILURES if failure.id in ("silence", "drip", "gigabyte", "gzip-bomb")]


@pytest.mark.parametrize("failure", LONG, ids=[failure.id for failure in LONG])
async def test_nothing_is_left_to_report_of_a_caller_that_resets_the_connection(failure: ApiFailure) -> None:
    """The interpreter prints a future's exception that nobody took, whenever it happens to collect it."""
    loop, futures = asyncio.get_running_loop(), []

    class Kept(asyncio.Future[None]):
        def __init__(self) -> None:
            super().__init__(loop=loop)
            futures.append(self)

    loop.create_future = Kept  # type: ignore[method-assign]  # every future is kept, so that none is collected unseen
    async with FailingApi({"status": 200, "body": {}}) as hostile:
        await hostile.begin(failure)
        for _ in range(8):
            reader, writer = await asyncio.open_connection("127.0.0.1", hostile.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            if failure.id != "silence":
                await reader.readexactly(100)
            plug = writer.get_extra_info("socket")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the close is a reset
            writer.transport.abort()
        await hostile.begin(None)
        reader, writer = await asyncio.open_connection("127.0.0.1", hostile.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    assert len(futures) > 16
    assert [future for future in futures if future._log_traceback] == []


async def test_a_request_whose_head_has_no_end_is_hung_up_on_and_nothing_is_printed() -> None:
    printed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: printed.append(context))
    async with FailingApi({"status": 200, "body": {}}) as hostile:
        await hostile.begin(None)
        reader, writer = await asyncio.open_connection("127.0.0.1", hostile.port)
        writer.write(b"GET / HTTP/1.1\r\nX: " + bytes(200_000))
        with suppress(ConnectionError):  # it may be a reset, for not all was read
            assert await asyncio.wait_for(reader.read(), TIMEOUT) == b""
        writer.transport.abort()
    assert printed == []


@pytest.mark.parametrize("failure", [one for one in FAILURES if one.id in ("drip", "reset")], ids=lambda one: one.id)
async def test_answer_to_head_breaks_off_inside_its_head(failure: ApiFailure) -> None:
    """It has no body, so that a complete head would be a complete answer."""
    async with FailingApi({"status": 200}) as api:
        await api.begin(failure)
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(b"HEAD / HTTP/1.1\r\n\r\n")
        received = b""
        with suppress(ConnectionError):
            while b"\r\n\r\n" not in received and len(received) < 120:
                received += await asyncio.wait_for(reader.read(120), TIMEOUT)
        assert received.startswith(b"HTTP/1.1 200") or failure.id == "reset"
        assert b"\r\n\r\n" not in received
        writer.transport.abort()


@full("unpacks a gigabyte")
@pytest.mark.parametrize(("failure", "bits"), [("gzip-bomb", 31)])
async def test_a_bomb_unpacks_to_the_end(failure: str, bits: int) -> None:
    async with FailingApi({"status": 200}) as api:
        await api.begin(next(one for one in FAILURES if one.id == failure))
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        unpacker, size = zlib.decompressobj(bits), 0
        while data := await reader.read(65536):
            while data:
                size += len(unpacker.decompress(data, 2**24))
                data = unpacker.unconsumed_tail
        writer.transport.abort()
    assert (size, unpacker.eof) == (2**30, True)
