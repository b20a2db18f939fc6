"""Pipeline runs that the dashboard starts, each in a separate process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError, PromotionError, StageError
from mcpfactory_pipeline.base.ids import current_actor, new_id
from mcpfactory_pipeline.base.locks import active_runs
from mcpfactory_pipeline.dashboard.access import TOKEN_VARIABLE
from mcpfactory_pipeline.operations.operation import OperationContext
from mcpfactory_pipeline.operations.run import Run
from mcpfactory_pipeline.workspace.workspace import Workspace

_MAX_RUNS: Final = 4  # maximum number of simultaneous runs
_START_TIMEOUT: Final = 20.0  # seconds until a started run must have recorded its start
_STOP_TIMEOUT: Final = 15.0  # seconds; time limit for the graceful stop of a run


class RunProcesses:
    """The active runs that this dashboard started."""

    def __init__(self, workspace_root: Path) -> None:
        self._root = workspace_root
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._guard = threading.Lock()

    def start(self, wanted: Run) -> str:
        """Start a run for the current actor. Return the run's ID after its start has been recorded."""
        workspace, run = Workspace.find(self._root), new_id()
        server = wanted.servers[0]
        program = [sys.executable, "-m", "mcpfactory_pipeline.dashboard.run_process"]
        command = [*program, str(self._root), run, wanted.model_dump_json()]
        environ = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
        log = workspace.artifacts / server / "logs" / "run.log"
        with self._guard:
            if len(self._processes) >= _MAX_RUNS:
                raise StageError(
                    f"too many runs of this dashboard are in progress: the maximum is {_MAX_RUNS}",
                    hint="wait until one of these runs ends",
                )
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as stream:
                process = subprocess.Popen(
                    command,
                    env={**environ, "MCPFACTORY_ACTOR": current_actor()},
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._processes[run] = process
        threading.Thread(target=self._wait, args=(run, process), daemon=True).start()
        locks = workspace.pipeline / "locks"
        elapsed, interval = 0.0, 0.05
        while run not in active_runs(locks):
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process.wait(interval) != 0:
                    raise StageError(
                        f"the run of {server} did not start",
                        hint=f"read the log of the run: {log.relative_to(workspace.root)}",
                    )
                break
            elapsed += interval
            if elapsed > _START_TIMEOUT:
                raise StageError(
                    f"the run of {server} has not started yet",
                    hint="open the list of runs to see whether the run has started",
                )
        return run

    @property
    def going(self) -> frozenset[str]:
        """Return the IDs of the active runs."""
        with self._guard:
            return frozenset(self._processes)

    def cancel(self, run: str) -> None:
        """Stop one run gracefully.

        Raises:
            PromotionError: the run was not started by this dashboard, or has ended.
        """
        with self._guard:
            process = self._processes.get(run)
        if process is None:
            raise PromotionError(
                f"the run {run} was not started in this dashboard, or has ended",
                hint="press Ctrl-C in the terminal that started the run",
            )
        process.terminate()

    def _wait(self, run: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()  # prevents a zombie process
        with self._guard:
            self._processes.pop(run, None)

    def close(self) -> None:
        """Stop all runs gracefully. Running stages are recorded as interrupted."""
        with self._guard:
            processes = list(self._processes.values())
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> None:
    """Perform one run."""
    root, run, wanted = sys.argv[1:]
    try:
        Run.model_validate_json(wanted).carry_out(OperationContext(Workspace.find(Path(root)), run_id=run))
    except PipelineError as error:  # exit with the error as text, because people read the log
        sys.exit(f"error: {error}\nhint: {error.hint}")


if __name__ == "__main__":
    main()
