"""MCP client for both lifecycles, used by tests, the checks of `validate`, and `mcpfactory call`."""

from __future__ import annotations

from mcpfactory_runtime.client.channel import (
    ConnectionLostError,
    HttpError,
    ProtocolError,
    ResultError,
    SessionEndedError,
)
from mcpfactory_runtime.client.client import Client
from mcpfactory_runtime.client.session import Subscription, TranscriptEntry, accept_defaults

connect_stdio = Client.connect_stdio
connect_http = Client.connect_http
connect_memory = Client.connect_memory

__all__ = [
    "Client",
    "ConnectionLostError",
    "HttpError",
    "ProtocolError",
    "ResultError",
    "SessionEndedError",
    "Subscription",
    "TranscriptEntry",
    "accept_defaults",
    "connect_http",
    "connect_memory",
    "connect_stdio",
]
