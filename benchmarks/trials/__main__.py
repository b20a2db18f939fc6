"""Trials of the pipeline: processes that are killed, concurrent commands, faults, attacks, installations; with a seed.

  python -m benchmarks.trials                    all of them
  python -m benchmarks.trials kills --times 200  processes that are killed (-9) at random moments, then continued
  python -m benchmarks.trials crowd --times 60   eight processes on one workspace; seconds
  python -m benchmarks.trials faults             disk full, read-only, clock set back, damaged files: a table
  python -m benchmarks.trials installed          each way to install the factory, in an empty home, and the whole road from there
  python -m benchmarks.trials first-push         each job of the workflows that init and ci write, by hand, as it is pushed
  python -m benchmarks.trials review             pull requests, a merge queue and results on a protected branch: each job by hand
  python -m benchmarks.trials gate               what must not come into a channel, or be believed: the table of attempts
  python -m benchmarks.trials fork               a pull request from a fork, played out: what it steals, plants and forges; and its mutants
  python -m benchmarks.trials team --times 100   two developers and CI, with merges of Git; steps
  python -m benchmarks.trials mutants [kills …]  promises broken on purpose: each trial must turn red for each of its mutants
  python -m benchmarks.trials two-processes --times 120  a server as two processes with Redis, one killed (-9) every five seconds; seconds
  python -m benchmarks.trials adopt              five servers that nobody here wrote: adopted, in production, renewed, rolled back
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

from benchmarks.exam.results import Outcome, exit_code, table
from benchmarks.trials import (
    adoption,
    concurrency,
    faults,
    first_push,
    gate,
    installation,
    kills,
    mutants,
    pull_request,
    reviewed_merges,
    team,
    two_processes,
)
from benchmarks.trials.fake_stages import environment

PARTS: dict[str, tuple[Callable[[Path, int, int], Outcome], int]] = {
    "kills": (kills.run, 200),
    "crowd": (concurrency.run, 60),
    "faults": (faults.run, 1),
    "installed": (installation.run, 1),
    "first-push": (first_push.run, 1),
    "review": (reviewed_merges.run, 1),
    "gate": (gate.run, 1),
    "fork": (pull_request.run, 1),
    "team": (team.run, 100),
    "two-processes": (two_processes.run, 120),
    "adopt": (adoption.run, 1),
}


def main() -> None:
    """Runs the trials in temporary folders, prints their figures and ends with the worst verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--times", type=int, default=0, help="how often, or for how many seconds")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with_mutants, chosen = options.parts[:1] == ["mutants"], options.parts[1:]
    if unknown := set(chosen if with_mutants else options.parts) - set(PARTS):
        parser.error(f"unknown trial: {', '.join(unknown)}")
    os.environ.update(environment())
    if with_mutants:
        sys.exit(mutants.examine({name: trial for name, (trial, _) in PARTS.items()}, chosen, options.seed))
    outcomes = {}
    for part in options.parts or PARTS:
        trial, usual = PARTS[part]
        print(f"== {part}", flush=True)
        with tempfile.TemporaryDirectory(prefix="trials-") as folder:
            outcomes[part] = trial(Path(folder), options.times or usual, options.seed)
    print(f"== in all\n{table(outcomes)}", flush=True)
    sys.exit(exit_code(outcomes))


if __name__ == "__main__":
    main()
