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
        Target(f"{text}, relative to a bare Starlette application", (quantity, OURS), (quantity, BARE), at_least=0.4),
    ]


TARGETS = (
    Target("start time of a stdio server, relative to the TypeScript SDK", ("start", OURS), ("start", TYPESCRIPT), at_most=1.0),
    Target("start time of a stdio server, relative to the Python SDK", ("start", OURS), ("start", PYTHON), at_most=0.15),
    Target("start time of a server with 1,000 tools, relative to a server with one tool", ("start-1000", OURS), ("start-1", OURS), at_most=1.3),
    Target("throughput of sequential stdio calls on one core, relative to the TypeScript SDK", ("serial-core", OURS), ("serial-core", TYPESCRIPT), at_least=1.3),
    Target("throughput of sequential stdio calls on one core, relative to the Python SDK", ("serial-core", OURS), ("serial-core", PYTHON), at_least=8),
    Target("throughput of sequential stdio calls on all cores, relative to the TypeScript SDK", ("serial", OURS), ("serial", TYPESCRIPT), at_least=1.3),
    Target("throughput of sequential stdio calls on all cores, relative to the Python SDK", ("serial", OURS), ("serial", PYTHON), at_least=8),
    Target("throughput of 50 concurrent stdio calls, relative to the TypeScript SDK", ("flight", OURS), ("flight", TYPESCRIPT), at_least=1.0),
    Target("throughput of stdio calls in bursts of 50, relative to the TypeScript SDK", ("bursts", OURS), ("bursts", TYPESCRIPT), at_least=1.0),
    Target("throughput of sequential stdio calls of a `def` tool on all cores, relative to the TypeScript SDK", ("serial", OURS_DEF), ("serial", TYPESCRIPT), at_least=1.0),
    Target("throughput of 50 concurrent stdio calls of a `def` tool, relative to an `async def` tool", ("flight", OURS_DEF), ("flight", OURS), at_least=0.8),
    Target("throughput of stdio calls of a `def` tool in bursts of 50, relative to an `async def` tool", ("bursts", OURS_DEF), ("bursts", OURS), at_least=0.8),
    Target("throughput of sequential stdio calls of an inline `def` tool on one core, relative to an `async def` tool", ("serial-core", OURS_INLINE), ("serial-core", OURS), at_least=0.95),
    Target("throughput of stdio calls of an inline `def` tool in bursts of 50, relative to an `async def` tool", ("bursts", OURS_INLINE), ("bursts", OURS), at_least=0.95),
    Target("throughput of sequential calls through a gateway on one core, relative to direct calls", ("gate-serial-core", OURS), ("gate-serial-core", DIRECT), at_least=0.7),
    Target("throughput of sequential calls through a gateway on all cores, relative to direct calls", ("gate-serial", OURS), ("gate-serial", DIRECT), at_least=0.7),
    Target("throughput of 50 concurrent calls through a gateway, relative to direct calls", ("gate-flight", OURS), ("gate-flight", DIRECT), at_least=0.7),
    *_http("throughput of 32 HTTP connections in the handshake lifecycle", "legacy-32"),
    Target("throughput of 32 HTTP connections in the per-request lifecycle, relative to the Python SDK", ("modern-32", OURS), ("modern-32", PYTHON), at_least=15),
    Target("throughput of 32 HTTP connections in the per-request lifecycle, relative to a bare Starlette application", ("modern-32", OURS), ("modern-32", BARE), at_least=0.4),
    Target("throughput of a CPU-bound tool with 2 worker processes, relative to 1 worker process", ("compute-2", OURS), ("compute-1", OURS), at_least=1.7),
    Target("throughput of the tool `add` with 2 worker processes, relative to 1 worker process", ("workers-2", OURS), ("workers-1", OURS), at_least=1.7),
    Target("memory of a stdio server, relative to the Python SDK", ("memory", OURS), ("memory", PYTHON), at_most=0.45),
    Target("memory of a server after 1,000,000 calls, relative to its memory after 10,000 calls", ("memory-late", OURS), ("memory-early", OURS), at_most=1.05),
    Target("time to make a server from github.json, relative to FastMCP's time to load github.json", ("github", OURS), ("github", FASTMCP), at_most=0.5),
    Target("peak memory in MiB while a server is made from github.json", ("github-memory", OURS), at_most=400),
    Target("time to make a server from 10,000 operations, relative to the time for 1,000 operations", ("make-10000", OURS), ("make-1000", OURS), at_most=10),
    Target("time to make a server from 1,000 operations, relative to the time for 100 operations", ("make-1000", OURS), ("make-100", OURS), at_most=10),
    Target("throughput of a tool that calls an API, relative to a pooled HTTP client that calls the API directly", ("upstream", OURS), ("upstream", POOL), at_least=0.8),
    *(
        Target(f"seconds that `mcpfactory {' '.join(command)}` takes with 1,000 up-to-date servers", (f"space-{key}", OURS), at_most=2.0)
        for key, command in COMMANDS.items()
    ),
    Target("number of servers in the plan after one of 1,000 servers changed", ("space-changed", OURS), at_most=1),
    Target("number of TCP connections for 4,000 API calls, of which 32 run at a time", ("connections", OURS), at_most=32),
)  # fmt: skip
