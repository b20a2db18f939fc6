"""Connections to one remote server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.connection import LOG_LEVELS
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.revisions import MODERN
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import InputRequired, ToolError
from mcpfactory_runtime.server.remote.relay import forwarded_capabilities, forwarded_question
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import SessionChannel

log = logging.getLogger(__name__)

_EVERYTHING: Final[Json] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""Capabilities that the first connection declares. Questions that the caller cannot answer are refused."""
_IDLE: Final = 600.0  # seconds after which an idle connection is closed


class ClientFactory(Protocol):
    """Factory of unconnected clients."""

    def __call__(self, **options: Any) -> Client:
        """Return an unconnected client."""


class ForwardedCall:
    """A forwarded call.

    Attributes:
        asked: set to a question if the caller must repeat the request with an answer.
    """

    def __init__(self, ctx: Context, client: Client) -> None:
        self.ctx, self.client = ctx, client
        self.asked: asyncio.Future[InputRequired] = asyncio.get_running_loop().create_future()
        self.owner: object = ctx.session or self
        self._questions = 0

    async def answer(self, method: str, params: Json) -> Json:
        """Return the caller's answer to a question from a server of the handshake lifecycle."""
        self._questions += 1
        key = f"{self._questions}.{method}"
        try:
            found: Json = (await self.ctx.ask(**{key: forwarded_question({"method": method, "params": params})}))[key]
        except InputRequired as asked:
            if not self.asked.done():
                self.asked.set_result(asked)
            raise  # the abandoned call will be canceled at the server, so send no answer
        return found


class _Connection:
    def __init__(self, declared: Json, owner: object | None) -> None:
        self.declared, self.owner = declared, owner
        self.client: Client | None = None
        self.exchanges: list[ForwardedCall] = []
        self.turn = asyncio.Lock()
        """Lock that permits one call at a time, so that a question from the server belongs to a known call."""
        self.attempt: asyncio.Task[Client] | None = None
        self.used = 0.0

    @property
    def usable(self) -> bool:
        return self.client is not None and self.client.lost is None

    def forward_log(self, params: Json) -> None:
        """Forward a log message to the latest call. Drop the message if several clients have calls in progress."""
        if len({id(one.owner) for one in self.exchanges}) == 1:
            level = params.get("level")
            self.exchanges[-1].ctx.log(
                level if level in LOG_LEVELS else "info", params.get("data"), params.get("logger")
            )

    async def answer(self, method: str, params: Json) -> Json:
        if not self.exchanges or len({id(one.owner) for one in self.exchanges}) > 1:
            raise McpError(INTERNAL_ERROR, f"{method} cannot be answered now, because its caller is unknown")
        return await self.exchanges[-1].answer(method, params)


