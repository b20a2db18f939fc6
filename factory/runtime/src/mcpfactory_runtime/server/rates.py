"""Rate limits per client: a token bucket for each kind of request or notification.

A rate is written as `COUNT/s`, `COUNT/m` or `COUNT/h`. A bucket holds at most COUNT tokens, and gains COUNT tokens per
second, minute or hour. If the bucket is empty, requests are refused, log messages are dropped, and progress
notifications are delayed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Final, TypeVar

from mcpfactory_runtime.protocol.errors import RATE_LIMITED, McpError
from mcpfactory_runtime.protocol.methods import CALL_TOOL

Clock = Callable[[], float]
Value = TypeVar("Value")

KINDS: Final[dict[str, str]] = {
    "calls": CALL_TOOL,
    "completions": "completion/complete",
    "tasks": "tasks/…",
    "logs": "notifications/message",
    "progress": "notifications/progress",
}
"""Maps each kind of rate to the limited messages."""

VARIABLE: Final = "MCPFACTORY_RATES"
"""Environment variable with the operator's rates: `calls=600/m,logs=off`."""

_ROUNDING: Final = 1e-6  # tokens; tolerance for rounding errors

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_CLIENTS: Final = 10_000  # maximum number of clients in memory


class TokenBucket:
    """Token bucket of one client for one kind of message. Use the bucket only in the event loop."""

    __slots__ = ("_clock", "_count", "_gain", "_left", "_seen")

    def __init__(self, count: int, seconds: float, clock: Clock) -> None:
        self._count = self._left = float(count)
        self._gain = count / seconds
        self._clock = clock
        self._seen = clock()

    def take(self) -> bool:
        """Take a token. Return False if the bucket is empty."""
        now = self._clock()
        self._left = min(self._count, self._left + (now - self._seen) * self._gain)
        self._seen = now
        if self._left < 1 - _ROUNDING:
            return False
        self._left -= 1
        return True

    def give_back(self) -> None:
        """Return a taken token to the bucket."""
        self._left += 1

    @property
    def wait(self) -> float:
        """Return the seconds until the next token, after `take` returned False."""
        return (1 - self._left) / self._gain

    def refusal(self, kind: str) -> McpError:
        """Return the error for a refused request, with `retryAfterMs` in the error's data."""
        rate, wait = f"{self._count:g} in {self._count / self._gain:.0f} s", ceil(self.wait * 1000)
        return McpError(
            RATE_LIMITED,
            f"Too many requests: {KINDS[kind]} is limited to {rate} for each client; try again in {wait} ms",
            {"retryAfterMs": wait, "limit": kind},
        )


class PerClientCache(dict[str, Value]):
    """Values of the 10,000 most recently used clients."""

    def __init__(self, make: Callable[[], Value]) -> None:
        super().__init__()
        self._make = make

    def of(self, client: str) -> Value:
        """Return a client's value. Create the value at the client's first use."""
        found = self.pop(client, None)
        if found is None:
            if len(self) >= _CLIENTS:
                del self[next(iter(self))]
            found = self._make()
        self[client] = found  # move the client to the end, because the first client is removed first
        return found


class ClientRateLimits:
    """Token buckets of one client by kind of message. None means no limit."""

    __slots__ = (*KINDS,)

    calls: TokenBucket | None
    completions: TokenBucket | None
    tasks: TokenBucket | None
    logs: TokenBucket | None
    progress: TokenBucket | None

    def __init__(self, limits: Mapping[str, tuple[int, int] | None], clock: Clock) -> None:
        for kind in KINDS:
            limit = limits[kind]
            setattr(self, kind, None if limit is None else TokenBucket(*limit, clock))


class Rates:
    """A server's rates, and the token buckets of clients without a session.

    Args:
        given: rate by kind. None and missing kinds mean no limit.
        clock: function that returns seconds.
    """

    def __init__(self, given: Mapping[str, str | None] | None = None, clock: Clock = time.monotonic) -> None:
        self._limits: dict[str, tuple[int, int] | None] = dict.fromkeys(KINDS)
        for kind, rate in (given or {}).items():
            self._limits[kind] = _read(kind, rate)
        self._clock = clock
        self._clients = PerClientCache(self.allowance)

    def replace(self, text: str) -> None:
        """Replace rates with the operator's rates, such as `calls=600/m,logs=off`.

        Call this method before the first client connects.
        """
        for part in filter(None, (item.strip() for item in text.split(","))):
            kind, _, rate = (word.strip() for word in part.partition("="))
            self._limits[kind] = _read(kind, rate, f"{VARIABLE}: ")

    def allowance(self) -> ClientRateLimits:
        """Return new token buckets for a session or connection."""
        return ClientRateLimits(self._limits, self._clock)

    def of(self, client: str) -> ClientRateLimits:
        """Return the token buckets of a client without a session. `client` is the client's principal or address."""
        return self._clients.of(client)


def _read(kind: str, rate: str | None, place: str = "") -> tuple[int, int] | None:
    if kind not in KINDS:
        raise ValueError(f"{place}unknown rate for {kind!r}\nhint: use one of {', '.join(KINDS)}")
    if rate is None or rate == "off":
        return None
    return read_rate(f"{place}{kind}", rate)


def read_rate(what: str, rate: str) -> tuple[int, int]:
    """Return the number of tokens and the seconds to refill the bucket."""
    count, _, unit = rate.partition("/")
    if not (count.isascii() and count.isdecimal() and int(count) and unit in _SECONDS):
        raise ValueError(f"{what}={rate!r} is not a valid rate\nhint: use 10/s, 600/m, 36000/h, or off for no limit")
    return int(count), _SECONDS[unit]
