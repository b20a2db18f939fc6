"""The targets as one table: which ratio of medians, and what it has to be."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.bench.workloads import (
    BARE,
    DIRECT,
    FASTMCP,
    OURS,
    OURS_DEF,
    OURS_INLINE,
    POOL,
    PYTHON,
    PYTHON_PLAIN,
    TYPESCRIPT,
)
from benchmarks.bench.workspace import COMMANDS

Samples = Mapping[str, Mapping[str, list[float]]]


@dataclass(frozen=True)
class Target:
    """`numerator / denominator` of medians; each is (quantity, who).

    Attributes:
        text: what is promised.
        numerator: the one that is judged.
        denominator: what it is held against; None judges the figure itself.
        at_most: the promise, where less is better; else `at_least`.
    """

    text: str
    numerator: tuple[str, str]
    denominator: tuple[str, str] | None = None
    at_most: float | None = None
    at_least: float | None = None

    def figure(self, samples: Samples) -> float | None:
        """What was measured; None where a part of it was not."""
        above = median(samples, *self.numerator)
        below = 1.0 if self.denominator is None else median(samples, *self.denominator)
        return above / below if above is not None and below else None

    def met(self, figure: float) -> bool:
        """Whether the promise is kept."""
        return (self.at_most is None or figure <= self.at_most) and (self.at_least is None or figure >= self.at_least)

    @property
    def bound(self) -> str:
        """The promise as text."""
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


def median(samples: Samples, quantity: str, who: str) -> float | None:
    """The median of a quantity; None where it was not measured."""
    values = samples.get(quantity, {}).get(who)
    return statistics.median(values) if values else None


def _http(text: str, quantity: str) -> list[Target]:
    return [
        Target(f"{text}, relative to the TypeScript SDK", (quantity, OURS), (quantity, TYPESCRIPT), at_least=2.5),
        Target(
            f"{text}, relative to the Python SDK with JSON responses", (quantity, OURS), (quantity, PYTHON), at_least=15
        ),
        Target(
            f"{text}, relative to the Python SDK with its defaults",
            (quantity, OURS),
            (quantity, PYTHON_PLAIN),
            at_least=15,
        ),
        Target(f"{text}, relative to bare starlette", (quantity, OURS), (quantity, BARE), at_least=0.4),
    ]


TARGETS = (
    Target("start time, relative to the TypeScript SDK", ("start", OURS), ("start", TYPESCRIPT), at_most=1.0),
    Target("start time, relative to the Python SDK", ("start", OURS), ("start", PYTHON), at_most=0.15),
    Target("start time with 1,000 tools, relative to one tool", ("start-1000", OURS), ("start-1", OURS), at_most=1.3),
    Target("stdio calls/s, one at a time, one core, relative to the TypeScript SDK", ("serial-core", OURS), ("serial-core", TYPESCRIPT), at_least=1.3),
    Target("stdio calls/s, one at a time, one core, relative to the Python SDK", ("serial-core", OURS), ("serial-core", PYTHON), at_least=8),
    Target("stdio calls/s, one at a time, all cores, relative to the TypeScript SDK", ("serial", OURS), ("serial", TYPESCRIPT), at_least=1.3),
    Target("stdio calls/s, one at a time, all cores, relative to the Python SDK", ("serial", OURS), ("serial", PYTHON), at_least=8),
    Target("stdio calls/s, 50 in flight, relative to the TypeScript SDK", ("flight", OURS), ("flight", TYPESCRIPT), at_least=1.0),
    Target("stdio calls/s, bursts of 50, relative to the TypeScript SDK", ("bursts", OURS), ("bursts", TYPESCRIPT), at_least=1.0),
    Target("stdio calls/s of a `def` tool, one at a time, all cores, relative to the TypeScript SDK", ("serial", OURS_DEF), ("serial", TYPESCRIPT), at_least=1.0),
    Target("stdio calls/s of a `def` tool, 50 in flight, relative to `async def`", ("flight", OURS_DEF), ("flight", OURS), at_least=0.8),
    Target("stdio calls/s of a `def` tool, bursts of 50, relative to `async def`", ("bursts", OURS_DEF), ("bursts", OURS), at_least=0.8),
    Target("stdio calls/s of an inline `def` tool, one at a time, one core, relative to `async def`", ("serial-core", OURS_INLINE), ("serial-core", OURS), at_least=0.95),
    Target("stdio calls/s of an inline `def` tool, bursts of 50, relative to `async def`", ("bursts", OURS_INLINE), ("bursts", OURS), at_least=0.95),
    Target("gateway calls/s, one at a time, one core, relative to calls without a gateway", ("gate-serial-core", OURS), ("gate-serial-core", DIRECT), at_least=0.7),
    Target("gateway calls/s, one at a time, all cores, relative to calls without a gateway", ("gate-serial", OURS), ("gate-serial", DIRECT), at_least=0.7),
    Target("gateway calls/s, 50 in flight, relative to calls without a gateway", ("gate-flight", OURS), ("gate-flight", DIRECT), at_least=0.7),
    *_http("HTTP calls/s, 32 connections, handshake lifecycle", "legacy-32"),
    Target("HTTP calls/s, 32 connections, per-request lifecycle, relative to the Python SDK", ("modern-32", OURS), ("modern-32", PYTHON), at_least=15),
    Target("HTTP calls/s, 32 connections, per-request lifecycle, relative to bare starlette", ("modern-32", OURS), ("modern-32", BARE), at_least=0.4),
    Target("calls/s of a computing tool with 2 worker processes, relative to 1 process", ("compute-2", OURS), ("compute-1", OURS), at_least=1.7),
    Target("calls/s of `add` with 2 worker processes, relative to 1 process", ("workers-2", OURS), ("workers-1", OURS), at_least=1.7),
    Target("memory, relative to the Python SDK", ("memory", OURS), ("memory", PYTHON), at_most=0.45),
    Target("memory after 1,000,000 calls, relative to 10,000 calls", ("memory-late", OURS), ("memory-early", OURS), at_most=1.05),
    Target("time to make a server from github.json, relative to FastMCP's time to load github.json", ("github", OURS), ("github", FASTMCP), at_most=0.5),
    Target("peak memory while a server is made from github.json, MiB", ("github-memory", OURS), at_most=400),
    Target("time to make a server from 10,000 operations, relative to 1,000 operations", ("make-10000", OURS), ("make-1000", OURS), at_most=10),
    Target("time to make a server from 1,000 operations, relative to 100 operations", ("make-1000", OURS), ("make-100", OURS), at_most=10),
    Target("calls/s of a tool that calls an API, relative to an HTTP client with a connection pool", ("upstream", OURS), ("upstream", POOL), at_least=0.8),
    *(
        Target(f"time of `mcpfactory {' '.join(command)}` for 1,000 up-to-date servers, seconds", (f"space-{key}", OURS), at_most=2.0)
        for key, command in COMMANDS.items()
    ),
    Target("number of planned servers after a change of one of 1,000 servers", ("space-changed", OURS), at_most=1),
    Target("TCP connections for 4,000 API calls, 32 in flight", ("connections", OURS), at_most=32),
)  # fmt: skip
