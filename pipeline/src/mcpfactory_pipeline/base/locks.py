"""Locks of the workspace. The operating system frees locks when a process dies, so leftover lock files do not block.

A run holds the *run* lock of a server while stages of the server run, so a server has one run at a time. The *state*
lock is held only while history and state are written. A process that needs both locks takes the run lock first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from mcpfactory_pipeline.base.errors import StateError

_TIMEOUT: Final = 60.0  # seconds to wait for a lock
_POLL: Final = 0.02
_HOLDER: Final = ".running"  # suffix of files that record active runs
_WAITS: Final = ".waits"  # suffix of files that record runs that wait for a lock

Holder = dict[str, Any]
Starts = Sequence[Mapping[str, Any]]  # events `stage.started`


@contextmanager
def file_lock(file: Path, *, timeout: float = _TIMEOUT) -> Iterator[None]:
    """Hold a lock during the block.

    Raises:
        StateError: another process holds the lock for longer than `timeout` seconds.
    """
    lock = FileLock(file)
    _acquire(lock, file, timeout)
    try:
        yield
    finally:
        lock.release()


def is_locked(file: Path) -> bool:
    """Return True if another process holds the lock; False if the file is missing."""
    if not file.exists():
        return False
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


@contextmanager
def run_lock(
    folder: Path, server: str, run: str, *, waiting: Callable[[Holder], None], stopped: Callable[[], bool]
) -> Iterator[Callable[[Starts], None]]:
    """Hold the run lock of a server, and yield a function that records the running stages.

    Call the function with the starts of all running stages whenever a stage starts or ends. The yielded function raises
    `StateError` if the note cannot be written. The note of a killed run stays, so that the next run records the ends of
    its stages. If another process holds the lock, `waiting` is called once with a description of that process.

    Raises:
        InterruptedError: `stopped` returned True before the lock became free.
    """
    file, note = folder / f"{server}.run.lock", _holder_note(folder, server)
    wait = _run_notes(folder) / f"{run}.{server}{_WAITS}"
    lock = FileLock(file)
    waited = False
    try:
        while True:
            try:
                _acquire(lock, file, 0.25)
                break
            except StateError as error:
                if not isinstance(error.__cause__, Timeout):
                    raise
            if stopped():
                raise InterruptedError
            if not waited:
                waiting(read_run_notes(folder, server))
                waited = True
                with suppress(OSError):  # ignore the error, because the note only informs users
                    wait.parent.mkdir(parents=True, exist_ok=True)
                    wait.touch()
    finally:
        with suppress(OSError):
            wait.unlink(missing_ok=True)

    def announce(starts: Starts) -> None:
        _write_holder(note, run, starts)

    try:
        yield announce
        note.unlink(missing_ok=True)  # do not use `finally`, because the note of a crashed run must stay
    finally:
        lock.release()


def read_run_notes(folder: Path, server: str) -> Holder:
    """Return the notes of a server's last run; empty if the run ended normally.

    `starts` has the start of each running stage. `stage` is the first of the running `stages`, or "".
    """
    try:
        note = json.loads(_holder_note(folder, server).read_text(encoding="utf-8"))
        starts = [{**start, "id": str(start["id"])} for start in note.get("starts", ())]
        stages = [str(start["stage"]) for start in starts]
        about = {"starts": starts, "stage": next(iter(stages), ""), "stages": stages}
        return {**note, **about, "alive": _alive(int(note["pid"]))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def running_stages_of_server(folder: Path, server: str, run: str = "") -> tuple[str, ...]:
    """Return the running stages of a server in order, optionally only the stages of one `run`."""
    holder = read_run_notes(folder, server)
    return tuple(holder["stages"]) if holder.get("alive") and run in {"", holder.get("run")} else ()


def running_stages_of_workspace(folder: Path) -> frozenset[tuple[str, str, str]]:
    """Return the running stages of all servers as (run, server, stage)."""
    servers = [note.stem for note in folder.glob(f"*{_HOLDER}")]
    holders = {server: read_run_notes(folder, server) for server in servers}
    going = {server: holder for server, holder in holders.items() if holder.get("alive")}
    return frozenset(
        (str(holder.get("run", "")), server, stage) for server, holder in going.items() for stage in holder["stages"]
    )


@contextmanager
def register_run(folder: Path, run: str) -> Iterator[None]:
    """Register a run during the block, so that other processes see the run."""
    note = _run_notes(folder) / f"{run}.{os.getpid()}{_HOLDER}"
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        others = list(note.parent.iterdir())
        going = active_runs(folder)
        for other in others:
            if other.name.partition(".")[0] not in going:
                other.unlink(missing_ok=True)
        note.touch()
    try:
        yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)


def active_runs(folder: Path) -> frozenset[str]:
    """Return the ids of the runs in progress on this machine."""
    notes = (note.stem.partition(".") for note in _run_notes(folder).glob(f"*{_HOLDER}"))
    return frozenset(run for run, _, pid in notes if pid.isdecimal() and _alive(int(pid)))


def awaited_servers(folder: Path, run: str) -> dict[str, str]:
    """Map each server that a run waits for to the run that holds the server's lock ("" if unknown)."""
    waits = _run_notes(folder).glob(f"{run}.*{_WAITS}")
    servers = sorted(note.name.removeprefix(f"{run}.").removesuffix(_WAITS) for note in waits)
    return {server: str(read_run_notes(folder, server).get("run", "")) for server in servers}


def _holder_note(folder: Path, server: str) -> Path:
    return folder / f"{server}{_HOLDER}"


def _write_holder(note: Path, run: str, starts: Starts) -> None:
    """Write the holder of a server's run lock atomically.

    A reader of half a note would treat a running stage as crashed.
    """
    holder = {"pid": os.getpid(), "run": run, "starts": list(starts)}
    # This process has the lock, so no other process writes a file of this name.
    beside = note.with_name(f"{note.name}.tmp")
    try:
        beside.write_text(json.dumps(holder), encoding="utf-8")
        beside.replace(note)
    except OSError as error:
        raise StateError(
            f"{note} cannot be written: {error.strerror}", hint="free space, or make pipeline/locks/ writable"
        ) from error


def _run_notes(folder: Path) -> Path:
    return folder / "runs"


def _acquire(lock: FileLock, file: Path, timeout: float) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=timeout, poll_interval=_POLL)
    except Timeout as error:
        raise StateError(
            f"{file} is locked by another mcpfactory process",
            hint="wait until the other process ends, or stop the process",
        ) from error
    except OSError as error:
        raise StateError(f"{file} cannot be locked: {error.strerror}", hint="make pipeline/locks/ writable") from error


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # the process exists but belongs to another user
    return True
