"""What lives as long as an HTTP application: begun once, in a task of its own, and ended there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

__all__ = ["Life"]


class Life:
    """Enters context managers before the first request and leaves them at the end.

    It is a task, as what is entered must be left by the task that entered it: requests come and go. An event loop that ends cancels it, and
    it leaves in order, also where nobody said that the application ends.

    Args:
        enter: enters what is needed into the stack.
    """

    __slots__ = ("_enter", "_over", "_started", "_task")

    def __init__(self, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        self._enter = enter
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._over = asyncio.Event()

    @property
    def started(self) -> bool:
        """Whether all is entered."""
        task = self._task
        return task is not None and not task.done() and self._started is not None and self._started.done()

    async def start(self) -> None:
        """Enter, once; whoever comes meanwhile waits. Raises what entering raised, and the next one tries again."""
        if self._task is None or self._task.done() or self._started is None:
            self._over.clear()
            self._started = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._started))
        await asyncio.shield(self._started)

    async def end(self) -> None:
        """Leave, and wait for it."""
        task, self._task = self._task, None
        if task is not None:
            self._over.set()
            await asyncio.wait([task])

    async def _run(self, started: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._enter(stack)
                started.set_result(None)
                with suppress(
                    asyncio.CancelledError
                ):  # the event loop ends: what is entered is left as at any other end
                    await self._over.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error if isinstance(error, Exception) else RuntimeError("the event loop ended"))
