"""Answers of an endpoint within bounds: the whole of one has its time and its size, however slowly or however long it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2

from mcpfactory_runtime.protocol.decoding import ACCEPTED, BodyDecoder

__all__ = ["LARGEST", "BoundedAnswers"]

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of one answer after decompression, whole or streamed: many times what the longest answer of a model takes."""

_UNTIL: Final = "mcpfactory_until"  # extension of a request: the loop's time at which its answer must be there

Failure = Callable[[str], Exception]


class BoundedAnswers(httpx2.AsyncClient):
    """What a vendor's client connects with, as the first base beside the vendor's own class.

    A timeout of the connection is for one read: an endpoint that sends a byte now and then would be waited for without end.

    Args:
        seconds: for a request and all of its answer.
        failure: makes the error that is raised beyond a bound, of a class that the vendor's client neither wraps nor tries again.
        more: what the vendor's class takes.
    """

    def __init__(self, seconds: float, failure: Failure, **more: Any) -> None:
        super().__init__(**more)
        self._seconds, self._failure = seconds, failure
        self.headers["Accept-Encoding"] = ACCEPTED
        self.event_hooks = {"response": [self._bound]}

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send a request, as `httpx2.AsyncClient.send` does; its answer has the time of this client, also where it is read later."""
        until = asyncio.get_running_loop().time() + self._seconds
        request.extensions = {**request.extensions, _UNTIL: until}
        with _timed_out(self._failure):
            async with asyncio.timeout_at(until):
                return await super().send(request, **more)

    async def _bound(self, response: httpx2.Response) -> None:
        """Put the bounds around a body before anybody reads it, those of redirects, too."""
        with _readable():
            decoder = BodyDecoder(response.headers.pop("Content-Encoding", ""))
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # of an answer to an asynchronous client
        response.stream = _BoundedBody(response.stream, decoder, response.request.extensions[_UNTIL], self._failure)


class _BoundedBody(httpx2.AsyncByteStream):
    """A body, decompressed."""

    def __init__(self, body: httpx2.AsyncByteStream, decoder: BodyDecoder, until: float, failure: Failure) -> None:
        self._body, self._decoder, self._until, self._failure = body, decoder, until, failure

    async def __aiter__(self) -> AsyncIterator[bytes]:
        came, pieces = 0, aiter(self._body)
        while True:
            with _timed_out(self._failure):
                async with asyncio.timeout_at(self._until):
                    data = await anext(pieces, None)
            for piece in self._pieces(data):
                if (came := came + len(piece)) > LARGEST:
                    raise self._failure(f"the answer is larger than {LARGEST:,} bytes")
                yield piece
            if data is None:
                return

    def _pieces(self, data: bytes | None) -> Iterator[bytes]:
        """Yield what some bytes of the body stand for; with None, what is left at its end."""
        with _readable():
            yield from (self._decoder.rest(),) if data is None else self._decoder.pieces(data)

    async def aclose(self) -> None:
        await self._body.aclose()


@contextmanager
def _timed_out(failure: Failure) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise failure("Request timed out.") from error


@contextmanager
def _readable() -> Iterator[None]:
    """Raise as an error of the client's library what the decoder raises, which is of another one."""
    try:
        yield
    except Exception as error:
        raise httpx2.DecodingError(str(error)) from error
