"""`make bench`: runs ours and the peers interleaved on the same work and prints medians, spread, ratios and targets.

  python -m benchmarks                     all parts
  python -m benchmarks startup stdio       some parts
  python -m benchmarks --rounds 3          fewer rounds
  python -m benchmarks --page              and puts the tables into docs/explanation/performance.md; rows of parts that were left out stay
  python -m benchmarks codebase               the source tree in figures (see benchmarks/codebase)
  python -m benchmarks state               what status and inbox cost after 100,000 events, and with 1,000 servers (see benchmarks/bench/state.py)
  python -m benchmarks dashboard           how soon each page of the dashboard comes with 1,000 servers (see benchmarks/bench/dashboard.py)
  python -m benchmarks lists               tokens and load time of tool lists beside FastMCP (see benchmarks/bench/lists.py)
  python -m benchmarks search              how often search mode finds the right tool (see benchmarks/bench/search.py)
Everything measured is saved in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from benchmarks.bench import dashboard, lists, report, search, state
from benchmarks.bench.peers import PEERS, prepare
from benchmarks.bench.workloads import ECHO, OURS, PARTS
from benchmarks.codebase import __main__ as house

Samples = dict[str, dict[str, list[float]]]

_COMMANDS: Final[dict[str, Callable[[list[str]], int | None]]] = {
    "dashboard": dashboard.main,
    "codebase": house.main,
    "lists": lists.main,
    "search": search.main,
    "state": state.main,
}


def main() -> None:
    """Measures and prints."""
    command = _COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is not None:
        sys.exit(command(sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="write docs/explanation/performance.md")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(unknown)}")
    strangers = not options.parts or any(set(PARTS[name].peers) - {OURS} for name in options.parts)
    places = prepare() if strangers else dict.fromkeys(("python", "ours", "node", "home"), sys.executable)
    commands = {peer.name: [word.format(**places) for word in peer.command] for peer in PEERS} | {ECHO: []}
    samples = _measure(options.parts or list(PARTS), options.rounds, commands)
    print(report.as_text(samples))
    print(f"\n{json.dumps(report.facts())}; saved in {report.save(samples).relative_to(report.PAGE.parents[2])}")
    if options.page:
        report.fill(samples)


def _measure(parts: list[str], rounds: int, commands: dict[str, list[str]]) -> Samples:
    """Every part, `rounds` times: peers alternate, so that what disturbs the machine disturbs all of them."""
    samples: Samples = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for name in parts:
            part = PARTS[name]
            for _ in range(part.repeats):
                for peer in part.peers:
                    print(f"round {number + 1} of {rounds}: {name}: {peer}", file=sys.stderr, flush=True)
                    part.run(lambda key, who, value: samples[key][who].append(value), peer, commands[peer])
    return samples


if __name__ == "__main__":
    main()
