"""A workspace of many servers whose state says that all is done, and what the everyday commands take in it.

    python -m benchmarks.bench.workspace FOLDER [--servers 1000]    makes one, to look at

The first server is made from the bookshop's document by the real code; the others are copies of it under names of their
own. Each has a past of four candidates, of which the last is in staging and production: what the state holds after a while.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.ids import format_time, new_id, utc_now
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.fingerprint import INPUTS, InputReader, read_stage_inputs
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.state import ServerState, apply_event
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/examples/bookshop/openapi.yaml"
CANDIDATES = 4
COMMANDS = {
    "help": ("--help",),
    "status": ("pipeline", "status"),
    "inbox": ("inbox",),
    "plan": ("pipeline", "plan"),
    "run": ("pipeline", "run"),
}
# The system counts as a process's peak what its parent held when it was started: so a small one stands between.
STARTER = """
import os, sys, time
begin = time.perf_counter()
out = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
_, status, used = os.wait4(pid, 0)
print(time.perf_counter() - begin, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
SUMMARIES: Mapping[str, Mapping[str, Any]] = {
    "test": {"tests": 9, "passed": 9, "failed": 0, "skipped": 0},
    "validate": {"score": 97.0, "findings": 1, "critical": 0, "gates": []},
}


def make(folder: Path, servers: int) -> Workspace:
    """Makes the workspace in a new folder."""
    space = apply_setup(plan_workspace_setup(folder), git=False)
    original = create_server(folder / "servers", name=_name(0), source=DOCUMENT).path
    for number in range(1, servers):
        _copy(original, _name(number))
    store, stages = Store(space), workspace_stages(space)
    for server in space.servers():
        _Past(store, server, stages).write()
    return space


def _name(number: int) -> str:
    return f"shop-{number:04}"


def _copy(original: Path, name: str) -> None:
    old, new = original.name, name
    words = ((old, new), (old.replace("-", "_"), new.replace("-", "_")))
    for file in sorted(path for path in original.rglob("*") if path.is_file()):
        path, text = file.relative_to(original).as_posix(), file.read_text("utf-8")
        for before, after in words:
            path, text = path.replace(before, after), text.replace(before, after)
        place = original.parent / new / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


class _Past:
    """The history of one server that went through everything a few times."""

    def __init__(self, store: Store, server: WorkspaceServer, stages: Sequence[Stage]) -> None:
        self.store, self.server, self.stages = store, server, stages
        self.state, self.events = ServerState(server.name), list[dict[str, Any]]()
        self.inputs = read_stage_inputs(stages, InputReader(server, self.state))

    def write(self) -> None:
        name = self.server.name
        for number in range(CANDIDATES):
            self._round(f"1.{number}.0")
        history.append(self.store.history_file(name), self.events, self.store.where(name, "history"))
        self.store.write_state(name, self.state)

    def _round(self, version: str) -> None:
        wheel = f"{self.server.package}-{version}-py3-none-any.whl"
        files = {wheel: hash_bytes(wheel.encode())}
        candidate = hash_named_texts(files).removeprefix("sha256:")[:16]
        for stage in self.stages:
            now = {"candidate": candidate, "checks": INPUTS["checks"](InputReader(self.server, self.state))}
            inputs = {name: now.get(name, value) for name, value in self.inputs[stage.name].items()}
            facts: dict[str, Any] = {"candidate": candidate} if "candidate" in (*stage.reads, *stage.writes) else {}
            if "candidate" in stage.writes:
                facts["built"] = {"version": version, "files": files, "facts": {"document": True, "tools": 9}}
            if stage.channel:
                facts |= {"channel": stage.channel.name, "version": version}
            self._add(
                "stage.finished", stage=stage.name, run=version, outcome="passed", message="as it should be", seconds=1.5,
                inputs=inputs, summary=dict(SUMMARIES.get(stage.name, {})),
                artifacts={f"logs/{stage.name}.log": hash_bytes(b"")}, **facts,
            )  # fmt: skip
        for kind in ("approved", "promoted"):
            self._add(kind, channel="production", candidate=candidate, version=version, reason="looks good")

    def _add(self, kind: str, **facts: Any) -> None:
        last = self.events[-1]["id"] if self.events else ""
        event = {"id": new_id(last), "at": format_time(utc_now()), "actor": "bench", "event": kind, **facts}
        self.events.append(event)
        self.state = apply_event(self.state, event)


@contextmanager
def prepared(servers: int) -> Iterator[Path]:
    """A workspace of so many servers, for a while."""
    with tempfile.TemporaryDirectory(prefix="mcpfactory-bench-") as folder:
        yield make(Path(folder, "space"), servers).root


def cost(folder: Path, *command: str) -> tuple[float, float]:
    """Seconds from spawn to end of a cold `mcpfactory …`, and its peak memory in MiB."""
    starter = [sys.executable, "-S", "-E", "-c", STARTER, *_line(command)]
    done = subprocess.run(starter, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mcpfactory {' '.join(command)} ended with exit {done.returncode}: {done.stderr}")
    seconds, kibibytes = done.stdout.split()
    return float(seconds), float(kibibytes) / 1024


def only_the_changed(folder: Path) -> int:
    """How many servers are planned when nothing changed in all but one. Raises when it is not that one, or something was due before."""
    if due := _due(folder):
        raise RuntimeError(f"{len(due)} servers are due although nothing changed, such as {min(due)}")
    server = sorted((folder / "servers").iterdir())[-1]
    file = next((server / "src").glob("*/server.py"))
    text = file.read_text("utf-8")
    file.write_text(text + "# changed\n", "utf-8")
    try:
        due = _due(folder)
    finally:
        file.write_text(text, "utf-8")
    if due != {server.name}:
        raise RuntimeError(f"{server.name} was changed, and due are: {sorted(due)[:5]}")
    return len(due)


def _due(folder: Path) -> set[str]:
    done = subprocess.run(_line(("pipeline", "plan", "--json")), cwd=folder, capture_output=True, text=True, check=True)
    return {step["server"] for step in json.loads(done.stdout) if step["verdict"] != "up-to-date"}


def _line(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "mcpfactory", *command]


def main() -> None:
    """Makes a workspace to look at."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--servers", type=int, default=1000)
    options = parser.parse_args()
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    begin = time.perf_counter()
    make(options.folder.resolve(), options.servers)
    size = sum(file.stat().st_size for file in options.folder.rglob("*") if file.is_file())
    print(f"{options.servers} servers in {options.folder}: {size / 1e6:.0f} MB, {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
