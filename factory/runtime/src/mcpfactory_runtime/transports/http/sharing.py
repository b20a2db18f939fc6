"""What an HTTP application shares with others through a store: whose each session is, its events, and its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host
    from mcpfactory_runtime.store.base import SharedStore
    from mcpfactory_runtime.store.processes import Processes
    from mcpfactory_runtime.transports.http.shared_events import SharedEventStore
    from mcpfactory_runtime.transports.http.store_relay import StoreRelay

__all__ = ["Sharing", "create_sharing"]


class Sharing:
    """One process's part of a store.

    Attributes:
        events: keeps sessions and their events.
        relay: forwards requests for sessions that other processes have.
    """

    def __init__(self, store: SharedStore, processes: Processes, events: SharedEventStore, relay: StoreRelay) -> None:
        self._store = store
        self._processes = processes
        self.events = events
        self.relay = relay

    @asynccontextmanager
    async def entered(self, server: Host) -> AsyncIterator[None]:
        """Open the store, join the others, and let the server keep its tasks and used states there.

        Raises:
            StoreError: the store cannot be used.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._store.aclose)
            await self._store.open()
            stack.push_async_callback(self._processes.leave)
            stack.push_async_callback(self.events.aclose)
            await self.events.open()
            server.extensions.share(self._store, self._processes)
            await server.sealer.share(self._store)
            yield


def create_sharing(store: SharedStore, on_lost: Callable[[str], None]) -> Sharing:
    """Return this process's part of a store; `on_lost` is called with the key of each session that another process took over."""
    from mcpfactory_runtime.store.processes import Processes  # noqa: PLC0415 - for those who share only
    from mcpfactory_runtime.transports.http.shared_events import SharedEventStore  # noqa: PLC0415 - likewise
    from mcpfactory_runtime.transports.http.store_relay import StoreRelay  # noqa: PLC0415 - likewise

    processes = Processes(store)
    events = SharedEventStore(store, processes)
    events.on_lost = on_lost
    return Sharing(store, processes, events, StoreRelay(processes, events))
