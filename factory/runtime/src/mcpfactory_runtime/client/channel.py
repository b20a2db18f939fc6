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
    """Receiver of a channel's messages. The methods do not block."""

    def received(self, message: Any, http: Json | None = None) -> None:
        """Handle a received JSON value, or text that is not JSON."""

    def failed(self, request_id: Any, error: Exception) -> None:
        """Handle the failure of one request: it will get no response."""

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop the timeout of a request while the user logs in; restart the timeout if `delayed` is False."""

    def lost(self, error: Exception) -> None:
        """Handle the end of the connection: no more messages will arrive."""


class ClientChannel(ABC):
    """A connection to one server."""

    http = False
    """True if messages are sent as HTTP requests; failures are then reported per request."""

    @abstractmethod
    async def open(self, receiver: Receiver) -> None:
        """Connect.

        Raises:
            ConnectionLostError: the server cannot be started or reached.
        """

    @abstractmethod
    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Send a message; `headers` are used only by HTTP channels.

        Raises:
            ConnectionLostError: the connection was closed.
        """

    @abstractmethod
    async def send_raw(self, data: bytes) -> None:
        """Send arbitrary bytes as a message."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection, and end its tasks and processes."""

    def forget(self, request_id: Any) -> bool:
        """Forget a request that the caller abandoned.

        Return True if the server needs no notification about the abandoned request.
        """
        return False

    async def start_listening(self, headers: Mapping[str, str]) -> bool:
        """Open the stream of the server's own messages (handshake lifecycle). Return False if no stream is needed."""
        return False

    @property
    def diagnostics(self) -> str:
        """Return the server's output that is not part of the protocol (stderr of a process)."""
        return ""


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait a few seconds until they end. Abandon tasks that ignore the cancellation."""
    left = list(tasks)
    for task in left:
        task.cancel()
    if left:
        ended, _ = await asyncio.wait(left, timeout=_ENDING)
        for task in ended:
            if not task.cancelled():
                task.exception()  # the waiting caller has got the error already


class ConnectionLostError(Exception):
    """The connection failed or ended, because the server exited, closed its output or refused the connection."""


class HttpError(Exception):
    """An HTTP response without a JSON-RPC message.

    `status` is the HTTP status of the response, `body` the text. `why` is an explanation that precedes the body in the
    error message.
    """

    def __init__(self, status: int, body: str, headers: dict[str, str] | None = None, why: str = "") -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
        text = ": ".join(filter(None, (why, " ".join(body.split())[:200])))
        super().__init__(f"the server answered with HTTP status {status}" + (f": {text}" if text else ""))


class ProtocolError(Exception):
    """The server violated the protocol, or the client was closed."""


class ResultError(Exception):
    """A tool failed (the message is from the tool), or the result has another type than the caller requested."""


class SessionEndedError(McpError):
    """The session is unknown to the server (HTTP status 404).

    The request had no effect, so a new client can retry it.
    """
