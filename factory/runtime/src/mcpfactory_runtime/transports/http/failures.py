"""How many bad tokens may come from one address, before the next ones are refused unseen.

To check a token costs a signature, or a question to its issuer, and whoever has none can make as many as they like. So each attempt counts
for its address until the token proves good. Tokens that proved good before are looked at in any case: who shares an address with a
stranger (a proxy, an office) goes on working.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Final

from mcpfactory_runtime.server.rates import read_rate

__all__ = ["FailureLimit", "hash_token"]

_ADDRESSES: Final = 10_000  # that are remembered; beyond, the one that was quiet for longest is forgotten
_TOKENS: Final = 10_000  # good ones that are remembered, by their hashes


class FailureLimit:
    """Counts attempts by address; a count goes down with time. Tokens are known by their hashes (`hash_token`). Event loop only.

    Args:
        rate: as `Server(rates=)` writes it, `600/m`; None or `off` for no limit.
        clock: seconds.

    Raises:
        ValueError: it is no rate.
    """

    def __init__(self, rate: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, seconds = (0, 1) if rate is None or rate == "off" else read_rate("failures", rate)
        self._gain = self._most / seconds
        self._clock = clock
        self._counts: dict[str, tuple[float, float]] = {}  # address → its count, and when that was so
        self._good: dict[bytes, None] = {}

    def attempt(self, address: str, token: bytes) -> float:
        """Count one. Returns 0 when the token may be looked at, and else the seconds until another may."""
        if not self._most or token in self._good:
            return 0.0
        count = self._count(address)
        if count + 1 > self._most:
            return (count + 1 - self._most) / self._gain
        self._keep(address, count + 1)
        return 0.0

    def good(self, address: str, token: bytes) -> None:
        """The token was good: it does not count, and will not."""
        if self._most and token not in self._good:
            self.undecided(address)
            if len(self._good) >= _TOKENS:
                del self._good[next(iter(self._good))]
            self._good[token] = None

    def bad(self, token: bytes) -> None:
        """The token was bad, though it may have been good once: the attempt stays counted."""
        self._good.pop(token, None)

    def undecided(self, address: str) -> None:
        """Nobody can say whether the token is good: the attempt does not count."""
        if self._most:
            self._keep(address, max(self._count(address) - 1, 0.0))

    def _count(self, address: str) -> float:
        count, then = self._counts.get(address, (0.0, 0.0))
        return max(count - (self._clock() - then) * self._gain, 0.0)

    def _keep(self, address: str, count: float) -> None:
        self._counts.pop(address, None)
        if len(self._counts) >= _ADDRESSES:
            del self._counts[next(iter(self._counts))]
        self._counts[address] = (count, self._clock())  # the last one now: a dict keeps its order


def hash_token(token: str) -> bytes:
    """Return what a token is remembered by."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
