"""Interface of channels to a server, and their errors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.types import Json

_ENDING: Final = 5.0  # maximum seconds for canceled tasks to end


class Receiver(Protocol):
    """Receiver of a channel's messages."""

    def received(self, message: Any, http: Json | None = None) -> None:
        """Handle a received JSON value, or text that is not JSON as a string."""

    def failed(self, request_id: Any, error: Exception) -> None:
        """Handle the failure of one request, which will get no response."""

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop the timeout of a request while the user logs in, or restart it if `delayed` is False."""

    def lost(self, error: Exception) -> None:
        """Handle the end of the connection."""


class ClientChannel(ABC):
    """A connection to one server."""

    http = False
    """True if messages are HTTP requests, so that failures are reported per request."""

    @abstractmethod
    async def open(self, receiver: Receiver) -> None:
        """Connect, or raise ConnectionLostError."""

    @abstractmethod
    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Send a message, or raise ConnectionLostError."""

    @abstractmethod
    async def send_raw(self, data: bytes) -> None:
        """Send arbitrary bytes as a message."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection, and end its tasks and processes."""

    def forget(self, request_id: Any) -> bool:
        """Forget an abandoned request, and return False if the caller must still notify the server."""
        return False

    async def start_listening(self, headers: Mapping[str, str]) -> bool:
        """Open the stream for messages that the server starts, or return False if the channel has no such stream."""
        return False

    @property
    def diagnostics(self) -> str:
        """Return the process's stderr output, or "" if the server is not a process."""
        return ""


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait a few seconds for their end."""
    left = list(tasks)
    for task in left:
        task.cancel()
    if left:
        ended, _ = await asyncio.wait(left, timeout=_ENDING)
        for task in ended:
            if not task.cancelled():
                task.exception()  # mark the exception as retrieved


class ConnectionLostError(Exception):
    """The server exited, closed its output, or refused the connection."""


class StreamEndedError(ConnectionLostError):
    """The HTTP response to a request ended without the JSON-RPC response."""


class HttpError(Exception):
    """An HTTP response without a JSON-RPC message. In the error message, the explanation `why` precedes the body."""

    def __init__(self, status: int, body: str, headers: dict[str, str] | None = None, why: str = "") -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
        text = ": ".join(filter(None, (why, " ".join(body.split())[:200])))
        super().__init__(f"the server answered with HTTP status {status}" + (f": {text}" if text else ""))


class ProtocolError(Exception):
    """The server violated the protocol, or the client was closed."""


class ResultError(Exception):
    """A tool failed, with the tool's message, or the result has another type than requested."""


class SessionEndedError(McpError):
    """The server does not know the session (HTTP status 404), and has not processed the request."""
