"""The workloads as one table: a part of `make bench` → what it does with one peer's server, and what it notes down."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import apis
from benchmarks.bench import gateway, generated, http, stdio, workspace
from benchmarks.trials.redis_server import HINT, install_redis
from benchmarks.trials.two_processes import throughput

OURS, PYTHON, FASTMCP, TYPESCRIPT = "mcpfactory", "Python SDK", "FastMCP", "TypeScript SDK"
OURS_DEF, OURS_INLINE = "mcpfactory, `def`", "mcpfactory, `def` inline"
PYTHON_DEF, FASTMCP_DEF = "Python SDK, `def`", "FastMCP, `def`"
PYTHON_PLAIN = "Python SDK, as it comes"
DIRECT, BETWEEN = "directly", "directly, between two `cat`"
BARE, ECHO, POOL = "bare starlette", "cat (no protocol)", "bare httpx client"
COMPUTING = Path(__file__).resolve().parent / "peers/servers/computing.py"
SIZES = (10, 100, 1000, 10000)
SERVERS = 1000


@dataclass(frozen=True)
class Quantity:
    """Something that is measured: how it reads in a table, its unit, and how it was done."""

    title: str
    unit: str
    how: str


QUANTITIES = {
    "start": Quantity(
        "time from process start to the first tool result",
        "ms",
        "spawn the process, handshake, call `add` once; every time a new process",
    ),
    "start-1": Quantity(
        "start time of a server with 1 generated tool", "ms", "the same, in a server made from an API document"
    ),
    "start-1000": Quantity("start time of a server with 1,000 generated tools", "ms", "the same"),
    "serial-core": Quantity(
        "sequential stdio calls with client and server on one core",
        "calls/s",
        "4,000 calls of `add`, each after the answer to the one before; both processes kept on one core, so that what is "
        "measured is the server's work and not how fast the machine wakes another core",
    ),
    "serial": Quantity(
        "sequential stdio calls with client and server on all cores",
        "calls/s",
        "the same without keeping them together; `cat` shows what the machine's wake-ups leave at most",
    ),
    "flight": Quantity(
        "50 concurrent stdio calls", "calls/s", "10,000 calls of `add`, each answer lets the next one go"
    ),
    "bursts": Quantity(
        "stdio calls in bursts of 50",
        "calls/s",
        "10,000 calls of `add`: fifty requests in one write, then fifty answers, and so on",
    ),
    "memory": Quantity(
        "resident memory of a stdio server with one tool", "MiB", "after 8,000 calls, with its children"
    ),
    "memory-early": Quantity("resident memory after 10,000 calls", "MiB", "50 in flight, over stdio"),
    "memory-late": Quantity("resident memory after 1,000,000 calls", "MiB", "the same process later"),
    "legacy-1": Quantity(
        "HTTP calls through 1 connection in the handshake lifecycle", "calls/s", "wrk for 3 s, one thread, keep-alive"
    ),
    "legacy-32": Quantity("HTTP calls through 32 connections in the handshake lifecycle", "calls/s", "the same"),
    "modern-1": Quantity("HTTP calls through 1 connection in the per-request lifecycle", "calls/s", "the same"),
    "modern-32": Quantity("HTTP calls through 32 connections in the per-request lifecycle", "calls/s", "the same"),
    "compute-1": Quantity(
        "HTTP calls of a tool that computes for about a millisecond, with 1 worker process",
        "calls/s",
        "32 connections; the tool counts to 20,000, so that the load generator needs next to nothing of the two cores",
    ),
    "compute-2": Quantity(
        "HTTP calls of a tool that computes for about a millisecond, with 2 worker processes", "calls/s", "the same"
    ),
    "workers-1": Quantity(
        "HTTP calls of `add` through 32 connections to 1 worker process", "calls/s", "wrk takes a part of the cores"
    ),
    "workers-2": Quantity("HTTP calls of `add` through 32 connections to 2 worker processes", "calls/s", "the same"),
    "upstream": Quantity(
        "32 concurrent calls of a tool that calls an HTTP API",
        "calls/s",
        "4,000 calls over stdio of a tool generated from a document, each an HTTP request to a bare starlette; compared "
        "with 4,000 requests of a pooled httpx client without any server",
    ),
    "connections": Quantity("TCP connections that these 4,000 calls opened", "", "counted by the API's own server"),
    "gate-start": Quantity(
        "time from the start of a gateway with 20 servers to its tool list",
        "ms",
        "one gateway, which starts none of them; directly: twenty servers are started and listed one after the other",
    ),
    "gate-first": Quantity(
        "time of the first tool call through a gateway, which starts the tool's server",
        "ms",
        "its server is started meanwhile",
    ),
    "gate-asleep": Quantity(
        "resident memory of a gateway while its 20 servers are not running", "MiB", "after listing"
    ),
    "gate-awake": Quantity(
        "resident memory of a gateway and its 20 running servers",
        "MiB",
        "with them; directly: the twenty servers alone",
    ),
    "gate-serial-core": Quantity(
        "sequential calls through a gateway with all processes on one core",
        "calls/s",
        "4,000 calls of `add` over stdio, as for one server; between two `cat` there are as many wake-ups as with a gateway, "
        "and no work",
    ),
    "gate-serial": Quantity(
        "sequential calls through a gateway with all processes on all cores", "calls/s", "the same"
    ),
    "gate-flight": Quantity(
        "50 concurrent calls through a gateway", "calls/s", "20,000 calls, all to one server, which was started before"
    ),
    **{
        f"processes-{count}-{number}": Quantity(
            f"HTTP calls {how}, served by {count} process{'es' if count > 1 else ''} with Redis",
            "calls/s",
            "a tool that does nothing, by 32 clients with a connection each, for 3 s; clients and Redis run on the same machine",
        )
        for count in throughput.COUNTS
        for number, how in enumerate(throughput.WAYS)
    },
    "github": Quantity(
        "time to make a server from github.json, or for FastMCP to load github.json",
        "s",
        "from a cold process to the written package; FastMCP: from a cold process to the list of tools",
    ),
    "github-memory": Quantity("peak memory while a server is made from github.json", "MiB", "of that process"),
    **{
        f"space-{key}": Quantity(
            f"time of `mcpfactory {' '.join(command)}` with 1,000 up-to-date servers",
            "s",
            "from a cold process to its end; 20 source files, four candidates and 48 events of history a server",
        )
        for key, command in workspace.COMMANDS.items()
    },
    **{
        f"space-{key}-memory": Quantity(
            f"peak memory of `mcpfactory {' '.join(command)}` with 1,000 servers", "MiB", ""
        )
        for key, command in workspace.COMMANDS.items()
    },
    "space-first": Quantity(
        "time of the first `mcpfactory pipeline run` in a fresh clone with 1,000 servers",
        "s",
        "it reads every history once, and records those that match their state",
    ),
    "space-changed": Quantity(
        "number of servers in the plan after one of 1,000 servers changed", "", "counted in `plan --json`"
    ),
    **{
        f"make-{n}": Quantity(f"time to make a server from {n:,} operations", "s", "`mcpfactory new`, cold")
        for n in SIZES
    },
}

Note = Callable[[str, str, float], None]
"""Takes a quantity's key, who, and a value."""


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Attributes:
        run: does it once for one peer.
        peers: whose servers it is done with.
        repeats: how often in one round; peers alternate within each.
    """

    run: Callable[[Note, str, list[str]], None]
    peers: tuple[str, ...]
    repeats: int = 1


def _startup(note: Note, name: str, command: list[str]) -> None:
    note("start", name, stdio.startup(command))


def _stdio(note: Note, name: str, command: list[str]) -> None:
    if name == ECHO:
        note("serial-core", name, stdio.echo(one_core=True))
        note("serial", name, stdio.echo())
        return
    note("serial-core", name, stdio.one_at_a_time(command, one_core=True)[0])
    rate, memory = stdio.one_at_a_time(command, calls=8000)
    note("serial", name, rate)
    note("memory", name, memory)
    note("flight", name, stdio.in_flight(command))
    note("bursts", name, stdio.in_bursts(command))


def _http(note: Note, name: str, command: list[str]) -> None:
    with http.serving(command) as served:
        for lifecycle in ("legacy", "modern"):
            for connections in (1, 32):
                rate = http.calls_per_second(served.url, connections, modern=lifecycle == "modern")
                if rate:
                    note(f"{lifecycle}-{connections}", name, rate)


def _workers(note: Note, name: str, command: list[str]) -> None:
    for count in (1, 2):
        start = [sys.executable, str(COMPUTING)] if name == OURS else command
        with http.serving([*start, "--workers", str(count)]) as served:
            if name == OURS:
                note(f"compute-{count}", name, http.calls_per_second(served.url, 32, modern=True, tool="count"))
            note(f"workers-{count}", name, http.calls_per_second(served.url, 32, modern=True))


def _memory(note: Note, name: str, command: list[str]) -> None:
    early, late = stdio.growth(command)
    note("memory-early", name, early)
    note("memory-late", name, late)


def _many(note: Note, name: str, _command: list[str]) -> None:
    for operations in (1, 1000):
        for spent in generated.startups_with_tools(operations):
            note(f"start-{operations}", name, spent)


def _upstream(note: Note, name: str, command: list[str]) -> None:
    if name == OURS:
        rate, connections = generated.upstream_calls()
        note("upstream", name, rate)
        note("connections", name, connections)
    else:
        note("upstream", POOL, generated.upstream_floor(command))


def _generation(note: Note, name: str, command: list[str]) -> None:
    if name == OURS:
        for operations in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder, "api.json")
                source.write_text(json.dumps(generated.document(operations)))
                note(f"make-{operations}", name, generated.measure_generation(source)[0])
    try:
        github = apis.path("github")
    except apis.DocumentError as error:
        print(f"what github.json costs is left out: {error}", file=sys.stderr)
        return
    seconds, peak = generated.measure_generation(github) if name == OURS else generated.peer_loading(command[0], github)
    note("github", name, seconds)
    note("github-memory", name, peak)


def _pipeline(note: Note, name: str, _command: list[str]) -> None:
    with workspace.prepared(SERVERS) as folder:
        note("space-first", name, workspace.cost(folder, "pipeline", "run")[0])
        for key, command in workspace.COMMANDS.items():
            seconds, memory = workspace.cost(folder, *command)
            note(f"space-{key}", name, seconds)
            note(f"space-{key}-memory", name, memory)
        note("space-changed", name, workspace.only_the_changed(folder))


def _gateway(note: Note, name: str, _command: list[str]) -> None:
    gateway.measure(note, name, DIRECT, BETWEEN)


def _processes(note: Note, name: str, _command: list[str]) -> None:
    if not install_redis():
        print(f"what several processes do is left out: {HINT}", file=sys.stderr)
        return
    for count in throughput.COUNTS:
        found = throughput.measured(count, 3.0)
        for number, how in enumerate(throughput.WAYS):
            if how in found:
                note(f"processes-{count}-{number}", name, found[how])


ALL: Sequence[str] = (OURS, PYTHON, FASTMCP, TYPESCRIPT)
PARTS = {
    "startup": Part(_startup, (*ALL,), repeats=4),
    "many": Part(_many, (OURS,)),
    "stdio": Part(_stdio, (*ALL, OURS_DEF, OURS_INLINE, PYTHON_DEF, FASTMCP_DEF, ECHO), repeats=2),
    "http": Part(_http, (*ALL, PYTHON_PLAIN, BARE)),
    "workers": Part(_workers, (OURS, BARE), repeats=2),
    "upstream": Part(_upstream, (OURS, BARE), repeats=2),
    "memory": Part(_memory, (OURS,)),
    "generation": Part(_generation, (OURS, FASTMCP)),
    "pipeline": Part(_pipeline, (OURS,)),
    "gateway": Part(_gateway, (OURS,)),
    "processes": Part(_processes, (OURS,)),  # no peer has sessions that more than one process knows
}
