"""A small MCP client for both lifecycles: for tests, for the checks of `validate`, and for `mcpfactory call`."""

from __future__ import annotations

from .client import Client
from .errors import ConnectionLostError, HttpError, ProtocolError
from .handlers import accept_defaults
from .subscription import Subscription
from .transcript import Entry

connect_stdio = Client.connect_stdio
connect_http = Client.connect_http
connect_memory = Client.connect_memory

__all__ = [
    "Client",
    "ConnectionLostError",
    "Entry",
    "HttpError",
    "ProtocolError",
    "Subscription",
    "accept_defaults",
    "connect_http",
    "connect_memory",
    "connect_stdio",
]
