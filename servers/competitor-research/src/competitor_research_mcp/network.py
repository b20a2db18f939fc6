"""Connections to public addresses only: a name is resolved once, the addresses are looked at, and one of those is dialled."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import Any

import httpcore
from mcpfactory_runtime import ToolError
from mcpfactory_runtime.urls import host_port, is_public

__all__ = ["PublicNetwork"]


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """Dials public addresses, whatever names lead there (DNS rebinding, redirects, IPv6 forms of private addresses).

    Args:
        private: hosts (`host:port` or `host`) that may be at private addresses, because the person who runs the server named them.
    """

    def __init__(self, private: Collection[str] = ()) -> None:
        self._private = frozenset(private)
        self._dial = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to a permitted address of `host`.

        Raises:
            ToolError: the host has no address that may be called.
        """
        addresses = await self._permitted(host, port)
        for address in addresses[:-1]:
            try:
                return await self._dial.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._dial.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def _permitted(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolError(f"{host} has no address: the name is unknown, or this machine has no network.") from None
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        place = host_port(host, port)
        if place in self._private or place.rpartition(":")[0] in self._private:
            return addresses
        public = [address for address in addresses if is_public(address)]
        if not public:
            raise ToolError(
                f"{host}:{port} is at a private or local address, which is refused.\n"
                "hint: only pages of the public web are read. The person who runs this server may permit a host by COMPETITOR_RESEARCH_ALLOW_PRIVATE."
            )
        return public
