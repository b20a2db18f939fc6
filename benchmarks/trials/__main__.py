"""Trials of the pipeline: what dies, crowds in, grows apart, breaks or is built twice, many times over, with a seed.

  python -m benchmarks.trials                    all of them
  python -m benchmarks.trials kills --times 200  processes that are killed (-9) at random moments, then continued
  python -m benchmarks.trials crowd --times 60   eight processes on one workspace; seconds
  python -m benchmarks.trials merges --times 50  clones that worked apart, and merge
  python -m benchmarks.trials faults             disk full, read-only, clock set back, damaged files: a table
  python -m benchmarks.trials builds --times 3   the same sources in other folders, on other days: the same bytes
  python -m benchmarks.trials tags --times 2     mcpfactory itself from one tag, in clones that differ in all else: the same bytes
  python -m benchmarks.trials mcpb               bundles: made twice, judged by the official CLI, unpacked, started
  python -m benchmarks.trials oci                images: built twice, pushed to a registry, pulled back, run as nobody
  python -m benchmarks.trials docker             a Dockerfile that buildah builds
  python -m benchmarks.trials workers --times 5  workers of a dask cluster that are killed (-9) in the middle of a run
  python -m benchmarks.trials installs           what uv and pip install from production, and the bytes that were validated
  python -m benchmarks.trials installed          each way to install the factory, in an empty home, and the whole road from there
  python -m benchmarks.trials rollbacks --times 20  runs, forced runs and promotions after a rollback
  python -m benchmarks.trials publish --times 20 a real package index: published, installed with uvx, refused, killed (-9), continued
  python -m benchmarks.trials operate            an unmodified MCP client brings a server to production, in both lifecycles
  python -m benchmarks.trials releases --times 40  releases that are killed (-9) at random moments, then continued
  python -m benchmarks.trials first-push         each job of the workflows that init and ci write, by hand, as it is pushed
  python -m benchmarks.trials gate               what must not come into a channel, or be believed: the table of attempts
  python -m benchmarks.trials fork               a pull request from a fork, played out: what it steals, plants and forges; and its mutants
  python -m benchmarks.trials addresses          two FastAPI apps on loopback: each key reaches its own, whatever the environment says
  python -m benchmarks.trials several-documents  three documents of Twilio as one server, staged, each call at the right host
  python -m benchmarks.trials mutants [kills …]  promises broken on purpose: each trial must turn red for each of its mutants
  python -m benchmarks.trials two-processes --times 120  a server as two processes with Redis, one killed (-9) every five seconds; seconds
  python -m benchmarks.trials twenty-five        ten servers through 25 stages with four people's gates, by the commands of the page
  python -m benchmarks.trials adopt              five servers that nobody here wrote: adopted, in production, renewed, rolled back
  python -m benchmarks.trials n8n                a real n8n from its npm package behind servers/n8n: every operation once
  --seed N                                       other moments and choices
Each prints what it met, and the last lines are a table of figures. The exit code is 1 when a promise was broken, 3 when
something could not be tried here.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.exam.outcome import Outcome, exit_code, table
from benchmarks.trials import (
    addresses,
    adopt,
    builds,
    crowd,
    docker,
    faults,
    first_push,
    fork,
    gate,
    installed,
    installs,
    kills,
    mcpb,
    merges,
    mutants,
    n8n,
    oci,
    operate,
    publish,
    releases,
    rollbacks,
    several_documents,
    tags,
    twenty_five,
    two_processes,
    workers,
)
from benchmarks.trials.ground import environment

PARTS: dict[str, tuple[Callable[[Path, int, int], Outcome], int]] = {
    "kills": (kills.run, 200),
    "crowd": (crowd.run, 60),
    "merges": (merges.run, 50),
    "faults": (faults.run, 1),
    "builds": (builds.run, 3),
    "tags": (tags.run, 2),
    "mcpb": (mcpb.run, 2),
    "oci": (oci.run, 2),
    "docker": (docker.run, 1),
    "workers": (workers.run, 5),
    "installs": (installs.run, 1),
    "installed": (installed.run, 1),
    "rollbacks": (rollbacks.run, 20),
    "publish": (publish.run, 20),
    "operate": (operate.run, 2),
    "releases": (releases.run, 40),
    "first-push": (first_push.run, 1),
    "gate": (gate.run, 1),
    "fork": (fork.run, 1),
    "addresses": (addresses.run, 1),
    "several-documents": (several_documents.run, 1),
    "two-processes": (two_processes.run, 120),
    "twenty-five": (twenty_five.run, 10),
    "adopt": (adopt.run, 1),
    "n8n": (n8n.run, 1),
}


def main() -> None:
    """Runs the trials in temporary folders, prints their figures and ends with the worst verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--times", type=int, default=0, help="how often, or for how many seconds")
    parser.add_argument("--seed", type=int, default=7)
    wish = parser.parse_args()
    with_mutants, chosen = wish.parts[:1] == ["mutants"], wish.parts[1:]
    if unknown := set(chosen if with_mutants else wish.parts) - set(PARTS):
        parser.error(f"unknown trial: {', '.join(unknown)}")
    os.environ.update(environment())
    if with_mutants:
        sys.exit(mutants.examine({name: trial for name, (trial, _) in PARTS.items()}, chosen, wish.seed))
    outcomes = {}
    for part in wish.parts or PARTS:
        trial, usual = PARTS[part]
        print(f"== {part}", flush=True)
        with tempfile.TemporaryDirectory(prefix="trials-") as folder:
            outcomes[part] = trial(Path(folder), wish.times or usual, wish.seed)
    print(f"== in all\n{table(outcomes)}", flush=True)
    sys.exit(exit_code(outcomes))


if __name__ == "__main__":
    main()
