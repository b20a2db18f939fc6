"""A process that a stage leaves behind ends before anybody looks at what the stage found, whatever session it moved to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


@needs("linux")
def test_what_a_stage_leaves_behind_is_gone_when_its_result_is_read(tmp_path):
    stage = Stage(name="leave", needs=(), reads=(), writes=(), version=1, run=leave)
    inputs = StageInputs(
        server="a",
        package="a",
        folder=tmp_path,
        root=tmp_path,
        work=tmp_path,
        artifacts=tmp_path,
        keep=tmp_path / "keep",
    )
    log = tmp_path / "leave.log"
    outputs = LocalExecutor(1).run(make_job(stage, inputs), log=log)
    assert outputs.outcome == "passed", log.read_text()
    assert not is_running(int(outputs.message))
    assert "ended 1 orphan that the stage left behind" in log.read_text()
