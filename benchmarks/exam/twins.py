"""Animals of the zoo written again on the official TypeScript SDK: `validate` must judge both alike.

What the SDK does by itself is found with each twin, so it is told once, with the healthy one, and left out of the rest.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

from benchmarks.exam.outcome import Outcome, judged
from benchmarks.exam.places import ROOT
from benchmarks.peers import prepare
from mcpfactory_pipeline.checks import eras

__all__ = ["twins"]

SOURCE = ROOT / "benchmarks/peers/servers/zoo_twins.mjs"
HEALTHY = "Animal"
TWINS = (
    *("NotImplementedZoo", "HalfFinished", "Promising", "OneTrack", "OneSentence", "Wordless", "Liar", "Tracer"),
    *("Gossip", "Diarist", "Chatterbox", "Ghostwriter", "Misspelled", "Dangling", "Mute"),
)
_KEY = "ZOO_API_KEY=key-of-the-zoo-1234"
_PATIENCE = 180  # seconds for one


class Judged(NamedTuple):
    """What `validate` said of one server: its verdict, and rule → severity of what it found."""

    verdict: str
    found: dict[str, int]


def twins() -> Outcome:
    """A line for each animal: verdict and rules of the Python one and of the TypeScript one."""
    places = prepare()
    program = shutil.copy(SOURCE, places["home"])
    own = _judge([places["node"], program, HEALTHY])
    heavy = [rule for rule, severity in own.found.items() if severity >= 3]
    print(f"{HEALTHY:20} the SDK's own: {' '.join(sorted(own.found)) or 'nothing'}", flush=True)
    alike = 0
    for name in TWINS:
        here = _judge(
            [sys.executable, "-S", "-m", "tests.zoo", name, ",".join(eras.HANDSHAKES), ",".join(eras.MODERNS)]
        )
        there = _judge([places["node"], program, name])
        rules = set(here.found), set(there.found) - (set(own.found) - set(here.found))
        same = here.verdict == there.verdict and rules[0] == rules[1]
        alike += same
        told = "" if same else f"  OTHERWISE: {there.verdict}: {' '.join(sorted(rules[1]))}"
        print(f"{name:20} {here.verdict:10} {' '.join(sorted(rules[0]))}{told}", flush=True)
    return judged(f"{alike} of {len(TWINS)} animals judged alike", good=alike == len(TWINS) and not heavy)


def _judge(command: list[str]) -> Judged:
    program = [sys.executable, "-m", "mcpfactory", "validate", "--command", shlex.join(command)]
    done = subprocess.run(
        [*program, "--env", _KEY, "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE,
    )  # fmt: skip
    report = json.loads(done.stdout)
    return Judged(report["verdict"], {finding["rule"]: finding["severity"] for finding in report["findings"]})
