"""A server process behind the gateway: started at first use, stopped when idle, restarted after it ends.

A call is forwarded together with the messages that precede its result: progress, log messages, and questions. A
server behind the gateway asks by ending its request (`input_required`), so the call that a question belongs to is
known. All server output passes through here, and invisible characters are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.ids import format_time, utc_now
from mcpfactory_pipeline.launch.diagnosis import read_failure
from mcpfactory_pipeline.serve.gateway.relay import plain_answer, plain_text
from mcpfactory_runtime import Context, McpError, ToolError
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError
from mcpfactory_runtime.server.remote.relay import forward
from mcpfactory_runtime.types import Json

Condition = Literal["asleep", "starting", "awake", "broken"]

_START_TIMEOUT: Final = 60.0  # seconds until a server must have answered
_MAX_ERROR: Final = 500  # characters of an error that are kept


class Child:
    """A server and its only connection, which all calls share.

    Args:
        name: of the server.
        command: returns the command that starts it on stdio, and makes its environment if necessary; called off the
            event loop.
        environ: the complete environment of its process.
        url: its address, if it is not started here; `command` is then not called.
        idle: seconds without a call after which it is stopped.
        on_started: called with its client after each start, concurrently with the calls.
        on_log: called with each log message of the server, and the calls in flight.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[], Sequence[str]],
        environ: Mapping[str, str],
        *,
        url: str = "",
        idle: float,
        on_started: Callable[[Child, Client], Awaitable[None]],
        on_log: Callable[[Sequence[Context], Json], None],
    ) -> None:
        self.name = name
        self.calls = self.cleaned = self.errors = self.starts = 0
        self.last_error = ""
        self.condition: Condition = "asleep"
        self.since = format_time(utc_now())
        self._command, self._environ, self._idle = command, environ, idle
        self._url = url
        self._on_started, self._on_log = on_started, on_log
        self._client: Client | None = None
        self._starting = asyncio.Lock()
        self._flights: dict[Context, None] = {}  # the calls that are being made, in their order
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """Return the number of calls in flight."""
        return len(self._flights)

    @property
    def awake(self) -> Client | None:
        """The server's client, if a call can be sent now."""
        return self._client if self._client is not None and self._client.lost is None else None

    async def call(self, method: str, params: Json, ctx: Context) -> Json:
        """Return the result of one request; its questions are sent to the caller behind `ctx`.

        Raises:
            ToolError: the server cannot be started, or ended during the call.
            McpError: the server returned an error.
        """
        self.calls += 1
        self._flights[ctx] = None
        try:
            client = self._client
            if client is None or client.lost is not None:
                client = await self._running_client()
            return await forward(client, method, params, ctx, plain=self._plain)
        except (ConnectionLostError, ProtocolError, TimeoutError, PipelineError) as error:
            raise self._tool_error(error) from None
        except McpError as error:
            self.errors += 1
            raise McpError(error.code, self._plain(error.message), self._plain(error.data)) from None
        except ToolError:
            self.errors += 1
            raise
        finally:
            self._land(ctx)

    def _land(self, flight: Context) -> None:
        """Note that a call is over."""
        self._flights.pop(flight, None)
        if not self._flights:
            self._wait_idle()

    async def probe(self) -> None:
        """Start the server, so that `on_started` receives its listing.

        Raises:
            ToolError: the server cannot be started.
        """
        try:
            await self._running_client()
        except (ConnectionLostError, ProtocolError, TimeoutError, McpError, PipelineError) as error:
            raise self._tool_error(error) from None
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stop_idle()

    async def aclose(self) -> None:
        """End the process."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # an earlier process may still be on its way out
        self._set_condition("asleep")

    # -- waking and sleeping ---------------------------------------------------------------------------------------

    async def _running_client(self) -> Client:
        """Return a client whose server runs. Raises what a client raises."""
        async with self._starting:
            if self._client is not None and self._client.lost is None:
                return self._client
            old, self._client = self._client, None
            if old is not None:
                await old.aclose()
            self._set_condition("starting")
            self.starts += 1
            try:
                client = await self._new_client()
            except asyncio.CancelledError:
                self._set_condition("asleep")
                raise
            try:
                await client.__aenter__()
            except McpError as error:
                raise ProtocolError(f"it refused to begin: {error}") from None
            except asyncio.CancelledError:  # canceled by the first caller; no call is in flight any more
                self._set_condition("asleep")
                raise
            self._client = client
            self._set_condition("awake")
            self._spawn(self._on_started(self, client))
            return client

    async def _new_client(self) -> Client:
        options: dict[str, Any] = {
            "timeout": _START_TIMEOUT,
            "probe_timeout": _START_TIMEOUT,
            "notified": self._notified,
            "capabilities": {},
            "kept": 0,
        }
        if self._url:
            return Client.connect_http(self._url, **options)
        return Client.connect_stdio(await asyncio.to_thread(self._command), self._environ, inherit=False, **options)

    def _wait_idle(self) -> None:
        """Stop the server after its idle time. The timer of an earlier call continues, and checks when it fires."""
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        if self._idle_timer is None:
            self._idle_timer = loop.call_later(self._idle, self._look_idle)

    def _look_idle(self) -> None:
        loop = asyncio.get_running_loop()
        end = self._idle_since + self._idle
        self._idle_timer = None
        if self._flights:
            return  # the end of the last call starts a new timer
        if loop.time() < end:
            self._idle_timer = loop.call_at(end, self._look_idle)
        else:
            self._stop_idle()

    def _stop_idle(self) -> None:
        if self._flights or self._client is None:
            return
        client, self._client = self._client, None
        self._set_condition("asleep")
        self._spawn(client.aclose())

    def _tool_error(self, error: Exception) -> ToolError:
        """Return the caller's error: the owner's repair if the server does not start, else a restart notice."""
        self.errors += 1
        said = plain_text(str(error))  # it quotes the end of the server's stderr
        failure = error if isinstance(error, PipelineError) else read_failure(said)
        self.last_error = str(failure or said)[:_MAX_ERROR]
        if self._client is None or self._client.lost is not None:
            self._set_condition("broken")
        if failure is not None:
            return ToolError(f"The server {self.name} does not start: {failure}\nhint: {failure.hint}")
        return ToolError(
            f"The server {self.name} cannot answer: {said}\nhint: it is started anew by the next call; what this call did "
            "until then is not known"
        )

    def _plain(self, said: Any) -> Any:
        """Return the server's data without invisible characters, and count the affected messages."""
        plain = plain_answer(said)
        self.cleaned += plain is not said
        return plain

    def _set_condition(self, condition: Condition) -> None:
        if condition != self.condition:
            self.condition, self.since = condition, format_time(utc_now())

    def _notified(self, method: str, params: Json) -> None:
        if method == "notifications/message" and self._flights:
            self._on_log(list(self._flights), self._plain(params))

    def _spawn(self, work: Awaitable[None]) -> None:
        async def quietly() -> None:
            with suppress(ConnectionLostError, ProtocolError, McpError, TimeoutError):
                await work

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
