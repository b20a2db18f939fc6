"""Connections to APIs: to which addresses, trusting whom, with which certificate of ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Any

import httpcore

from mcpfactory_runtime.addresses import host_port, is_public
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.servers import Addresses
from mcpfactory_runtime.upstream.settings import Settings

__all__ = ["Certificate", "GuardedBackend", "tls_context"]

Certificate = tuple[str, str] | None
"""Paths of a client's certificate and its key."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name, checks the addresses, and dials a checked one.

    Args:
        settings: say whether private addresses are permitted.
        addresses: say where the API lives, and which of that a person chose.
        private: hosts (`host` or `host:port`) that may be private.
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
        """Return a connection to a permitted address of `host`.

        Raises:
            ToolError: there is none.
        """
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        if not self._permitted(host, port):
            addresses = [address for address in addresses if is_public(address)]
        if not addresses:
            raise ToolError(
                f"The API document names {host}:{port}, which is a private or local address; such calls are refused.\n"
                f"hint: the person who runs this server sets {self._addresses.variable_at(host, port)} to the API's address, "
                f"or {self._settings.variable('ALLOW_PRIVATE')}=1."
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
        """Return whether a person, and not only the document, named this host, or permitted private ones."""
        if self._settings.value("ALLOW_PRIVATE") == "1":
            return True
        place = host_port(host, port)
        return place in self._addresses.chosen() or place in self._private or place.rpartition(":")[0] in self._private


def tls_context(settings: Settings, certificate: Certificate, usual: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Return what connections trust, and what they show.

    Args:
        settings: may name a file of authorities.
        certificate: paths of a client's certificate and key; the key "" when both are in one file.
        usual: makes the context that trusts the usual authorities.

    Raises:
        ToolError: a file cannot be used.
    """
    authorities = settings.value("CA_FILE")
    try:
        context = ssl.create_default_context(cafile=authorities) if authorities else usual()
    except OSError as error:
        raise _bad_file(settings.set_by("CA_FILE"), error) from None
    if certificate is not None:
        try:
            # Without a password of ours OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate[0], certificate[1] or None, password="")
        except (OSError, ValueError) as error:
            raise _bad_file("the client certificate", error) from None
    return context


def _bad_file(what: str, error: Exception) -> ToolError:
    reason = error.strerror if isinstance(error, FileNotFoundError | PermissionError) else None
    return ToolError(
        f"The file of {what} cannot be used: {reason or 'not PEM, encrypted, or key and certificate do not match'}.\n"
        "hint: the person who runs this server checks the paths in its environment."
    )
