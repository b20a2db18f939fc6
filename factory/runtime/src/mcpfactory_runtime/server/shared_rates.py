"""Buckets of tokens that all processes of a store count together."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mcpfactory_runtime.server.rates import ROUNDING, kind_of, refusal
from mcpfactory_runtime.store.base import Expected, StoreError

if TYPE_CHECKING:
    from mcpfactory_runtime.server.rates import Allowance, Rates
    from mcpfactory_runtime.store.base import SharedStore

__all__ = ["SharedRates", "take_shared"]

log = logging.getLogger("mcpfactory_runtime")

_ATTEMPTS: Final = 100  # to be the one who takes a token while others take some


class SharedRates:
    """The rates of clients without a session. A session is in one process, and so is its rate.

    A rate that nobody chose is each process's own: it is there for what no honest client does, and two trips to the store for
    every call would cost more than it saves.

    Args:
        rates: of the server.
        store: what the processes share.
        now: seconds since the epoch.
    """

    def __init__(self, rates: Rates, store: SharedStore, now: Callable[[], float] = time.time) -> None:
        self._rates, self._store, self._now = rates, store, now

    def of(self, client: str, method: str) -> tuple[Allowance, Callable[[], Awaitable[None]] | None]:
        """Return what a client may do in this process, and what admits its request first, if the others must be asked."""
        allowance, kind = self._rates.of(client), kind_of(method)
        if kind is None or self._rates.chosen(kind) is None:
            return allowance, None
        return allowance.without(kind), partial(self._admit, allowance, client, kind)

    async def _admit(self, allowance: Allowance, client: str, kind: str) -> None:
        """Take a token for a request; of this process alone where the store fails.

        Raises:
            McpError: RATE_LIMITED: there is none.
        """
        rate = self._rates.chosen(kind)
        assert rate is not None
        try:
            wait = await take_shared(self._store, f"\0{kind}\0{client}", rate, self._now)
        except StoreError as error:
            log.warning("the rate of %s is counted by this process alone: %s", kind, error)
            getattr(allowance, kind).admit(kind)
        else:
            if wait:
                raise refusal(kind, rate, wait)


async def take_shared(store: SharedStore, name: str, rate: tuple[int, int], clock: Callable[[], float]) -> float:
    """Take a token of a bucket that several processes share, and return 0; without one the seconds to wait.

    The bucket is forgotten when it would be full again, so that a missing one is full.

    Raises:
        StoreError: the store cannot be used.
    """
    count, seconds = rate
    digest = sha256(f"{name}\0{count}/{seconds}".encode()).hexdigest()
    space = f"rate/{digest}"
    for _ in range(_ATTEMPTS):
        kept, now = await store.get(space, ""), clock()
        left, seen = (float(count), now) if kept is None else (float(word) for word in kept.split())
        left = min(count, left + max(now - seen, 0.0) * count / seconds)
        if left < 1 - ROUNDING:
            return (1 - left) * seconds / count
        state = f"{left - 1!r} {max(now, seen)!r}".encode()
        if await store.write(space, [("", state)], seconds=seconds, expected=Expected("", kept)):
            return 0.0
    raise StoreError(f"{_ATTEMPTS} others took tokens meanwhile")
