"""How connections are made: to which addresses, trusting whom, and with which certificate of ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpcore

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.addresses import is_public

__all__ = ["Certificate", "GuardedBackend", "trust"]

Certificate = tuple[str, str] | None
"""Paths of a client's certificate and its key."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name, checks the addresses, and dials a checked one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._dial = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to a permitted address of `host`. Raises ToolError when there is none."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        if not self._permitted(host, port):
            addresses = [address for address in addresses if is_public(address)]
        if not addresses:
            raise ToolError(
                f"The API document names {host}:{port}, which is a private or local address; such calls are refused.\n"
                "hint: the person who runs this server sets MCPFACTORY_BASE_URL to the API's address, or MCPFACTORY_ALLOW_PRIVATE=1."
            )
        for address in addresses[:-1]:
            try:
                return await self._dial.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError:
                continue
        return await self._dial.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """Let time go by."""
        await asyncio.sleep(seconds)

    def _permitted(self, host: str, port: int) -> bool:
        """Whether the user, and not only the document, named this host, or permitted private ones."""
        if self._environ.get("MCPFACTORY_ALLOW_PRIVATE", "") == "1":
            return True
        chosen = urlsplit(self._environ.get("MCPFACTORY_BASE_URL", ""))
        try:
            chosen_port = chosen.port or {"http": 80, "https": 443}.get(chosen.scheme)
        except ValueError:
            return False
        return chosen.hostname == host.lower().strip("[]") and chosen_port == port


def trust(environ: Mapping[str, str], certificate: Certificate, usual: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """What connections trust, and what they show.

    Args:
        environ: MCPFACTORY_CA_FILE names a file of authorities.
        certificate: paths of a client's certificate and key; the key "" when both are in one file.
        usual: makes the context that trusts the usual authorities.

    Raises:
        ToolError: a file cannot be used.
    """
    authorities = environ.get("MCPFACTORY_CA_FILE", "")
    try:
        context = ssl.create_default_context(cafile=authorities) if authorities else usual()
    except OSError as error:
        raise _bad_file("MCPFACTORY_CA_FILE", error) from None
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
