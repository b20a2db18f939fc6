"""Where jobs run. `LocalExecutor`: a process for each job on this machine, with a time limit, ended with all it started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mcpfactory_pipeline.errors import StateError
from mcpfactory_pipeline.stage import StageOutputs

__all__ = ["Executor", "LocalExecutor"]


class Executor(Protocol):
    """Runs jobs; called from several threads at once."""

    def run(self, job: Mapping[str, Any], *, log: Path, timeout: float) -> StageOutputs:
        """Runs a job to its end, with what it prints in `log`; `timeout` in seconds."""

    def cancel(self) -> None:
        """Ends all jobs, and lets no new one start; their outcome is `interrupted`."""


class LocalExecutor:
    """Processes on this machine. They never write state: what they found comes back as data."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._cancelled = False

    def run(self, job: Mapping[str, Any], *, log: Path, timeout: float) -> StageOutputs:
        """Runs a job in a process of its own."""
        work = Path(job["inputs"]["work"])
        job_file, result_file = work / "job.json", work / "result.json"
        try:
            job_file.write_text(json.dumps(job), encoding="utf-8")
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as stream:
                return self._run([str(job_file), str(result_file)], result_file, stream.fileno(), timeout)
        except OSError as error:
            raise StateError(
                f"a job cannot be started: {error}", hint="free space, or make the folder writable"
            ) from error

    def _run(self, arguments: list[str], result_file: Path, log: int, timeout: float) -> StageOutputs:
        command = [sys.executable, "-m", "mcpfactory_pipeline.job", *arguments]
        with self._guard:
            if self._cancelled:
                return StageOutputs("interrupted", "the run was ended before this stage began")
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            self._running.add(process)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            return StageOutputs("errored", f"took longer than its {timeout:g} seconds")
        finally:
            with self._guard:
                self._running.discard(process)
            assert process.stdin is not None
            process.stdin.close()
        return self._outputs(code, result_file)

    def _outputs(self, code: int, result_file: Path) -> StageOutputs:
        if code == 0 and result_file.exists():
            return StageOutputs.from_json(json.loads(result_file.read_text(encoding="utf-8")))
        if self._cancelled:
            return StageOutputs("interrupted", "the run was ended")
        if code < 0:
            return StageOutputs("interrupted", f"the process of the stage was killed by signal {-code}")
        return StageOutputs("errored", f"the process of the stage ended with exit {code}; its log says why")

    def cancel(self) -> None:
        """Ends all jobs."""
        with self._guard:
            self._cancelled = True
            running = list(self._running)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a job and everything in its session."""
    if process.returncode is not None:
        return  # its number may be somebody else's by now
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
