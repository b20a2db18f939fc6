"""Registry of the processes that share a store: each holds a lease, and one whose lease has expired is dead."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from mcpfactory_runtime.store.base import Expected, SharedStore

LEASE: Final = 3.0
"""Seconds after which a process that says nothing counts as dead. What it writes to its sessions then is refused."""

_DAY: Final = 86_400.0
_ALL: Final = "processes"

log = logging.getLogger("mcpfactory_runtime")


class Processes:
    """The living processes that share a store, and this one among them. Event loop only.

    Args:
        store: what they share.
        lease: seconds that the others believe this one without hearing of it.

    Attributes:
        id: this process's name; also that of its mailbox.
        on_lapse: awaited after the lease of this process was over: the others may have taken it for dead.
    """

    def __init__(self, store: SharedStore, lease: float = LEASE) -> None:
        self.store = store
        self.id = secrets.token_hex(8)
        self.lease = lease
        self.on_lapse: Callable[[], Awaitable[None]] | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Begin to be seen by the others; no effect on one that did."""
        if self._keeper is None:
            await self._prolong()
            await self._enlist()
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def leave(self) -> None:
        """Say that this process ends: the others need not wait for its lease."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            with suppress(OSError):
                await self.store.drop(_space(self.id))
                await self.store.write(_ALL, [(self.id, None)], seconds=_DAY)

    async def alive(self, process: str) -> bool:
        """Return True if a process is alive."""
        return process == self.id or await self.store.get(_space(process), "") is not None

    async def others(self) -> list[str]:
        """Return the other processes that live; those that died are forgotten."""
        found = [process for process, _ in await self.store.scan(_ALL) if process != self.id]
        living = [process for process in found if await self.alive(process)]
        dead: list[tuple[str, bytes | None]] = [(process, None) for process in found if process not in living]
        if dead:
            await self.store.write(_ALL, dead, seconds=_DAY)
        return living

    async def _prolong(self) -> bool:
        """Prolong the lease. Returns whether it was still there."""
        space, lives = _space(self.id), b"lives"
        kept = await self.store.write(space, [("", lives)], seconds=self.lease, expected=Expected("", lives))
        return kept or not await self.store.write(space, [("", lives)], seconds=self.lease)

    async def _enlist(self) -> None:
        await self.store.write(_ALL, [(self.id, b"")], seconds=_DAY)

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        named = clock()
        lapsed = False
        while True:
            await asyncio.sleep(self.lease / 4)
            try:
                lapsed = not await self._prolong() or lapsed  # until all of what follows is done
                if lapsed or clock() - named > _DAY / 4:  # the others forget who died
                    await self._enlist()
                    named = clock()
                if lapsed and self.on_lapse is not None:
                    await self.on_lapse()
                lapsed = False
            except OSError as error:
                log.warning("the lease of this process was not prolonged: %s", error)


def _space(process: str) -> str:
    return f"process/{process}"
