"""Which private address a person means: the one that the document was fetched from because the person named it.

An address that only stands in a document is never permitted here: whoever writes the document is not who makes the server.
"""

from __future__ import annotations

import socket

from mcpfactory_runtime.upstream.addresses import describe_private, host_port_of, is_public

__all__ = ["permitted", "private_source"]


def private_source(source: str) -> str:
    """Return the URL that a document was fetched from, when its host is private; "" when it is public, or a file. Resolves the host."""
    host = host_port_of(source)
    if not host or describe_private(source):
        return source if host else ""
    host, _, port = host.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError:  # it was fetched by way of a proxy, which knows the name
        return ""
    return "" if all(is_public(str(one[4][0])) for one in found) else source


def permitted(source: str, base_url: str) -> tuple[str, ...]:
    """Return the API's host and port, when the document came from there.

    Args:
        source: as `private_source` gave it.
        base_url: the API's.
    """
    source_host, api_host = host_port_of(source), host_port_of(base_url)
    here = (
        describe_private(source) == describe_private(base_url) == "this machine"
    )  # localhost is 127.0.0.1, at the same port
    if not source_host or not (
        source_host == api_host or (here and source_host.rpartition(":")[2] == api_host.rpartition(":")[2])
    ):
        return ()
    return (api_host,)