class RemoteConnections:
    """The connections to one server.

    The first connection serves lists. The first connection also serves all calls if the server uses the per-request
    lifecycle, or if this process has only one client. In the handshake lifecycle, a question from the server belongs to
    a connection, not to a call. Each HTTP session therefore has a separate connection, which declares the capabilities
    of the session's client. A call without a session also gets a separate connection if the caller can answer
    questions.
    """

    def __init__(self, name: str, connect: ClientFactory, most: int) -> None:
        self._name, self._connect, self._most = name, connect, most
        self._others: list[_Connection] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.begin()

    def begin(self) -> None:
        """Reset the state for a new event loop. Call `aclose` before this method."""
        self._first = _Connection(_EVERYTHING, None)
        self.reconnected = asyncio.Event()
        """Event that is set after the first connection was opened again."""

    @property
    def first(self) -> Client | None:
        """Return the client of the first connection, or None if the connection is not open."""
        return self._first.client if self._first.usable else None

    async def open(self) -> Client:
        """Return the client of the first connection. Open the connection if necessary."""
        return await self._opened(self._first)

    @asynccontextmanager
    async def exchange(self, ctx: Context) -> AsyncIterator[ForwardedCall]:
        """Provide a connection for a call. Raise ToolError if all connections are in use."""
        first = await self.open()
        session = ctx.session
        able = forwarded_capabilities(ctx)
        if first.modern or (session is not None and session.private) or not (able or session is not None):
            connection = self._first
        else:
            connection = self._other(able, session)
        if first.modern or not (able and ctx.revision in MODERN):
            async with self._over(connection, ctx) as found:
                yield found
            return
        async with connection.turn, self._over(connection, ctx) as found:
            yield found

    async def aclose(self) -> None:
        """Close all connections."""
        every = (self._first, *self._others)
        attempts = [one.attempt for one in every if one.attempt is not None]
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        clients = [one.client for one in every if one.client is not None]
        self._others.clear()
        self._first.client = None
        await asyncio.gather(*(client.aclose() for client in clients), *self._closing, return_exceptions=True)

    @asynccontextmanager
    async def _over(self, connection: _Connection, ctx: Context) -> AsyncIterator[ForwardedCall]:
        found = ForwardedCall(ctx, await self._opened(connection))
        connection.exchanges.append(found)
        try:
            yield found
        finally:
            connection.exchanges.remove(found)
            connection.used = asyncio.get_running_loop().time()

    def _other(self, able: Json, session: SessionChannel | None) -> _Connection:
        """Return the connection of a session, or an unused connection for a call without a session."""
        now = asyncio.get_running_loop().time()
        for one in self._unused():
            if now - one.used > _IDLE:
                self._drop(one)
        for one in self._others:
            mine = one.owner is session if session is not None else one.owner is None and not one.turn.locked()
            if mine and one.declared == able:
                return one
        if len(self._others) >= self._most and not self._make_room():
            raise ToolError(
                f"The server {self._name} cannot be called now: all {self._most} connections to this server are "
                "in use\nhint: try again later, or increase RemoteServer(max_connections=…)"
            )
        made = _Connection(json.loads(json.dumps(able)), session)
        made.used = asyncio.get_running_loop().time()
        self._others.append(made)
        return made

    def _make_room(self) -> bool:
        """Close the connection with the longest idle time. Return False if all connections are in use."""
        idle = self._unused()
        if idle:
            self._drop(min(idle, key=lambda one: one.used))
        return bool(idle)

    def _unused(self) -> list[_Connection]:
        return [one for one in self._others if not one.exchanges and not one.turn.locked() and one.attempt is None]

    def _drop(self, connection: _Connection) -> None:
        self._others.remove(connection)
        if connection.client is not None:
            in_background(self._closing, connection.client.aclose())

    async def _opened(self, connection: _Connection) -> Client:
        """Open the connection if necessary. Concurrent callers share one attempt."""
        if connection.client is not None and connection.client.lost is None:
            return connection.client
        if connection.attempt is None:
            connection.attempt = asyncio.create_task(self._reconnect(connection))
            connection.attempt.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(connection.attempt)

    async def _reconnect(self, connection: _Connection) -> Client:
        try:
            old, connection.client = connection.client, None
            if old is not None:
                await old.aclose()
            client = self._client(connection)
            await client.__aenter__()
            connection.client = client
            if connection is self._first:
                self.reconnected.set()
            return client
        finally:
            connection.attempt = None

    def _client(self, connection: _Connection) -> Client:
        def notified(method: str, params: Json) -> None:
            if method == "notifications/message":  # the subscription handles change notifications
                connection.forward_log(params)

        def asker(method: str) -> Callable[[Json], Awaitable[Json]]:
            return lambda params: connection.answer(method, params)

        async def roots() -> list[Json]:
            found: list[Json] = (await connection.answer("roots/list", {}))["roots"]
            return found

        return self._connect(
            elicitation=asker("elicitation/create"),
            sampling=asker("sampling/createMessage"),
            roots=roots,
            capabilities=connection.declared,
            notified=notified,
            kept=0,
        )
