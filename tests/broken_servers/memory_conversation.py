"""Conversation with a server in the test's process, instead of a command as in `StdioConversation`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from mcpfactory_pipeline.checks.evidence import NotificationStream, Session
from mcpfactory_pipeline.checks.exchange import ValidationTarget, WireExchange
from mcpfactory_pipeline.checks.transport.conversation import (
    MessageLog,
    answer_server_request,
    canceled_ids,
    cancellation_message,
    escape_surrogates,
    is_jsonrpc_answer,
    split_streams,
)
from tests.broken_servers.healthy import Json, SampleServer


class MemoryConversation:
    """Conversation of one session with one server."""

    def __init__(self, sample: SampleServer, purpose: str) -> None:
        self.session = Session(purpose, answered=True, milliseconds=1)
        self._log = MessageLog(self.session)
        self._sample = sample
        self._came: list[Json] = []
        self._dead = False
        self._arrays: list[list[str]] = []  # request IDs of each received batch
        sample.out = self._line

    def _feed(self, text: str) -> None:
        """Pass a line to the server. If the server raises, it is dead from then on, as its process would be."""
        if self._dead:
            return
        try:
            self._sample.feed(text)
        except (Exception, SystemExit):  # noqa: BLE001 - any exception would end a process
            self._dead = True

    def _line(self, text: str) -> None:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, list):
            self._arrays.append([str(one.get("id")) for one in value])
        for message in value if isinstance(value, list) and value else [value]:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                self.session.pollution.append(text)
                continue
            self._log.received(message)
            if is_jsonrpc_answer(message):
                self._came.append(message)
            elif "id" in message:
                self._sample.feed(json.dumps(answer_server_request(message, self._log.declared)))

    async def ask(self, message: Json, patience: float) -> WireExchange:
        """See `Conversation.ask`. A server that does not respond at once never responds."""
        self._log.sent(message)
        self._feed(json.dumps(message))
        received = self._came.pop(0) if self._came else None
        problem = "the server ended with code 1" if self._dead else f"no answer within {patience:g} s"
        exchange = WireExchange(message, received, "" if received is not None else problem)
        self.session.exchanges.append(exchange)
        return exchange

    async def send_raw(
        self, text: str, message: Json, patience: float, *, wait: bool
    ) -> tuple[WireExchange, WireExchange]:
        """See `Conversation.send_raw`."""
        self._feed(text)
        came, self._came = self._came, []
        apart = len(came) > 1 and [str(one.get("id")) for one in came] not in self._arrays
        more = tuple(came[1:])
        raw = WireExchange(
            escape_surrogates(text), came[0] if came else None, "" if came else "no answer", more=more, separate=apart
        )
        after = await self.ask(message, patience)
        self.session.exchanges.append(raw)
        return raw, after

    async def overlap(self, messages: Sequence[Json], patience: float, pause: float = 0.0) -> list[WireExchange]:
        """See `Conversation.overlap`."""
        for message in messages:
            self._log.sent(message)
        if not self._dead:
            self._sample.feed_all([json.dumps(message) for message in messages])
        came, self._came = {str(one.get("id")): one for one in self._came}, []
        wanted = [one for one in messages if "id" in one and one["id"] not in canceled_ids(messages)]
        problem = "the server ended with code 1" if self._dead else f"no answer within {patience:g} s"
        answers = [(one, came.get(str(one["id"]))) for one in wanted]
        exchanges = [WireExchange(one, back, "" if back is not None else problem) for one, back in answers]
        self.session.exchanges += exchanges
        return exchanges

    async def listen(
        self, requests: Sequence[Json], patience: float, calls: Sequence[Json] = ()
    ) -> tuple[NotificationStream, ...]:
        """See `Conversation.listen`."""
        self._log.heard = heard = []
        for request in [*requests, *calls, *map(cancellation_message, requests)]:
            self._feed(json.dumps(request))
        self._log.heard = None
        self._came = []
        return split_streams(requests, heard)

    async def notify(self, message: Json) -> None:
        """See `Conversation.notify`."""
        self._log.sent(message)
        self._feed(json.dumps(message))

    async def close(self, *, terminate: bool = False) -> None:
        """See `Conversation.close`."""
        self.session.ended_after, self.session.terminated = 1, terminate


class MemoryConnector:
    """Connector of a prober that opens a conversation for each session."""

    def __init__(self, kind: type[SampleServer], handshakes: list[str], moderns: list[str]) -> None:
        self._make = lambda: kind(handshakes, moderns)

    async def __call__(
        self, _target: ValidationTarget, _environ: Mapping[str, str], purpose: str
    ) -> MemoryConversation:
        return MemoryConversation(self._make(), purpose)


class SilentConnector(MemoryConnector):
    """Connector whose first `silent` sessions get no responses, as on a loaded machine."""

    def __init__(self, kind: type[SampleServer], handshakes: list[str], moderns: list[str], *, silent: int) -> None:
        super().__init__(kind, handshakes, moderns)
        self.silent = silent
        self.patience: list[float] = []  # timeout of each session in seconds

    async def __call__(self, target: ValidationTarget, environ: Mapping[str, str], purpose: str) -> MemoryConversation:
        conversation = await super().__call__(target, environ, purpose)
        if self.silent:
            self.silent -= 1
            conversation.ask = self._unanswered(conversation)  # type: ignore[method-assign] # of this one session
        return conversation

    def _unanswered(self, conversation: MemoryConversation) -> Callable[[Json, float], Awaitable[WireExchange]]:
        async def ask(message: Json, patience: float) -> WireExchange:
            self.patience.append(patience)
            exchange = WireExchange(message, None, f"no answer within {patience:g} s")
            conversation.session.exchanges.append(exchange)
            return exchange

        return ask
