"""How many logins this process lets people begin: each is kept until it has ended or its time is over."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

__all__ = ["LoginCount"]

_MOST: Final = 5000  # at a time
_MOST_OF_ONE: Final = 1000  # of these from one address, so that a single stranger does not keep everybody out


class LoginCount:
    """Counts logins by address. Event loop only.

    Args:
        seconds: how long a login counts.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: deque[tuple[float, str]] = deque()  # when, and from where
        self._by_address: Counter[str] = Counter()

    def may_begin(self, address: str, now: float) -> bool:
        """Count a login that begins now; False where there are too many, of all or of this address."""
        while self._begun and self._begun[0][0] <= now - self._seconds:
            _, gone = self._begun.popleft()
            self._by_address[gone] -= 1
            if not self._by_address[gone]:
                del self._by_address[gone]
        if len(self._begun) >= _MOST or self._by_address[address] >= _MOST_OF_ONE:
            return False
        self._begun.append((now, address))
        self._by_address[address] += 1
        return True
