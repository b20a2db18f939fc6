"""A run killed during a stage, as by `kill -9`: `python -m tests.dashboard.killed_run ROOT SERVER STAGE RUN`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.plan.stage import StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parents[2]


class KillingExecutor:
    """Executor that kills its process during a stage."""

    slots = 1

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{job['stage']} prints\n")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it lives")

    def cancel(self) -> None:
        """Do nothing, because no jobs run in parallel."""

    def close(self) -> None:
        """Do nothing, because no resources are open."""


def kill_run(root: Path, server: str, stage: str) -> str:
    """Run a stage again in a process that is killed during the stage; return the run ID."""
    run = new_id()
    command = [sys.executable, "-m", "tests.dashboard.killed_run", str(root), server, stage, run]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return run


if __name__ == "__main__":
    _, folder, name, again, wanted = sys.argv
    run_pipeline(Workspace.find(Path(folder)), [name], again=again, run_id=wanted, executor=KillingExecutor(), jobs=1)
