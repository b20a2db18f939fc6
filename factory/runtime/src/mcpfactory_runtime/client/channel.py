"""The interface of channels to a server, and their errors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.types import Json

_ENDING: Final = 5.0  # seconds that cancelled tasks have to end


class Receiver(Protocol):
    """The receiver of a channel's messages. The methods do not block."""

    def received(self, message: Any, http: Json | None = None) -> None:
        """Take a received JSON value, or text that is not JSON."""

    def failed(self, request_id: Any, error: Exception) -> None:
        """Note that one request will get no answer."""

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop the clock of a request while a person is asked; restart it if `delayed` is False."""

    def lost(self, error: Exception) -> None:
        """Note that nothing will come any more."""


class ClientChannel(ABC):
    """A connection to one server."""

    http = False
    """True if messages travel as HTTP requests, so that a failure can be reported per request."""

    @abstractmethod
    async def open(self, receiver: Receiver) -> None:
        """Connect.

        Raises:
            ConnectionLostError: that is not possible.
        """

    @abstractmethod
    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Send a message; `headers` are for channels that have some.

        Raises:
            ConnectionLostError: the server is gone.
        """

    @abstractmethod
    async def send_raw(self, data: bytes) -> None:
        """Send arbitrary bytes as a message."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection and end everything that it started."""

    def forget(self, request_id: Any) -> bool:
        """Forget an abandoned request; return True if this alone informs the server."""
        return False

    async def start_listening(self, headers: Mapping[str, str]) -> bool:
        """Handshake lifecycle: also take what the server says on its own. False when it comes anyway."""
        return False

    @property
    def diagnostics(self) -> str:
        """Return the server's output outside the protocol (a process's stderr)."""
        return ""


async def end_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait for a while until they have ended: what does not heed it is left, so that closing always ends."""
    left = list(tasks)
    for task in left:
        task.cancel()
    if left:
        ended, _ = await asyncio.wait(left, timeout=_ENDING)
        for task in ended:
            if not task.cancelled():
                task.exception()  # already reported to the waiting caller


class ConnectionLostError(Exception):
    """The server is gone, or never answered: it ended, closed its output, or refused the connection."""


class HttpError(Exception):
    """An HTTP response without a JSON-RPC message.

    `status` is an HTTP status, `body` its text; the error message contains `why` before the body.
    """

    def __init__(self, status: int, body: str, headers: dict[str, str] | None = None, why: str = "") -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
        text = ": ".join(filter(None, (why, " ".join(body.split())[:200])))
        super().__init__(f"the server answered with HTTP status {status}" + (f": {text}" if text else ""))


class ProtocolError(Exception):
    """The server said something that the protocol does not allow at this place."""


class ResultError(Exception):
    """A tool failed, or its result has another type than requested.

    The message is the tool's, or describes the mismatch.
    """


class SessionEndedError(McpError):
    """The server does not know the session (HTTP status 404), and has done nothing: a new one is begun by a new client."""
