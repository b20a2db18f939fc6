"""Connections to public addresses only. A name is resolved once, and the connection uses a checked address."""

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
    """Network backend that refuses private addresses, also with DNS rebinding, redirects and IPv6 forms.

    Args:
        private: hosts (`host:port` or `host`) that the operator permits at private addresses.
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
            ToolError: the host has no permitted address.
        """
        addresses = await self._permitted(host, port)
        for address in addresses[:-1]:
            try:
                return await self._dial.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._dial.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """Sleep, as the interface requires."""
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
                "hint: only public web pages are read; the operator can permit a host with COMPETITOR_RESEARCH_ALLOW_PRIVATE"
            )
        return public
