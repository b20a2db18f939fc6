"""The promises of the product broken on purpose, one at a time: each trial must notice each of its mutants, or it proves nothing.

  python -m benchmarks.trials mutants              every trial with each of its mutants: a table
  python -m benchmarks.trials mutants kills crowd  those of some trials

A mutant is a patch of the product in the processes of a trial (`child.act` applies the one that `TRIAL_MUTANT` names), and the
product knows nothing of it. The exit code is 1 where a trial does not turn red for a mutant: it stays green, breaks off, or is not to be had here. That each is green without one, the trials show.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

_VARIABLE: Final = "TRIAL_MUTANT"
_APPLY: Final = "from benchmarks.trials.mutants import apply_mutant; apply_mutant()"
_PACKAGE: Final = "mcpfactory_pipeline."
_RUNTIME: Final = "mcpfactory_runtime."


@dataclass(frozen=True, slots=True)
class Mutant:
    """One promise broken: by which patch, in which trial it must be seen, and how long that takes at most."""

    trial: str
    promise: str
    apply: Callable[[], None]
    times: int


def _patch(place: str, value: object) -> None:
    module, _, name = place.rpartition(".")
    existing(place)  # a patch of nothing would be no mutant
    setattr(import_module(_PACKAGE + module), name, value)


def existing(place: str) -> Any:
    """Return an attribute of a module of the pipeline (`module.name`), or raise if either does not exist."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(_PACKAGE + module), name)


def _no_state_lock() -> None:
    @contextmanager
    def unlocked(_file: Path, **_options: object) -> Iterator[None]:
        yield

    _patch("state.store.file_lock", unlocked)


def _in_place() -> None:
    """The state is written where it is read, and nothing moves."""

    def write(file: Path, data: bytes) -> Path:
        with file.open("wb") as stream:
            stream.write(data)
        return file

    _patch("state.store.write_temporary_file", write)
    _patch("state.store.move_into_place", lambda _temporary, _file: None)


def _torn_line_stays() -> None:
    _patch("state.history._end_of_last_event", lambda descriptor: os.lseek(descriptor, 0, os.SEEK_END))


def _unsynced(module: str) -> Callable[[], None]:
    def apply() -> None:
        kept = {name: getattr(os, name) for name in dir(os) if name != "fsync"}
        _patch(f"{module}.os", SimpleNamespace(**kept, fsync=lambda _descriptor: None))

    return apply


def _hash_not_compared() -> None:
    for place in ("decisions.promote.verify_candidate_files", "channels.candidate.verify_candidate_files"):
        _patch(place, lambda _artifact: None)


def _no_run_lock() -> None:
    @contextmanager
    def unlocked(*_given: object, **_options: object) -> Iterator[Callable[[str], None]]:
        yield lambda _stage: None

    _patch("run.runner.run_lock", unlocked)


def _runtime(place: str, value: object) -> None:
    """Replace something of the runtime: `module:name` or `module:class.name`."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(_RUNTIME + module)
    for one in owners:
        owner = getattr(owner, one)
    assert hasattr(owner, name), place  # a patch of nothing would be no mutant
    setattr(owner, name, value)


def _store_of_its_own() -> None:
    _runtime("storage:create_store", lambda _address: import_module(f"{_RUNTIME}storage.base").MemoryStore())


def _dead_never_found() -> None:
    async def alive(_processes: object, _process: str) -> bool:
        return True

    _runtime("storage.base:ProcessRegistry.alive", alive)


def _events_not_recorded() -> None:
    _runtime("storage.events:SessionJournal.append", lambda *_given: None)


def _sent_twice() -> None:
    real = import_module(f"{_RUNTIME}storage.redis").RedisStore.send

    async def send(store: object, mailbox: str, data: bytes, *, seconds: float) -> None:
        for _ in range(2 if b'"kind":"request"' in data.partition(b"\n")[0] else 1):
            await real(store, mailbox, data, seconds=seconds)

    _runtime("storage.redis:RedisStore.send", send)


def _tasks_in_memory() -> None:
    _runtime("server.extensions:Extensions.share", lambda *_given: None)


MUTANTS: Final[Mapping[str, Mutant]] = {
    "state written in place": Mutant("kills", "the state is replaced whole", _in_place, 1),
    "torn line kept": Mutant("kills", "half a line is taken away", _torn_line_stays, 1),
    "history not synced": Mutant("kills", "an event is on disk before it is told", _unsynced("state.history"), 1),
    "state not synced": Mutant("kills", "a state is on disk before it is moved", _unsynced("base.files"), 1),
    "state lock removed": Mutant("crowd", "one writer at a time", _no_state_lock, 10),
    "run lock removed": Mutant("crowd", "one run of a server at a time", _no_run_lock, 10),
    "hash not compared": Mutant("faults", "what is promoted is what was checked", _hash_not_compared, 1),
    "store of its own": Mutant("two-processes", "every process knows every session", _store_of_its_own, 8),
    "the dead live on": Mutant("two-processes", "what a killed process had goes on", _dead_never_found, 15),
    "events not recorded": Mutant("two-processes", "streams are resumed", _events_not_recorded, 15),
    "requests sent twice": Mutant("two-processes", "a call is carried out once", _sent_twice, 8),
    "tasks in memory": Mutant("two-processes", "every process knows every task", _tasks_in_memory, 8),
}


def names_of(trials: Sequence[str]) -> list[str]:
    """Return the mutants of some trials, of all when none is named."""
    return [name for name, one in MUTANTS.items() if not trials or one.trial in trials]


def has_mutant() -> bool:
    """Return True if a trial runs with a mutant: then the first fault is enough."""
    return bool(os.environ.get(_VARIABLE))


def apply_mutant() -> None:
    """Break the promise that the environment names, in this process; none where it names none."""
    if name := os.environ.get(_VARIABLE):
        MUTANTS[name].apply()


def examine(trials: Mapping[str, Callable[[Path, int, int], Any]], chosen: Sequence[str], seed: int) -> int:
    """Run each trial with each of its mutants, print the table, and return the exit code."""
    rows, green = [("mutant", "trial", "promise", "trial says")], []
    for name in names_of(chosen):
        one = MUTANTS[name]
        os.environ[_VARIABLE] = name
        try:
            subprocess.run([sys.executable, "-c", _APPLY], check=True)  # else red would say nothing
            with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
                said = _judge(trials[one.trial], Path(folder), one.times, seed)
        finally:
            del os.environ[_VARIABLE]
        rows.append((name, one.trial, one.promise, said))
        green += [name] if said != "red" else []
        print(f"{name}: {one.trial} is {said}", flush=True)
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    print("\n".join("  ".join([*(f"{row[at]:{widths[at]}}" for at in range(3)), row[3]]) for row in rows))
    return 1 if green else 0


def _judge(trial: Callable[[Path, int, int], Any], folder: Path, times: int, seed: int) -> str:
    try:
        return {"ok": "green", "not run": "not run"}.get(trial(folder, times, seed).verdict, "red")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        print(f"the trial broke off: {type(error).__name__}: {error}")
        return "broken off"  # perhaps of itself: that proves nothing
