"""Common parts of the two transports: conversations with a validated server, and parsing of its bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

from mcpfactory_pipeline.checks.client_capabilities import (
    answer_input_request,
    needed_client_capability,
    undeclared_client_capability,
)
from mcpfactory_pipeline.checks.evidence import NotificationStream, ServerMessage, Session
from mcpfactory_pipeline.checks.exchange import MAX_DEPTH, META, WireExchange, is_nested_deeper
from mcpfactory_runtime.types import Json

_MOST_HEARD: Final = 10_000  # maximum number of stored messages while streams are open
_MAX_MESSAGES: Final = 1_000  # maximum number of stored server messages
MAX_MESSAGE: Final = 16 * 1024 * 1024  # bytes; a larger message is a fault


class MessageLog:
    """The messages of a session: the client's pending requests, and the server's messages that are not answers."""

    def __init__(self, session: Session) -> None:
        self.heard: list[Json] | None = None  # notifications and answers that arrive while streams are open
        self._session = session
        self._pending: Json | None = None
        self._open: dict[str, Json] = {}  # unanswered requests, including requests that timed out
        self._task_calls: dict[str, Json] = {}  # task id → the call, until the answer to tasks/result
        self._modern = True
        self._initialized = False
        self.declared: Json = {}  # capabilities of the client in this session

    def sent(self, message: Json) -> None:
        """Record a message of the client."""
        method = message.get("method")
        self._modern = self._modern and method != "initialize"
        if method == "initialize":
            params = message.get("params")
            capabilities = params.get("capabilities") if isinstance(params, dict) else None
            self.declared = capabilities if isinstance(capabilities, dict) else {}
        self._initialized = self._initialized or method == "notifications/initialized"
        if method and "id" in message:
            self._pending = message
            self._open[str(message["id"])] = message

    def received(self, message: Json) -> None:
        """Record a message of the server."""
        if self.heard is not None and (is_jsonrpc_answer(message) or "id" not in message):
            if len(self.heard) < _MOST_HEARD:
                self.heard.append(message)
            return
        if not is_jsonrpc_answer(message):
            if len(self._session.messages) < _MAX_MESSAGES:
                during = self._of_token(message) or self._pending
                self._session.messages.append(
                    ServerMessage(message, during, self._modern, self._initialized, self.declared)
                )
            return
        self._note_task(self._open.pop(str(message.get("id")), {}), message.get("result"))
        if self._pending is not None and message.get("id") == self._pending.get("id"):
            self._pending = None

    def _note_task(self, request: Json, result: Any) -> None:
        """Keep the call of a task, because its progress token is valid until the task ends."""
        asked = request.get("params")
        asked = asked if isinstance(asked, dict) else {}
        if request.get("method") == "tasks/result":
            self._task_calls.pop(str(asked.get("taskId")), None)
        task = result.get("task") if isinstance(result, dict) and "task" in asked else None
        if isinstance(task, dict):
            self._task_calls[str(task.get("taskId"))] = request

    def _of_token(self, message: Json) -> Json | None:
        params = message.get("params")
        token = params.get("progressToken") if isinstance(params, dict) else None
        running = (*self._open.values(), *self._task_calls.values())
        named = (one for one in running if token is not None and str(progress_token(one)) == str(token))
        return next(named, None)


class Conversation(Protocol):
    """One session with one server: a process, or a series of HTTP requests.

    The checks do not use the runtime's client. The reasons: checks must send invalid messages (half a message, a wrong
    revision). Checks must observe details that a client hides (other text on stdout, the end of the process). A bug
    that the server and the runtime's client share must not stay hidden.
    """

    session: Session

    async def ask(self, message: Json, patience: float) -> WireExchange:
        """Send a message and wait at most `patience` seconds for its answer. Never raises."""

    async def send_raw(
        self, text: str, message: Json, patience: float, *, wait: bool
    ) -> tuple[WireExchange, WireExchange]:
        """Send an invalid text, then `message`, and return the answers to both. Never raises.

        Surrogates in the text represent bytes that are not UTF-8 (`surrogateescape`). If `wait` is set, the answer to
        the text may arrive shortly after the answer to `message`.
        """

    async def listen(
        self, requests: Sequence[Json], patience: float, calls: Sequence[Json] = ()
    ) -> tuple[NotificationStream, ...]:
        """Open notification streams one after the other, make `calls`, and close the streams. Never raises.

        Each call, and the acknowledgment or answer of each stream, may take `patience` seconds.
        """

    async def overlap(self, messages: Sequence[Json], patience: float, pause: float = 0.0) -> list[WireExchange]:
        """Send messages with a pause between them, without waiting for answers; return the exchanges. Never raises.

        A message can be the `cancellation_message` of an earlier message. The result has no exchange for canceled
        requests and notifications.
        """

    async def notify(self, message: Json) -> None:
        """Send a notification."""

    async def close(self, *, terminate: bool = False) -> None:
        """End the session. If `terminate` is set, send SIGTERM to the process and leave its stdin open."""


def is_acknowledgement(message: Json) -> bool:
    """Return True if a notification confirms that a notification stream is open."""
    return message.get("method") == "notifications/subscriptions/acknowledged"


def subscription_id(message: Json) -> Any:
    """Return the stream id in a notification, or None."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(META + "subscriptionId") if isinstance(meta, dict) else None


