"""One server behind the gateway, as a process: started at its first use, stopped when it has been idle, started anew after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.ids import format_time, utc_now
from mcpfactory_pipeline.launch.failure import read_failure
from mcpfactory_pipeline.serve.gateway.passed import pass_on
from mcpfactory_runtime import Context, McpError, ToolError
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError

__all__ = ["Child", "Condition"]

Json = dict[str, Any]
Condition = Literal["asleep", "starting", "awake", "broken"]

_START: Final = 60.0  # seconds until a server must have answered
_LAST: Final = 500  # characters of an error that are kept


class Child:
    """A server and its one connection, which all calls share.

    Args:
        name: of the server.
        command: gives what starts it on stdio, and makes its environment where it must; called beside the event loop.
        environ: on top of ours.
        idle: seconds without a call after which it is stopped.
        arrived: is told of each start, with the client; beside the calls.
        heard: is told the log messages of the server, with the calls in flight.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[], Sequence[str]],
        environ: Mapping[str, str],
        *,
        idle: float,
        arrived: Callable[[Child, Client], Awaitable[None]],
        heard: Callable[[Sequence[Context], Json], None],
    ) -> None:
        self.name = name
        self.calls = self.errors = self.starts = 0
        self.last_error = ""
        self.condition: Condition = "asleep"
        self.since = format_time(utc_now())
        self._command, self._environ, self._idle = command, environ, idle
        self._arrived, self._heard = arrived, heard
        self._client: Client | None = None
        self._starting = asyncio.Lock()
        self._flying: list[Context] = []
        self._bedtime: asyncio.TimerHandle | None = None
        self._beside: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """How many calls are being made now."""
        return len(self._flying)

    async def call(self, method: str, params: Json, ctx: Context) -> Json:
        """Return the result of one request, whose questions go to whoever is behind `ctx`.

        Raises `ToolError` when the server cannot be started, or ended meanwhile; `McpError` as the server says.
        """
        self.calls += 1
        self._flying.append(ctx)
        if self._bedtime is not None:
            self._bedtime.cancel()
            self._bedtime = None
        try:
            client = await self._awake()
            return await pass_on(client, method, params, ctx)
        except (ConnectionLostError, ProtocolError, TimeoutError, PipelineError) as error:
            raise self._failed(error) from None
        except (McpError, ToolError):
            self.errors += 1
            raise
        finally:
            self._flying.remove(ctx)
            if not self._flying:
                self._bedtime = asyncio.get_running_loop().call_later(self._idle, self._lie_down)

    async def look(self) -> None:
        """Start the server, so that `arrived` learns what it offers. Raises `ToolError`."""
        try:
            await self._awake()
        except (ConnectionLostError, ProtocolError, TimeoutError, McpError, PipelineError) as error:
            raise self._failed(error) from None
        await asyncio.gather(*self._beside, return_exceptions=True)
        if not self._flying:
            self._lie_down()

    async def aclose(self) -> None:
        """End the process."""
        if self._bedtime is not None:
            self._bedtime.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await asyncio.gather(*self._beside, return_exceptions=True)  # an earlier process may still be on its way out
        self._now("asleep")

    # -- waking and sleeping ---------------------------------------------------------------------------------------

    async def _awake(self) -> Client:
        """Return a client whose server runs. Raises what a client raises."""
        async with self._starting:
            if self._client is not None and self._client.lost is None:
                return self._client
            old, self._client = self._client, None
            if old is not None:
                await old.aclose()
            self._now("starting")
            self.starts += 1
            try:
                command = await asyncio.to_thread(self._command)
            except asyncio.CancelledError:
                self._now("asleep")
                raise
            client = Client.connect_stdio(
                command, self._environ, timeout=_START, probe_timeout=_START, notified=self._notified,
                capabilities={}, kept=0,
            )  # fmt: skip
            try:
                await client.__aenter__()
            except McpError as error:
                raise ProtocolError(f"it refused to begin: {error}") from None
            except asyncio.CancelledError:  # by whoever called first; nothing is on its way any more
                self._now("asleep")
                raise
            self._client = client
            self._now("awake")
            self._spawn(self._arrived(self, client))
            return client

    def _lie_down(self) -> None:
        if self._flying or self._client is None:
            return
        client, self._client = self._client, None
        self._now("asleep")
        self._spawn(client.aclose())

    def _failed(self, error: Exception) -> ToolError:
        """Return what a caller is told: what its owner is to mend where the server does not start, else that it is started anew."""
        self.errors += 1
        mistake = error if isinstance(error, PipelineError) else read_failure(str(error))
        self.last_error = str(mistake or error)[:_LAST]
        if self._client is None or self._client.lost is not None:
            self._now("broken")
        if mistake is not None:
            return ToolError(f"The server {self.name} does not start: {mistake}\nhint: {mistake.hint}")
        return ToolError(
            f"The server {self.name} cannot answer: {error}\nhint: it is started anew by the next call; what this call did "
            "until then is not known"
        )

    def _now(self, condition: Condition) -> None:
        if condition != self.condition:
            self.condition, self.since = condition, format_time(utc_now())

    def _notified(self, method: str, params: Json) -> None:
        if method == "notifications/message" and self._flying:
            self._heard(self._flying, params)

    def _spawn(self, work: Awaitable[None]) -> None:
        async def quietly() -> None:
            with suppress(ConnectionLostError, ProtocolError, McpError, TimeoutError):
                await work

        task = asyncio.create_task(quietly())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
