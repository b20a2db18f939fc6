"""Runs on a dask cluster of which workers are killed (-9) in the middle of a stage: the run completes, and nothing is recorded twice.

In each trial servers go through all stages on two workers; some of the stages, drawn by the seed, kill the worker that they run on
when they are run first.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.trials.ground import CHEAP, ROOT, deadly, kept_promises, make
from mcpfactory_pipeline.state.store import Store

__all__ = ["run"]

SERVERS = ("a", "b", "c", "d", "e", "f")


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` runs of six servers; the figure says how many workers died and how many runs did not complete."""
    if find_spec("distributed") is None:
        return unavailable("the extra `dask` is not installed")
    choose, faults, died = random.Random(seed), list[str](), 0
    for number in range(times):
        space = make(folder / f"space {number}", *SERVERS, executor="dask")
        stages = [f"{server}-{stage.name}" for server in SERVERS for stage in CHEAP]
        chosen = choose.sample(stages, choose.randint(1, 2))
        for stage in chosen:
            deadly(space.root, stage).touch()
        command = [sys.executable, "-m", "benchmarks.trials.child", "0", str(space.root), "run"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        store = Store(space)
        told = Counter(event["event"] for server in SERVERS for event in store.history(server))
        print(f"workers killed in {', '.join(chosen)}: exit code {done.returncode}, {dict(told)}", flush=True)
        died += told["stage.interrupted"]
        if done.returncode or told["stage.finished"] != len(stages) or told["stage.interrupted"] != len(chosen):
            faults.append(f"run {number}: {done.stdout[-500:]}{done.stderr[-500:]}")
        faults += [f"run {number}: {fault}" for fault in kept_promises(space)]
    for fault in faults:
        print(fault)
    figure = (
        f"{times} runs of {len(SERVERS)} servers on 2 workers, {died} workers killed; {len(faults)} not as promised"
    )
    return judged(figure, good=not faults)
