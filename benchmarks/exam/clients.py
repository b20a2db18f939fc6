"""Clients that are not ours against the everything server: list, call, read, prompt, elicit, sample, in both lifecycles."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

from benchmarks.bench.peers import prepare
from benchmarks.bench.peers.client_tasks import TASKS, client_tasks, describe_result, faults
from benchmarks.bench.peers.installations import CLIENTS, PYTHON_V1, environment
from benchmarks.exam.results import Outcome, judged
from benchmarks.exam.servers import ROOT, STDIO, everything

PATIENCE = 120  # seconds for one client with all its tasks
Run = tuple[str, str, list[str]]  # transport, lifecycle, program


def typescript() -> Outcome:
    """The official TypeScript clients: v1, which knows the handshake only, and v2 in both lifecycles."""
    places = prepare()
    program = [places["node"], f"{places['home']}/typescript.mjs"]
    runs = [(transport, "legacy", [*program, "v1", "legacy"]) for transport in ("stdio", "http", "sse")]
    runs += [(transport, era, [*program, "v2", era]) for era in ("legacy", "modern") for transport in ("stdio", "http")]
    return _examine(runs)


def python1() -> Outcome:
    """The official Python client 1.x, which knows the handshake only."""
    program = [environment("python1", (PYTHON_V1,)), str(CLIENTS / "python_v1.py")]
    return _examine((transport, "legacy", program) for transport in ("stdio", "http", "sse"))


def python2() -> Outcome:
    """The official Python client 2.x in both lifecycles."""
    program = [prepare()["python"], str(CLIENTS / "python_v2.py")]
    return _examine(
        (transport, era, [*program, era]) for era in ("legacy", "modern") for transport in ("stdio", "http")
    )


def _examine(runs: Iterable[Run]) -> Outcome:
    """Every run does all the tasks; a line for each, then what came out wrong."""
    good = total = 0
    whole = True
    with everything() as url:
        targets = {"stdio": STDIO, "http": [url], "sse": [url.removesuffix("/mcp") + "/sse"]}
        for transport, era, program in runs:
            wrong = _one([*program, transport, json.dumps(client_tasks()), *targets[transport]], era)
            total += len(TASKS)
            good += len(TASKS) - sum(fault.startswith(tuple(f"{task.name}: " for task in TASKS)) for fault in wrong)
            whole &= not wrong
    return judged(f"{good} of {total} tasks right over {total // len(TASKS)} connections", good=whole)


def _one(command: list[str], era: str) -> list[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    try:
        line = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        print(done.stdout[-1000:], done.stderr[-3000:], sep="\n", flush=True)
        return [f"{task.name}: the client ended with {done.returncode}" for task in TASKS]
    wrong = faults(line, era) + ([f"the client ended with {done.returncode}"] if done.returncode else [])
    print(describe_result(line, era, wrong), flush=True)
    return wrong
