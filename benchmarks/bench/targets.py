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
        Target(f"{text} vs. TypeScript SDK", (quantity, OURS), (quantity, TYPESCRIPT), at_least=2.5),
        Target(f"{text} vs. Python SDK, JSON answers", (quantity, OURS), (quantity, PYTHON), at_least=15),
        Target(f"{text} vs. Python SDK with its defaults", (quantity, OURS), (quantity, PYTHON_PLAIN), at_least=15),
        Target(f"{text} vs. bare starlette", (quantity, OURS), (quantity, BARE), at_least=0.4),
    ]


TARGETS = (
    Target("start vs. TypeScript SDK", ("start", OURS), ("start", TYPESCRIPT), at_most=1.0),
    Target("start vs. Python SDK", ("start", OURS), ("start", PYTHON), at_most=0.15),
    Target("start with 1,000 tools vs. our own one-tool server", ("start-1000", OURS), ("start-1", OURS), at_most=1.3),
    Target("stdio, one at a time, one core vs. TypeScript SDK", ("serial-core", OURS), ("serial-core", TYPESCRIPT), at_least=1.3),
    Target("stdio, one at a time, one core vs. Python SDK", ("serial-core", OURS), ("serial-core", PYTHON), at_least=8),
    Target("stdio, one at a time, all cores vs. TypeScript SDK", ("serial", OURS), ("serial", TYPESCRIPT), at_least=1.3),
    Target("stdio, one at a time, all cores vs. Python SDK", ("serial", OURS), ("serial", PYTHON), at_least=8),
    Target("stdio, 50 in flight vs. TypeScript SDK", ("flight", OURS), ("flight", TYPESCRIPT), at_least=1.0),
    Target("stdio, bursts of 50 vs. TypeScript SDK", ("bursts", OURS), ("bursts", TYPESCRIPT), at_least=1.0),
    Target("`def`, one at a time, all cores vs. TypeScript SDK", ("serial", OURS_DEF), ("serial", TYPESCRIPT), at_least=1.0),
    Target("`def`, 50 in flight vs. `async def`", ("flight", OURS_DEF), ("flight", OURS), at_least=0.8),
    Target("`def`, bursts of 50 vs. `async def`", ("bursts", OURS_DEF), ("bursts", OURS), at_least=0.8),
    Target("`def` inline, one at a time, one core vs. `async def`", ("serial-core", OURS_INLINE), ("serial-core", OURS), at_least=0.95),
    Target("`def` inline, bursts of 50 vs. `async def`", ("bursts", OURS_INLINE), ("bursts", OURS), at_least=0.95),
    Target("gateway, one at a time, one core vs. without gateway", ("gate-serial-core", OURS), ("gate-serial-core", DIRECT), at_least=0.7),
    Target("gateway, one at a time, all cores vs. without gateway", ("gate-serial", OURS), ("gate-serial", DIRECT), at_least=0.7),
    Target("gateway, 50 in flight vs. without gateway", ("gate-flight", OURS), ("gate-flight", DIRECT), at_least=0.7),
    *_http("HTTP, 32 connections, handshake lifecycle", "legacy-32"),
    Target("HTTP, 32 connections, per-request lifecycle vs. Python SDK", ("modern-32", OURS), ("modern-32", PYTHON), at_least=15),
    Target("HTTP, 32 connections, per-request lifecycle vs. bare starlette", ("modern-32", OURS), ("modern-32", BARE), at_least=0.4),
    Target("2 worker processes vs. 1 process, a tool that computes", ("compute-2", OURS), ("compute-1", OURS), at_least=1.7),
    Target("2 worker processes vs. 1 process, `add`", ("workers-2", OURS), ("workers-1", OURS), at_least=1.7),
    Target("memory vs. Python SDK", ("memory", OURS), ("memory", PYTHON), at_most=0.45),
    Target("memory after 1,000,000 calls vs. after 10,000 calls", ("memory-late", OURS), ("memory-early", OURS), at_most=1.05),
    Target("github.json: time to make a server vs. FastMCP's time to load the document", ("github", OURS), ("github", FASTMCP), at_most=0.5),
    Target("github.json: peak memory, MiB", ("github-memory", OURS), at_most=400),
    Target("time for 10,000 operations vs. for 1,000 operations", ("make-10000", OURS), ("make-1000", OURS), at_most=10),
    Target("time for 1,000 operations vs. for 100 operations", ("make-1000", OURS), ("make-100", OURS), at_most=10),
    Target("a tool that calls an API vs. bare pooled client", ("upstream", OURS), ("upstream", POOL), at_least=0.8),
    *(
        Target(f"1,000 servers, nothing to do: `mcpfactory {' '.join(command)}`, seconds", (f"space-{key}", OURS), at_most=2.0)
        for key, command in COMMANDS.items()
    ),
    Target("1,000 servers, one changed: number of planned servers", ("space-changed", OURS), at_most=1),
    Target("TCP connections for 4,000 calls of an API, 32 in flight", ("connections", OURS), at_most=32),
)  # fmt: skip
