"""What goes wrong between a client and a server, apart from JSON-RPC errors (`McpError`) and `TimeoutError`."""

from __future__ import annotations

from mcpfactory_runtime.protocol.errors import McpError

__all__ = ["ConnectionLostError", "HttpError", "ProtocolError", "ResultError", "SessionEndedError"]


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