def split_streams(requests: Sequence[Json], heard: Sequence[Json]) -> tuple[NotificationStream, ...]:
    """Assign messages that arrive on one channel to their streams (see `NotificationStream`)."""
    notified: list[list[Json]] = [[] for _ in requests]
    answers: dict[str, Json] = {}
    ids = [str(one["id"]) for one in requests]
    acknowledged: set[int] = set()
    for message in heard:
        if is_jsonrpc_answer(message):
            answers.setdefault(str(message.get("id")), message)
            continue
        named = [place for place, one in enumerate(ids) if one == str(subscription_id(message))]
        opens = is_acknowledgement(message)
        silent = [place for place in range(len(ids)) if place not in acknowledged] if opens else []
        place = (named or silent or [0])[0]
        notified[place].append(message)
        if opens:
            acknowledged.add(place)
    return tuple(
        NotificationStream(one, tuple(told), answers.get(str(one["id"])))
        for one, told in zip(requests, notified, strict=True)
    )


def decode(data: bytes) -> Any:
    """Return the JSON value in `data`, or None if it is not JSON in UTF-8 (RFC 8259 §8.1), or nested too deeply."""
    try:
        # Decode first, because `json` also accepts UTF-16, UTF-32, byte order marks and encoded surrogates.
        value = json.loads(data.decode(), parse_constant=refuse_json_constant)
    except (ValueError, RecursionError):
        return None
    return None if is_nested_deeper(value, MAX_DEPTH) else value


def refuse_json_constant(name: str) -> None:
    """Refuse NaN and Infinity, which `json` accepts although they are not JSON (RFC 8259 §6)."""
    raise ValueError(f"{name} is not JSON")


def is_jsonrpc_answer(message: Json) -> bool:
    """Return True if a JSON-RPC message is an answer, not a request or a notification."""
    return "method" not in message and ("result" in message or "error" in message)


def progress_token(request: Json) -> Any:
    """Return the progress token in a request, or None."""
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None


def escape_surrogates(text: str) -> str:
    """Escape the surrogates in a text (bytes that are not UTF-8)."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def cancellation_message(request: Json) -> Json:
    """Return the message that cancels a request, in either lifecycle."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}}


def canceled_ids(messages: Sequence[Json]) -> list[Any]:
    """Return the ids of the requests that these messages cancel."""
    return [one["params"]["requestId"] for one in messages if one.get("method") == "notifications/cancelled"]


def answer_server_request(request: Json, declared: Json) -> Json:
    """Return the client's answer to a request of the server.

    Requests for ping and declared features succeed; all others are refused.
    """
    body: Json = {"error": {"code": -32601, "message": "the client does not support this method"}}
    if request.get("method") == "ping":
        body = {"result": {}}
    elif needed_client_capability(request) and not undeclared_client_capability(request, declared):
        body = {"result": answer_input_request(request)}
    return {"jsonrpc": "2.0", "id": request.get("id"), **body}
