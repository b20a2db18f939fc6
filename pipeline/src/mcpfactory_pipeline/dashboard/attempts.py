"""Wrong tokens, counted by where they come from: whoever guesses is shut out, and nobody else is. No I/O, but for the clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

__all__ = ["LoginAttempts", "caller_key"]

_SECONDS: Final = 60.0  # for which a wrong token counts
_MAX_OF_CALLER: Final = 10  # wrong tokens of one caller in that time
_MAX_OF_ALL: Final = 300  # of everybody together: who guesses from very many addresses is slow, too
_CUSTOMER: Final = 64  # bits of an IPv6 address that one customer cannot change


class LoginAttempts:
    """The wrong tokens of the last minute. There are never more than the ceiling for all, so the memory of them has an end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: deque[tuple[float, str]] = deque(maxlen=_MAX_OF_ALL)

    def refusal(self, caller: str) -> str:
        """Return in words why no token of a caller is looked at now; "" where it is."""
        since = self._clock() - _SECONDS
        lately = [known for at, known in self._wrong if at > since]
        if lately.count(caller_key(caller)) >= _MAX_OF_CALLER:
            return "too many tokens from your address were wrong"
        return "too many tokens were wrong" if len(lately) >= _MAX_OF_ALL else ""

    def count(self, caller: str) -> None:
        """Count a wrong token of a caller."""
        self._wrong.append((self._clock(), caller_key(caller)))


def caller_key(address: str) -> str:
    """Return what is counted as one caller: an IPv4 address; the network of a customer, of IPv6; one name for what is no address."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(found, IPv6Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped or ip_network((found, _CUSTOMER), strict=False))
