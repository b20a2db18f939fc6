"""The road of one document: `mcpfactory new` and `mcpfactory pipeline run` as processes, in a workspace of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.staging.arrival import Arrival, Obstacle, Source
from benchmarks.staging.hostile import hostility
from benchmarks.staging.obstacles import Made, found, obstacles

__all__ = ["empty_workspace", "end_all", "travel"]

_REFUSED = 4  # the exit code of `new` for a document that is no use
_running: set[int] = set()  # process groups of commands


@dataclass(slots=True)
class _Done:
    """A command that ended: exit code (None: the time was over), what it printed, seconds."""

    code: int | None
    out: str
    err: str
    seconds: float


@dataclass(slots=True)
class _Trip:
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # stage → its message


def empty_workspace(folder: Path) -> Path:
    """A workspace without servers, to be copied.

    Raises:
        RuntimeError: `mcpfactory init` does not work here.
    """
    done = _run(folder, 300, "init", "workspace")
    if done.code:
        raise RuntimeError(f"mcpfactory init ended with {done.code}: {done.err}")
    return folder / "workspace"


def travel(source: Source, template: Path, folder: Path, patience: float) -> Arrival:
    """Send one document along the road; nobody helps it.

    Args:
        source: the document.
        template: an empty workspace.
        folder: of its own workspace; it is not there yet.
        patience: seconds for the whole road.
    """
    shutil.copytree(template, folder, symlinks=True)
    begin = time.perf_counter()
    trip = _Trip()
    made = _run(folder, patience, "new", source.name, "--from-openapi", str(source.file), "--quiet", "--json")
    trip.seconds["new"] = made.seconds
    if made.code == 0:
        _stages(_run(folder, patience - made.seconds, "pipeline", "run", source.name, "--json"), source, trip)
    else:
        trip.failed["new"] = _told(made)
    server = Made(source, folder)
    known = {} if not trip.failed else {"obstacles": tuple(obstacles(server, trip.failed))}
    return Arrival(
        source.name,
        source.kind,
        source.operations or server.operations,
        tools=server.tools,
        seconds=round(time.perf_counter() - begin, 1),
        stages={stage: round(seconds, 1) for stage, seconds in trip.seconds.items()},
        arrived=not trip.failed and "staging" in trip.seconds,
        hostile=hostility(source.file) if made.code == _REFUSED else "",
        findings=tuple(found(server)),
        **(known or _nothing_told(trip)),
    )


def _nothing_told(trip: _Trip) -> dict[str, Any]:
    if "staging" in trip.seconds:
        return {}
    return {"obstacles": (Obstacle("staging", "run", "the run ended and no stage failed"),)}


def _stages(done: _Done, source: Source, trip: _Trip) -> None:
    """Read what `pipeline run --json` printed."""
    for line in done.out.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "step.finished" and event.get("server") == source.name:
            stage = event["stage"]
            trip.seconds[stage] = trip.seconds.get(stage, 0.0) + event["seconds"]
            if event["outcome"] == "passed":
                trip.failed.pop(stage, None)  # a second attempt
            else:
                trip.failed[stage] = f"{event['outcome']}: {event['message']}"
    if done.code and not trip.failed:
        trip.failed["run"] = _told(done)


def end_all() -> None:
    """End the commands that are under way: they are no part of the terminal's process group."""
    for group in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _told(done: _Done) -> str:
    if done.code is None:
        return f"not finished after {done.seconds:.0f} s"
    lines = [line for line in (done.err + "\n" + done.out).splitlines() if line.strip()]
    wrong = [line for line in lines if line.lstrip().startswith(("error", "hint:", '"message"'))]
    return f"exit {done.code}: " + " ".join(wrong[:3] if wrong and "Traceback" not in done.err else lines[-3:])


def _run(folder: Path, patience: float, *words: str) -> _Done:
    """Run a command of ours in a process group of its own, which ends with it."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpfactory", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    _running.add(process.pid)
    try:
        out, err = process.communicate(timeout=max(patience, 1))
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = None
    finally:
        _running.discard(process.pid)
    return _Done(code, out, err, time.perf_counter() - begin)
