"""What the everyday commands cost where servers have a long past: `python -m benchmarks state [--events N] [--servers N] [--each N]`.

One server with 100,000 events, then 1,000 servers with 1,000 events each, every one of which waits for an approval, so that `inbox`
must ask their pasts. Cold processes; seconds by the clock and of CPU. The first command after a clone finds no snapshots and folds
every history that it asks; the others go on from there. Exit code 1 where one of those takes more than two seconds of CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.ids import format_time, new_id, utc_now
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state.state import ServerState, apply_event
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.view import view_text

_LIMIT: Final = 2.0  # seconds of CPU
_COMMANDS: Final = (("pipeline", "status"), ("inbox",))
_CHANNELS: Final = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
soak = "1h"
"""
_HASH: Final = hash_bytes(b"")


def main(words: list[str]) -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks state", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="of the one server")
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--each", type=int, default=1000, help="events of each of the many")
    options = parser.parse_args(words)
    good = True
    print(f"{'servers':>8} {'events':>8} {'MB':>6}  {'command':<16} {'when':<6} {'clock s':>8} {'CPU s':>8}")
    for servers, events in ((1, options.events), (options.servers, options.each)):
        with tempfile.TemporaryDirectory(prefix="mcpfactory-bench-") as folder:
            size = _make(Path(folder, "space"), servers, events)
            for when in ("first", "again"):
                for command in _COMMANDS:
                    clock, cpu = _cost(Path(folder, "space"), command)
                    good &= when == "first" or cpu <= _LIMIT
                    name = " ".join(command)
                    print(
                        f"{servers:>8} {events:>8} {size / 1e6:>6.0f}  {name:<16} {when:<6} {clock:>8.2f} {cpu:>8.2f}",
                        flush=True,
                    )
    return 0 if good else 1


def _make(root: Path, servers: int, events: int) -> int:
    """Make the workspace; return how many bytes its histories have."""
    space = apply_setup(plan_workspace_setup(root), git=False)
    with (root / "mcpfactory.toml").open("a") as config:
        config.write(_CHANNELS)
    store, past = Store(space), list(_past(events))
    lines = "".join(json.dumps(event, sort_keys=True) + "\n" for event in past)
    state = ServerState("")
    for event in past:
        state = apply_event(state, event)
    for number in range(servers):
        name = f"shop-{number:04}"
        folder = root / "servers" / name
        folder.mkdir(parents=True)
        (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "p"\ntemplate = "minimal"\n')
        store.history_file(name).write_text(lines)
        store.state_file(name).write_text(view_text(state).replace('"server": ""', f'"server": "{name}"'))
    return len(lines) * servers


def _past(count: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one run after another; each builds a candidate, checks it and puts it into staging."""
    made, last = 0, ""
    while True:
        number, candidate = made, hash_named_texts({"w": hash_bytes(str(made).encode())}).removeprefix("sha256:")[:16]
        for stage in ("build", "test", "validate", "staging"):
            inputs = dict.fromkeys(("source", "tests", "template", "runtime", "stage", "python"), _HASH)
            finished: dict[str, Any] = {
                "stage": stage, "run": str(number), "outcome": "passed", "message": "as it should be", "seconds": 1.5,
                "inputs": inputs, "fingerprint": _HASH, "summary": {}, "artifacts": {f"logs/{stage}.log": _HASH},
                "candidate": candidate,
            }  # fmt: skip
            if stage == "build":
                finished["built"] = {"version": f"1.{number}.0", "files": {f"p-1.{number}.0-py3-none-any.whl": _HASH}}
            if stage == "staging":
                finished |= {"channel": "staging", "version": f"1.{number}.0"}
            if made == count:
                return
            last, made = new_id(last), made + 1
            yield {"id": last, "at": format_time(utc_now()), "actor": "bench", "event": "stage.finished", **finished}


def _cost(folder: Path, command: tuple[str, ...]) -> tuple[float, float]:
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    after = os.times()
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"mcpfactory {' '.join(command)} ended in {done.returncode}: {done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, cpu
