"""`make bench`: runs ours and the peers interleaved on the same work and prints medians, spread and ratios.

  python -m benchmarks                 all parts
  python -m benchmarks startup stdio   some parts
  python -m benchmarks --rounds 3      fewer rounds
Results are saved below benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks import generated, http, stdio
from benchmarks.peers import PEERS, Peer, prepare

RESULTS = Path(__file__).resolve().parent / "results"
SPECS = Path(__file__).resolve().parents[2] / "shared/specs"
OURS, FLOOR = "mcpfactory", "bare starlette"
Samples = dict[str, dict[str, list[float]]]


def _startup(samples: Samples, name: str, command: list[str]) -> None:
    samples["spawn → first answer, ms"][name].append(stdio.startup(command))


def _stdio(samples: Samples, name: str, command: list[str]) -> None:
    rate, memory = stdio.one_at_a_time(command)
    samples["stdio, one at a time, calls/s"][name].append(rate)
    samples["memory of the stdio server, MiB"][name].append(memory)
    samples["stdio, 50 in flight, calls/s"][name].append(stdio.in_flight(command))


def _http(samples: Samples, name: str, command: list[str]) -> None:
    with http.serving(command) as url:
        for modern, lifecycle in ((False, "legacy"), (True, "modern")):
            for connections in (1, 32):
                rate = http.calls_per_second(url, connections, modern=modern)
                if rate:
                    samples[f"HTTP, {connections} connections, {lifecycle}, calls/s"][name].append(rate)


def _memory(samples: Samples, name: str, command: list[str]) -> None:
    if name == OURS:  # a million calls of the slowest peer would take a quarter of an hour
        early, late = stdio.growth(command)
        samples["memory after 10,000 calls, MiB"][name].append(early)
        samples["memory after 1,000,000 calls, MiB"][name].append(late)


def _many(samples: Samples, name: str, _command: list[str]) -> None:
    if name == OURS:
        for operations in (1, 1000):
            samples[f"spawn → first answer with {operations} generated tools, ms"][name].append(
                generated.startup_with_tools(operations)
            )


def _upstream(samples: Samples, name: str, command: list[str]) -> None:
    if name == FLOOR:
        samples["a tool that calls an upstream, 32 in flight, calls/s"][OURS].append(generated.upstream_calls(command))
        samples["a tool that calls an upstream, 32 in flight, calls/s"]["bare httpx client"].append(
            generated.upstream_floor(command)
        )


def _generation(samples: Samples, name: str, command: list[str]) -> None:
    if name == OURS:
        for operations in (10, 100, 1000, 10000):
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder, "api.json")
                source.write_text(json.dumps(generated.document(operations)))
                samples[f"a server from {operations} operations, s"][name].append(generated.making(source)[0])
    github = SPECS / "github.json"
    if not github.exists():
        print("the document github.json is not in ../shared/specs: its part is left out", file=sys.stderr)
    elif name in (OURS, "FastMCP"):
        seconds, peak = generated.making(github) if name == OURS else generated.peer_loading(command[0], github)
        samples["github.json: made (ours) or loaded (FastMCP), s"][name].append(seconds)
        samples["github.json: peak memory, MiB"][name].append(peak)


PARTS: dict[str, Callable[[Samples, str, list[str]], None]] = {
    "startup": _startup,
    "stdio": _stdio,
    "http": _http,
    "memory": _memory,
    "many": _many,
    "upstream": _upstream,
    "generation": _generation,
}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    wish = parser.parse_args()
    if unknown := set(wish.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(unknown)}")
    places = prepare()
    samples: Samples = defaultdict(lambda: defaultdict(list))
    for round_number in range(wish.rounds):
        for part in wish.parts or PARTS:
            for peer in PEERS:
                if peer.stdio or part in ("http", "upstream"):
                    print(
                        f"round {round_number + 1} of {wish.rounds}: {part}: {peer.name}", file=sys.stderr, flush=True
                    )
                    PARTS[part](samples, peer.name, _command(peer, places))
    _print(samples)
    _save(samples)


def _command(peer: Peer, places: dict[str, str]) -> list[str]:
    return [word.format(**places) for word in peer.command]


def _print(samples: Samples) -> None:
    for workload, by_peer in samples.items():
        ours = statistics.median(by_peer[OURS])
        print(f"\n{workload}")
        for name, values in by_peer.items():
            middle = statistics.median(values)
            spread = (max(values) - min(values)) / middle
            print(f"  {name:16} {middle:10.1f}   spread {spread:4.0%}   ours / this = {ours / middle:.2f}")


def _save(samples: Samples) -> None:
    RESULTS.mkdir(exist_ok=True)
    facts = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    (RESULTS / "latest.json").write_text(json.dumps({"machine": facts, "samples": samples}, indent=1))
    print(f"\n{json.dumps(facts)}; saved in benchmarks/results/latest.json")


if __name__ == "__main__":
    main()
