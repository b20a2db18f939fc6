"""Executors of jobs. An executor gets a job as plain data, returns the stage's result, and never writes state.

The local executor runs each job as a process on this machine, with limits of time and memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.build.programs import job_environ
from mcpfactory_pipeline.isolation.processes import hide_process
from mcpfactory_pipeline.plan.stage import RUN_ENDED, StageOutputs

_ROOM: Final = 512 * 2**20  # minimum bytes of free memory for each parallel job
_POLL: Final = 0.25  # seconds between two checks of a job
_LOG: Final = 10_000_000  # maximum bytes of a log; its beginning and end are kept
_ENDING: Final = 20.0  # maximum seconds to wait for the exit of a supervisor
_PROC: Final = Path("/proc")
_MARK: Final = b"\n[about %012d bytes of this log are left out]\n"


def available_slots() -> int:
    """Return the number of parallel jobs for this machine: one for each core, if the memory is sufficient."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = memory_available()
    return max(1, cores if free is None else min(cores, free // _ROOM))


class Executor(Protocol):
    """Executor of jobs, which several threads use at once. `slots` is the maximum number of parallel jobs."""

    slots: int

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        """Run a job within its limits until it ends, and write its output to `log`."""

    def cancel(self) -> None:
        """End all jobs, and start no more jobs. The outcome of ended jobs is `interrupted`."""

    def close(self) -> None:
        """Release the resources after the run."""


class LogFile:
    """Log of a job. `descriptor` is open in append mode, and programs write to it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self.descriptor = descriptor
        self._left_out = 0

    def shorten(self) -> None:
        """If the log is too large, replace its middle by a line with the number of bytes that are left out.

        Bytes that a program writes at the same moment can be lost, and are not counted.
        """
        if os.fstat(self.descriptor).st_size <= _LOG:
            return
        half, mark = _LOG // 2, len(_MARK % 0)
        with self._path.open("r+b") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(size - half + mark)
            tail = stream.read()
            self._left_out += size - half - len(tail) - (mark if self._left_out else 0)
            stream.seek(half)
            stream.write(_MARK % self._left_out + tail)
            stream.truncate()


class LocalExecutor:
    """Executor that runs each job as a process on this machine, so a crash affects only one job.

    `abandoned` is called several times a second. The job is canceled if `abandoned` returns True.
    """

    def __init__(self, jobs: int | None = None, *, abandoned: Callable[[], bool] = lambda: False) -> None:
        self.slots = jobs or available_slots()
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._cancelled = False
        self._abandoned = abandoned

    def run(self, job: Mapping[str, Any], *, log: Path) -> StageOutputs:
        """Run a job in a separate process."""
        work = Path(job["inputs"]["work"])
        job_file, result_file = work / "job.json", work / "result.json"
        try:
            job_file.write_text(json.dumps(job), encoding="utf-8")
            log.parent.mkdir(parents=True, exist_ok=True)
            log.unlink(missing_ok=True)
            with log.open("ab") as stream:  # in append mode, programs continue to write at the end of a shortened log
                return self._run(job, [str(job_file), str(result_file)], result_file, LogFile(log, stream.fileno()))
        except OSError as error:
            raise StateError(
                f"a job cannot be started: {error}", hint="free space, or make the folder writable"
            ) from error

    def _run(self, job: Mapping[str, Any], arguments: list[str], result_file: Path, log: LogFile) -> StageOutputs:
        command = [sys.executable, "-m", "mcpfactory_pipeline.run.job", *arguments]
        with self._guard:
            if self._cancelled:
                return StageOutputs("interrupted", f"{RUN_ENDED} before this stage began")
            hide_process()  # Hide our environment variables from server code that runs without isolation.
            process = subprocess.Popen(
                command,
                env=None if job["environ"] == "caller" else job_environ(),
                stdin=subprocess.PIPE,
                stdout=log.descriptor,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            if excess := self._watch(process, job["limits"], log):
                _end(process)
                return excess
        finally:
            log.shorten()
            with self._guard:
                self._running.discard(process)
            assert process.stdin is not None
            process.stdin.close()
        return self._outputs(process.returncode, result_file)

    def _watch(
        self, process: subprocess.Popen[bytes], limits: Mapping[str, float], log: LogFile
    ) -> StageOutputs | None:
        """Wait for the end of a job, and limit its log; return an outcome if the job must be ended."""
        deadline = time.monotonic() + limits["timeout"]
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, min(_POLL, deadline - time.monotonic())))
                return None
            if time.monotonic() >= deadline:
                return StageOutputs("errored", f"took longer than its limit of {limits['timeout']:g} seconds")
            if process_tree_memory(process.pid, limits["memory"]) > limits["memory"]:
                return StageOutputs(
                    "errored", f"used more memory than its limit of {limits['memory'] / 2**20:,.0f} MiB"
                )
            if self._abandoned():
                return StageOutputs("interrupted", RUN_ENDED)
            log.shorten()

    def _outputs(self, code: int, result_file: Path) -> StageOutputs:
        if code == 0 and result_file.exists():
            return StageOutputs.from_json(json.loads(result_file.read_text(encoding="utf-8")))
        if self._cancelled:
            return StageOutputs("interrupted", RUN_ENDED)
        if code < 0:
            return StageOutputs("interrupted", f"the process of the stage was killed by signal {-code}")
        return StageOutputs("errored", f"the process of the stage ended with exit {code}; see its log")

    def cancel(self) -> None:
        """End all jobs."""
        with self._guard:
            self._cancelled = True
            running = list(self._running)
        for process in running:
            _end(process)

    def close(self) -> None:
        """Do nothing, because each process has ended with its job."""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a job by closing the stdin of its supervisor."""
    if process.returncode is not None:
        return  # the process has ended; another process may have the same PID
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:  # the supervisor hangs, for example because it was suspended
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def process_tree_memory(leader: int, limit: float) -> int:
    """Return the memory in bytes of a process, its session and its descendants; 0 if unknown.

    Above the limit, each page that several processes share counts once (proportional set size, proc(5)). Below the
    limit, it counts for each of them, because this is much faster to read.
    """
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    resident: dict[int, int] = {}
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - called several times a second for each job
    except OSError:
        return 0
    for name in names:
        if name.isdigit():
            try:
                fields = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # the process has ended in the meantime
            pid = int(name)
            parents[pid], sessions[pid], resident[pid] = int(fields[1]), int(fields[3]), int(fields[21])
    ours = {pid for pid, session in sessions.items() if session == leader} | {leader}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        ours |= more
        grown = bool(more)
    page = os.sysconf("SC_PAGE_SIZE")
    found = {pid: resident.get(pid, 0) * page for pid in ours}
    total = sum(found.values())
    return total if total <= limit else sum(_proportional_memory(pid, found[pid]) for pid in ours)


def _proportional_memory(pid: int, default: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, StopIteration):  # a process that hides from others, or has ended
        return default


def memory_available() -> int | None:
    """Return the bytes that new processes can use without swapping; None if unknown."""
    try:
        lines = (_PROC / "meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
