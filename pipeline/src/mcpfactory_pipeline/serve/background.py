"""Work beside the event loop, and what goes wrong with it, for the model: what, where, and what to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from mcpfactory_runtime import ToolError

__all__ = ["aside", "in_own_loop", "stoppable", "told"]

_LOOK: Final = 0.2  # seconds between two looks whether work is still wanted

Made = TypeVar("Made")


@contextmanager
def told() -> Iterator[None]:
    """Errors that are meant for a person (they have a `hint`) become a `ToolError`; mistakes of ours stay what they are."""
    try:
        yield
    except Exception as error:
        hint = getattr(error, "hint", None)
        if hint is None:
            raise
        raise ToolError(f"{error}\nhint: {hint}" if hint else str(error)) from None


async def aside(function: Callable[..., Made], *arguments: Any, **options: Any) -> Made:
    """Return what a function returns that takes a while, from a worker thread. Raises `ToolError` as `told` does."""
    with told():
        return await asyncio.to_thread(function, *arguments, **options)


async def stoppable(function: Callable[[threading.Event], Made]) -> Made:
    """Return the same for work that may take minutes: where nobody waits any more, its event is set, and its end is waited for."""
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(function, stop))
    with told():
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            with suppress(Exception, asyncio.CancelledError):
                await work
            raise


async def in_own_loop(make: Callable[[], Coroutine[Any, Any, Made]]) -> Made:
    """Return what a coroutine returns that must not hold up this event loop: it gets one of its own, in a worker thread."""

    async def watched(stop: threading.Event) -> Made:
        work = asyncio.ensure_future(make())
        while not work.done():
            await asyncio.wait((work,), timeout=_LOOK)
            if stop.is_set():
                work.cancel()
        return work.result()

    return await stoppable(lambda stop: asyncio.run(watched(stop)))
