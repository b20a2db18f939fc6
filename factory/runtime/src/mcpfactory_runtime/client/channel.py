"""The interface of channels to a server, and their errors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from mcpfactory_runtime.protocol.errors import McpError

_ENDING: Final = 5.0  # seconds that cancelled tasks have to end

Json = dict[str, Any]


class Receiver(Protocol):
    """What a channel delivers to. The methods do not block."""

    def received(self, message: Any, http: Json | None = None) -> None:
        """Take a JSON value that was received (or text that is none), and the bytes that it was where they are at hand."""

    def failed(self, request_id: Any, error: Exception) -> None:
        """Note that one request will get no answer."""

    def delayed(self, request_id: Any, delayed: bool) -> None:
        """Stop the clock of a request while a person is asked; start it anew when `delayed` is False."""

    def lost(self, error: Exception) -> None:
        """Note that nothing will come any more."""


class ClientChannel(ABC):
    """A connection to one server."""

    http = False
    """Whether messages travel as HTTP requests, so that a failure can be reported per request."""

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
        """Send bytes as if they were a message, whatever they are."""

    @abstractmethod
    async def aclose(self) -> None:
        """End the connection, and what it started."""

    def forget(self, request_id: Any) -> bool:
        """Forget a request that nobody waits for; return whether the server learns it by this alone."""
        return False

    async def start_listening(self, headers: Mapping[str, str]) -> bool:
        """Handshake lifecycle: also take what the server says on its own. False when it comes anyway."""
        return False

    @property
    def diagnostics(self) -> str:
        """What the server wrote beside the protocol (a process's stderr)."""
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
                task.exception()  # known to whoever waited for it


class ConnectionLostError(Exception):
    """The server is gone, or never answered: it ended, closed its output, or refused the connection."""


class HttpError(Exception):
    """An HTTP response that carries no JSON-RPC message. `status` is an HTTP status, `body` its text; `why` is told before that."""

    def __init__(self, status: int, body: str, headers: dict[str, str] | None = None, why: str = "") -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
        text = ": ".join(filter(None, (why, " ".join(body.split())[:200])))
        super().__init__(f"the server answered with HTTP status {status}" + (f": {text}" if text else ""))


class ProtocolError(Exception):
    """The server said something that the protocol does not allow at this place."""


class ResultError(Exception):
    """A tool failed, or its answer is not what was asked for. The text is the tool's, or says what does not fit."""


class SessionEndedError(McpError):
    """The server does not know the session (HTTP status 404), and has done nothing: a new one is begun by a new client."""
