"""Incremental decompression of HTTP response bodies, in bounded steps.

A kilobyte from a hostile server can expand to gigabytes (RFC 9110 §8.4).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

ACCEPTED: Final = "gzip, deflate"
_STEP: Final = 1 << 18  # maximum bytes that one step decodes, which takes about 1 ms
_HEADER: Final = 2  # bytes of the header of zlib (RFC 1950 §2.2)
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_KNOWN: Final = {*_WINDOWS, "br", "zstd", "compress", "x-compress", "dcb", "dcz"}


class BodyDecoder:
    """Decoder of one body. Unknown content codings are ignored, as in browsers.

    Raises:
        httpx.DecodingError: there are several codings, or a coding that was not requested.
    """

    __slots__ = ("_begun", "_coding", "_head", "_inflate")

    def __init__(self, content_encoding: str) -> None:
        codings = [one.strip().lower() for one in content_encoding.split(",")]
        codings = [one for one in codings if one in _KNOWN]
        if len(codings) > 1:
            raise _broken(f"{len(codings)} nested content codings")
        self._coding = codings[0] if codings else ""
        self._begun = False  # a response to HEAD has a coding, but no body
        if self._coding and self._coding not in _WINDOWS:
            raise _broken(f"unexpected content coding {self._coding}")
        self._inflate = zlib.decompressobj(_WINDOWS[self._coding]) if self._coding else None
        # the first bytes, until they show whether the format is zlib or raw deflate
        self._head: bytes | None = b"" if self._coding == "deflate" else None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded body in pieces, of at most 256 KiB if the body is compressed."""
        if self._inflate is None:
            yield data
            return
        self._begun = self._begun or bool(data)
        if self._head is not None:
            data = self._head + data
            self._head = data if len(data) < _HEADER else None
            if self._head is not None:
                return
            if data[0] & 15 != zlib.DEFLATED or int.from_bytes(data[:_HEADER]) % 31:
                # Some servers send raw deflate, without a zlib header.
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        while data and not self._inflate.eof:
            yield self._decompressed(data)
            data = self._inflate.unconsumed_tail

    def rest(self) -> bytes:
        """Return the remaining data at the end of the body, or raise httpx.DecodingError if the body is incomplete."""
        if self._inflate is None:
            return b""
        rest = self._inflate.flush()
        if not self._inflate.eof and self._begun:
            raise _broken(f"incomplete {self._coding} body")
        return rest

    def _decompressed(self, data: bytes) -> bytes:
        assert self._inflate is not None
        try:
            return self._inflate.decompress(data, _STEP)
        except zlib.error as error:
            raise _broken(f"invalid {self._coding} body") from error


def _broken(message: str) -> httpx.DecodingError:
    import httpx  # noqa: PLC0415 - rarely needed

    return httpx.DecodingError(message)


async def aiter_decoded(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield a response's body in pieces of bounded size. Other tasks run between the pieces.

    Raises:
        httpx.DecodingError: the body is invalid, or the coding is not supported.
        httpx.HTTPError: the connection failed.
    """
    from asyncio import sleep  # noqa: PLC0415 - already loaded in asynchronous programs

    decoder = BodyDecoder(response.headers.get("content-encoding", ""))
    async for data in response.aiter_raw():
        for number, piece in enumerate(decoder.pieces(data)):
            if number:
                await sleep(0)
            yield piece
    if rest := decoder.rest():
        yield rest


def iter_decoded(response: httpx.Response) -> Iterator[bytes]:
    """Yield a response's body in pieces of bounded size, like `aiter_decoded`."""
    decoder = BodyDecoder(response.headers.get("content-encoding", ""))
    for data in response.iter_raw():
        yield from decoder.pieces(data)
    if rest := decoder.rest():
        yield rest
