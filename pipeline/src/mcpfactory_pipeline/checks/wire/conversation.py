"""What the two transports have in common: the conversation with a server under validation, and how its bytes are read."""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

from mcpfactory_pipeline.checks.evidence import ServerProcess
from mcpfactory_pipeline.checks.exchange import MAX_DEPTH, Json, WireExchange, is_nested_deeper

__all__ = ["MAX_MESSAGE", "Conversation", "client_reply", "decode", "is_answer"]

MAX_MESSAGE: Final = 16 * 1024 * 1024  # bytes of one message that are read; more is a fault of the server


class Conversation(Protocol):
    """One session with one server: a process, or a series of HTTP requests.

    The checks have wires of their own, apart from the runtime's client: they must send what no client would (half a
    message, a wrong revision) and see what a client hides (noise on stdout, how the process ends), and a mistake that
    client and server share would otherwise stay unseen.
    """

    exchanges: list[WireExchange]

    async def ask(self, message: Json, patience: float) -> WireExchange:
        """Send a message and wait at most `patience` seconds for its answer. Never raises."""

    async def send_malformed(self, text: str, message: Json, patience: float) -> tuple[WireExchange, WireExchange]:
        """Send a text that is no message, then `message`: what came back for either. Never raises."""

    async def notify(self, message: Json) -> None:
        """Send a notification."""

    async def close(self) -> ServerProcess:
        """End the session and say how it went."""


def decode(data: bytes) -> Any:
    """Return the JSON value in `data`; None when it is none, or nested too deeply to be read."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return None if is_nested_deeper(value, MAX_DEPTH) else value


def is_answer(message: Json) -> bool:
    """Whether a JSON-RPC message answers something, rather than being a request or a notification."""
    return "method" not in message and ("result" in message or "error" in message)


def client_reply(request: Json) -> Json:
    """Return what we answer when the server asks us: ping, no roots, and nothing else."""
    answers: dict[str, Json] = {"ping": {}, "roots/list": {"roots": []}}
    method = request.get("method")
    body: Json
    if isinstance(method, str) and method in answers:
        body = {"result": answers[method]}
    else:
        body = {"error": {"code": -32601, "message": "the client offers no such thing"}}
    return {"jsonrpc": "2.0", "id": request.get("id"), **body}
