"""No process of a stage outlives it, whatever session the process moved to and however the stage ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.executor import LocalExecutor
from mcpfactory_pipeline.run.job import make_job
from mcpfactory_pipeline.run.run import run_pipeline
from tests.pipeline.fake_stages import BUILD, TEST, add_server
from tests.pipeline.staged_workspace import configured
from tests.skip_conditions import needs
from tests.system import is_running
from tests.timeouts import TIMEOUT, wait_until

# It leaves its session and its parent, says its number, and waits for ever: for the moment to change a result.
LEFT = """
import os, signal, sys
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1), os.close(2)
        os.write(told, str(os.getpid()).encode())
        signal.alarm(60)
        signal.pause()
    os._exit(0)
print(os.read(ready, 20).decode(), flush=True)
"""


def leave(inputs: StageInputs) -> StageOutputs:
    """A stage that runs a program which leaves a process behind, and tells its number."""
    done = subprocess.run([sys.executable, "-S", "-c", LEFT], capture_output=True, text=True, check=True)
    return StageOutputs("passed", done.stdout.strip())


def stage_of(run: Callable[[StageInputs], StageOutputs]) -> Stage:
    return Stage(name=run.__name__, needs=(), reads=(), writes=(), version=1, run=f"{run.__module__}:{run.__name__}")


def inputs_in(folder: Path) -> StageInputs:
    return StageInputs(
        server="a",
        package="a",
        folder=folder,
        root=folder,
        work=folder,
        artifacts=folder,
        keep=folder / "keep",
    )


@needs("linux")
def test_what_a_stage_leaves_behind_is_gone_when_its_result_is_read(tmp_path):
    log = tmp_path / "leave.log"
    outputs = LocalExecutor(1).run(make_job(stage_of(leave), inputs_in(tmp_path)), log=log)
    assert outputs.outcome == "passed", log.read_text()
    assert not is_running(int(outputs.message))
    assert "ended 1 orphan that the stage left behind" in log.read_text()


# It starts a copy of itself and ends, again and again: no process of it is there for long enough to be named. All hold one lock.
HOPS = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    os.setsid()
    os.close(0), os.close(1), os.close(2)
    end = time.monotonic() + 15
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        if sys.argv[2] == "leaves":
            os.setsid()
"""


def hop(inputs: StageInputs) -> StageOutputs:
    """A stage that leaves behind a process whose number is another one all the time."""
    subprocess.run([sys.executable, "-S", "-c", HOPS, inputs.work / "lock0", "stays"], check=True)
    return StageOutputs("passed", "it hops")


def hop_away(inputs: StageInputs) -> StageOutputs:
    """The same, three times, and each copy is in a session and group of its own."""
    for number in range(3):
        subprocess.run([sys.executable, "-S", "-c", HOPS, inputs.work / f"lock{number}", "leaves"], check=True)
    return StageOutputs("passed", "it hops")


@needs("linux")
@pytest.mark.parametrize("run", [hop, hop_away])
def test_a_process_that_starts_a_copy_of_itself_and_ends_in_a_loop_is_ended(tmp_path, run):
    import fcntl  # not on every system

    log = tmp_path / "hop.log"
    outputs = LocalExecutor(1).run(make_job(stage_of(run), inputs_in(tmp_path)), log=log)
    assert outputs.outcome == "passed", log.read_text()
    for lock in tmp_path.glob("lock*"):
        with lock.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it any more


LEVELS = ["none", *(pytest.param(level, marks=needs(level)) for level in ("landlock", "bubblewrap"))]


@needs("linux")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("limit", ["time", "memory"])
def test_no_daemon_outlives_a_stage_that_exceeds_a_limit(workspace, monkeypatch, limit, level):
    space = configured(workspace, "attempts = 1\n")
    add_server(workspace.root, "books", outcome=f"leaves {level}")
    stage = replace(TEST, memory=200 * 2**20) if limit == "memory" else TEST
    with ThreadPoolExecutor() as pool:
        ending = pool.submit(run_pipeline, space, ["books"], stages=(BUILD, stage))
        wait_until((workspace.root / "holding").exists)
        if limit == "time":
            now = time.monotonic
            monkeypatch.setattr(time, "monotonic", lambda: now() + 2 * stage.timeout)
        assert ending.result().servers == {"books": "errored"}
    FileLock(workspace.root / "alive.lock").acquire(timeout=0)


@needs("linux")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_daemon_outlives_a_run_that_is_ended(workspace, start_pipeline_process, number, level):
    add_server(workspace.root, "books", outcome=f"leaves {level}")
    process = start_pipeline_process("books")
    wait_until((workspace.root / "holding").exists)
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT)
    FileLock(workspace.root / "alive.lock").acquire(timeout=0 if number == signal.SIGINT else TIMEOUT)
