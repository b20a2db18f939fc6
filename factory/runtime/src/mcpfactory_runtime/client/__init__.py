"""A small MCP client for both lifecycles: for tests, for the checks of `validate`, and for `mcpfactory call`."""

from __future__ import annotations

from .client import Client
from .errors import ConnectionLostError, HttpError, ProtocolError
from .transcript import Entry

__all__ = ["Client", "ConnectionLostError", "Entry", "HttpError", "ProtocolError"]
