"""Proxy for the browser, on loopback. The proxy connects only to public addresses of permitted hosts.

All requests of a page pass through it (links, redirects, images, scripts, sockets). It connects to the very address that it
checked, which prevents DNS rebinding into a private network.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from mcpfactory_runtime.urls import host_port, is_public

__all__ = ["Gate", "RefusedError"]

MOST_BYTES: Final = 30_000_000  # per connection and direction
_HEAD: Final = 65_536  # maximum bytes of the head of a request or response
_SECONDS: Final = 30.0  # timeout to connect, and to receive a head
_KEPT: Final = 1000  # maximum remembered refusals, to bound memory
_PIECE: Final = 65_536  # bytes per read
_END: Final = b"\r\n\r\n"
_ITS_OWN: Final = re.compile(rb"(?im)^(?:proxy-)?(?:connection|keep-alive|proxy-authorization):[^\r\n]*\r\n")
_LENGTH: Final = re.compile(rb"(?im)^content-length:[ \t]*(\d{1,12})[ \t]*\r$")


class RefusedError(Exception):
    """Raised for a host that is not permitted; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class _Way:
    host: str
    port: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Gate:
    """Proxy as a context manager; it listens on a free port of loopback.

    Args:
        hosts: permitted hosts, `*.example.com` for all subdomains; empty permits all.
        private: `host:port` that the operator permits at private addresses.
    """

    def __init__(self, hosts: Collection[str] = (), private: Collection[str] = ()) -> None:
        self.hosts = [one.strip().lower() for one in hosts if one.strip()]
        self._private = {one.strip().lower() for one in private if one.strip()}
        self._refusals: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """URL of the proxy."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def refusal(self, url: str) -> str:
        """Return the reason why the last connection to the host of a URL was refused, or ""."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        except ValueError:
            return ""
        return self._refusals.get(host_port((parts.hostname or "").rstrip("."), port), "")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._served(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the browser reports the failed request
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(_END), _SECONDS)
        method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        if (not tunnel and parts.scheme != "http") or not parts.hostname:
            return
        try:
            way = await self._dialled(parts.hostname, parts.port or 80)
        except RefusedError as error:
            writer.write(f"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: {len(str(error).encode())}\r\n\r\n{error}".encode())
            await writer.drain()
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await _both(reader, writer, way, None)
            else:
                path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
                rest = _ITS_OWN.sub(b"", head.split(b"\r\n", 1)[1])
                way.writer.write(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode("latin-1") + rest)
                length = _LENGTH.search(rest)
                await _both(reader, writer, way, int(length[1]) if length else 0)
        finally:
            way.writer.close()

    async def _dialled(self, host: str, port: int) -> _Way:
        """Return a connection to a permitted host, at an address that was checked.

        Raises:
            RefusedError: the host is not permitted.
        """
        name = host.lower().rstrip(".")
        place = host_port(name, port)
        try:
            address = await self._address(name, port, place)
            async with asyncio.timeout(_SECONDS):
                reader, writer = await asyncio.open_connection(address, port, limit=_HEAD)
        except RefusedError as error:
            while len(self._refusals) >= _KEPT:
                del self._refusals[next(iter(self._refusals))]
            self._refusals[place] = str(error)
            raise
        self._refusals.pop(place, None)
        return _Way(name, port, reader, writer)

    async def _address(self, name: str, port: int, place: str) -> str:
        if self.hosts and not any(_fits(name, pattern) for pattern in self.hosts):
            raise RefusedError(f"{name} is not one of the permitted hosts")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise RefusedError(f"{name} has no address: the name is unknown, or this machine has no network") from None
        addresses = [str(one[4][0]) for one in found]
        if place not in self._private and not all(map(is_public, addresses)):
            raise RefusedError(f"{place} is at a private or local address")
        return addresses[0]


def _fits(name: str, pattern: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


async def _both(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way, body: int | None) -> None:
    """Copy bytes in both directions until one side ends; with `body` (its length), only one request and its response."""
    there = asyncio.create_task(_carry(reader, way.writer, MOST_BYTES if body is None else body))
    try:
        if body is not None:
            await _answer_head(way.reader, writer)
        await _carry(way.reader, writer, MOST_BYTES)
    finally:
        there.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await there


async def _answer_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the response head with `Connection: close`, so that the next request opens a new connection."""
    while True:
        head = await asyncio.wait_for(reader.readuntil(_END), _SECONDS)
        status, rest = head.split(b"\r\n", 1)
        interim = status[9:10] == b"1"
        writer.write(status + b"\r\n" + (b"" if interim else b"Connection: close\r\n") + _ITS_OWN.sub(b"", rest))
        if not interim:
            return


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> None:
    while most > 0 and (data := await reader.read(min(most, _PIECE))):
        most -= len(data)
        writer.write(data)
        await writer.drain()
