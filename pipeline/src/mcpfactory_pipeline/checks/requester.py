"""Requests of the prober: messages in the lifecycle of the current session, and time limits."""

from __future__ import annotations

import itertools
import time
from typing import Final

from mcpfactory_pipeline.checks.client_capabilities import (
    MAX_ROUNDS,
    asks_for_input,
    declared_client_capabilities,
    input_retry_params,
)
from mcpfactory_pipeline.checks.evidence import Lifecycle
from mcpfactory_pipeline.checks.exchange import CAPABILITIES, LATEST_MODERN, NOT_SENT, WireExchange, per_request_meta
from mcpfactory_pipeline.checks.probes import Probe
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.types import Json

ANSWER: Final = 10.0  # seconds; timeout of one answer
SLOWER: Final = 10  # factor; a timeout is at least this multiple of the first answer's duration
TIRED: Final = 2.0  # seconds; timeout of an answer after three unanswered requests
TIME_LIMIT: Final = "the time limit of the validation was reached"
_LARGE: Final = 256 * 1024  # bytes; readers with a limited line length often stop at 64 KiB
_STARTS: Final = 10  # factor; the time limit grows by this multiple of the first answer's duration


class Requester:
    """Builds requests, and sends them until the time limit of the validation.

    Args:
        timeout: time limit in seconds; a slow first answer extends the limit.
        features: the capabilities that the client declares.
        dialogues: collects the exchanges of each request for which the server asked for input.

    Attributes:
        lifecycle: the lifecycle of the current session.
        modern: the per-request revision in use.
        pace: seconds until the first answer, including the start of the process; 0 before the first answer.
        numbers: unused numbers for ids and tokens.
    """

    def __init__(self, timeout: float, features: Json, dialogues: list[tuple[WireExchange, ...]]) -> None:
        self.features = features
        self.lifecycle: Lifecycle = "legacy"
        self.modern = LATEST_MODERN
        self.pace = 0.0
        self.numbers = itertools.count(1)
        self._dialogues = dialogues
        self._deadline = time.monotonic() + timeout
        self._text_ids = True
        self._unanswered = 0

    def seconds_left(self) -> float:
        """Return the number of seconds until the time limit."""
        return self._deadline - time.monotonic()

    def restart(self, seconds: float) -> None:
        """Extend the time limit, and reset the count of unanswered requests."""
        self._deadline += seconds
        self._unanswered = 0

    def message(
        self, method: str, params: Json | None = None, probe: Probe | None = None, features: Json | None = None
    ) -> Json:
        """Return a request in the session's lifecycle, modified by `probe`.

        Per-request messages for which a server may ask for input declare `features` (default: all). Other messages
        declare only the given `features`.
        """
        params = params or {}
        if self.lifecycle == "modern":
            chosen = self.features if features is None else features
            declared = {CAPABILITIES: chosen} if method in LATEST.input_requests or features else {}
            changes = probe.meta if probe else {}
            meta = {**params.get("_meta", {}), **per_request_meta(self.modern), **declared, **changes}
            params = {**params, "_meta": {key: value for key, value in meta.items() if value is not None}}
        return {"jsonrpc": "2.0", "id": self._next_id(), "method": method, "params": params}

    def _next_id(self) -> int | str:
        """Return a new id: an integer, a text, or a text of digits, because clients use all three."""
        number = next(self.numbers)
        return (str(number), number, f"mcpfactory-{number}", number)[number % 4] if self._text_ids else number

    def large_message(self) -> Json:
        """Return a request without effects that has more than 256 KiB."""
        method = "ping" if self.lifecycle == "legacy" else "server/discover"
        return self.message(method, {"_meta": {"mcpfactory.example/padding": "x" * _LARGE}})

    async def ask(self, conversation: Conversation, message: Json, patience: float = ANSWER) -> WireExchange:
        """Send a message, retry with answers if the result asks questions, and return the last exchange."""
        rounds = [await self.exchange(conversation, message, patience)]
        while asks_for_input(rounds[-1]) and declared_client_capabilities(rounds[0]) and len(rounds) <= MAX_ROUNDS:
            params = input_retry_params(rounds[-1])
            rounds.append(await self.exchange(conversation, self.message(rounds[0].method, params), patience))
        if len(rounds) > 1:
            self._dialogues.append(tuple(rounds))
        return rounds[-1]

    async def request(
        self, conversation: Conversation, method: str, params: Json | None = None, patience: float = ANSWER
    ) -> WireExchange:
        """Build a request, and send it with `ask`."""
        return await self.ask(conversation, self.message(method, params), patience)

    async def exchange(self, conversation: Conversation, message: Json, patience: float = ANSWER) -> WireExchange:
        """Send a message, and wait for the answer; the timeout depends on the duration of the first answer.

        If the server has ended, send nothing, so that findings blame only the message at which the server ended.
        """
        if conversation.session.has_ended:
            return WireExchange(message, None, NOT_SENT)
        patience = max(patience, SLOWER * self.pace)
        if self._unanswered >= 3:
            patience = min(patience, TIRED + SLOWER * self.pace)
        exchange = await conversation.ask(message, max(min(patience, self.seconds_left()), 0.5))
        self._unanswered += exchange.received is None
        if isinstance(message.get("id"), str) and (exchange.received is None or not exchange.id_echoed):
            self._text_ids = False  # later ids are numbers
        if self.pace == 0 and exchange.received is not None:
            # The time limit of the validation depends on the duration of the first answer.
            self.pace = exchange.milliseconds / 1000
            self._deadline += _STARTS * self.pace
        return exchange
