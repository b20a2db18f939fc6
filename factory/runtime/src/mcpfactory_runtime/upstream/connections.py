"""Connections to APIs: permitted addresses, trusted authorities, client certificates and keep-alive."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

import httpcore

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.secrets import Settings
from mcpfactory_runtime.upstream.servers import Addresses
from mcpfactory_runtime.urls import host_port, is_public

_KEEP_ALIVE: Final = 30.0  # seconds that an idle connection is kept

Certificate = tuple[str, str] | None
"""Paths of a client's certificate and its key."""


class AddressCheckingBackend(httpcore.AsyncNetworkBackend):
    """Network backend that connects only to permitted addresses of a host.

    `private` are hosts (`host` or `host:port`) that may have private addresses.
    """

    def __init__(self, settings: Settings, addresses: Addresses, private: Collection[str] = ()) -> None:
        self._settings = settings
        self._addresses = addresses
        self._private = private
        self._dial = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to a permitted address of `host`."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        if not self._permitted(host, port):
            addresses = [address for address in addresses if is_public(address)]
        if not addresses:
            raise ToolError(
                f"The API document names {host}:{port}, which is a private or local address; such calls are "
                f"refused.\nhint: ask the person who runs this server to set {self._addresses.variable_for_host(host, port)} to the "
                f"API's address, or {self._settings.variable('ALLOW_PRIVATE')}=1."
            )
        for address in addresses[:-1]:
            try:
                return await self._dial.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError:
                continue
        return await self._dial.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    def _permitted(self, host: str, port: int) -> bool:
        """Return True if the operator or the author chose this host, or if private addresses are permitted."""
        if self._settings.value("ALLOW_PRIVATE") == "1":
            return True
        place = host_port(host, port)
        return place in self._addresses.chosen() or place in self._private or place.rpartition(":")[0] in self._private


def tls_context(settings: Settings, certificate: Certificate, usual: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Return the TLS context for connections. `usual` creates the context that trusts the default authorities.

    `certificate` contains the paths of the client certificate and its key. If one file contains both, the path of the
    key is empty.
    """
    authorities = settings.value("CA_FILE")
    try:
        context = ssl.create_default_context(cafile=authorities) if authorities else usual()
    except OSError as error:
        raise _bad_file(settings.set_by("CA_FILE"), error) from None
    if certificate is not None:
        try:
            # Without the argument `password`, OpenSSL would ask for a password on the terminal.
            context.load_cert_chain(certificate[0], certificate[1] or None, password="")
        except (OSError, ValueError) as error:
            raise _bad_file("the client certificate", error) from None
    return context


def _bad_file(what: str, error: Exception) -> ToolError:
    reason = error.strerror if isinstance(error, FileNotFoundError | PermissionError) else None
    return ToolError(
        f"The file of {what} cannot be used: "
        f"{reason or 'not PEM, encrypted, or key and certificate do not match'}.\nhint: ask the person who runs this "
        "server to check the paths in its environment."
    )


_Origin = tuple[bytes, bytes, int | None]


class ConnectionPool:
    """Keep-alive connections of one event loop, with a list of idle connections per origin.

    With thirty calls in flight, httpcore's own pool takes half of the time of a call, because the pool polls all
    sockets whenever a request begins or ends. `limit` is the maximum number of concurrent requests, and of idle
    connections.
    """

    def __init__(self, trust: ssl.SSLContext, backend: httpcore.AsyncNetworkBackend, limit: int) -> None:
        self._trust = trust
        self._backend = backend
        self._limit = limit
        self._slots = asyncio.Semaphore(limit)
        self._free: defaultdict[_Origin, list[httpcore.AsyncHTTPConnection]] = defaultdict(list)

    async def send(self, request: httpcore.Request) -> tuple[httpcore.Response, Callable[[], Awaitable[None]]]:
        """Return the response, and a function that releases the connection after the stream is closed."""
        await self._slots.acquire()
        try:
            free = self._free[request.url.origin.scheme, request.url.origin.host, request.url.origin.port]
            connection = await _first_usable(free) or httpcore.AsyncHTTPConnection(
                request.url.origin, self._trust, keepalive_expiry=_KEEP_ALIVE, network_backend=self._backend
            )
            response = await connection.handle_async_request(request)
        except BaseException:
            self._slots.release()
            raise

        async def release() -> None:
            self._slots.release()
            if connection.is_idle():
                free.append(connection)
                if sum(map(len, self._free.values())) > self._limit:
                    await next(filter(None, self._free.values())).pop(0).aclose()

        return response, release

    async def aclose(self) -> None:
        """Close the idle connections."""
        for connections in self._free.values():
            while connections:
                await connections.pop().aclose()


async def _first_usable(free: list[httpcore.AsyncHTTPConnection]) -> httpcore.AsyncHTTPConnection | None:
    """Return the most recently used connection, and remove closed connections."""
    while free:
        connection = free.pop()
        if not connection.has_expired():
            return connection
        await connection.aclose()
    return None
