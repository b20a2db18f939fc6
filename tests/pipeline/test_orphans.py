"""A process that a stage leaves behind ends before anybody looks at what the stage found, whatever session it moved to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpfactory_pipeline.executors.local import LocalExecutor
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.job import make_job
from tests.machine import needs

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


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def stage_of(run: Callable[[StageInputs], StageOutputs]) -> Stage:
    return Stage(name=run.__name__, needs=(), reads=(), writes=(), version=1, run=run)


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
