"""What breaks around the pipeline: disks, folders, clocks, files. For each: exit code, message, hint, and that nothing is lost.

Every fault is made for real, `mcpfactory pipeline …` meets it as a process of its own, then the fault is taken away. Lost is
what was in the history before and is not after; and the same command must work in the end.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.command_process import Forked, act
from benchmarks.trials.fake_stages import make, stage_all
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.ids import format_time, max_id_at, new_id, parse_time, utc_now
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import repair, verify
from mcpfactory_pipeline.workspace.workspace import Workspace

HOLD = "hold books --channel staging --reason audit"
PROMOTE = "promote books --channel production"
_DAC = (1, 2)  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with them, root writes into read-only folders
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION = 0x20080522  # of the structures that capget and capset take


@dataclass(frozen=True)
class Fault:
    """One thing that breaks: how, what meets it, with which exit code and words; `small` bounds the size of a file in bytes."""

    name: str
    spoil: Callable[[Workspace], object]
    command: str
    code: int
    words: str
    hint: str = ""
    small: Callable[[Workspace], int] | None = None
    tmpfs: bool = False


@dataclass(frozen=True)
class FaultResult:
    """What came of a fault: exit code, message, hint; and everything that is not as promised."""

    code: int
    message: str
    hint: str
    wrong: tuple[str, ...]


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Meets every fault once and prints the table."""
    origin, wrong, left_out = prepare(folder / "origin"), 0, 0
    for fault in FAULTS:
        if fault.tmpfs and not can_mount():
            print(f"{fault.name}: not tried, no file system can be mounted here", flush=True)
            left_out += 1
            continue
        shutil.copytree(origin.root, folder / "space", symlinks=True)
        met = meet(fault, Workspace.find(folder / "space"))
        shutil.rmtree(folder / "space")
        wrong += bool(met.wrong)
        print(
            f"{fault.name}: exit {met.code}; {met.message}" + (f"\n  hint: {met.hint}" if met.hint else ""), flush=True
        )
        for line in met.wrong:
            print(f"  NOT AS PROMISED: {line}", flush=True)
    figure = f"{len(FAULTS) - left_out} faults met, {left_out} not possible here; {wrong} not as promised"
    return judged(figure, good=not wrong)


def prepare(root: Path) -> Workspace:
    """A workspace with one server whose first candidate is in production and whose second is in staging."""
    space = make(root, "books")
    stage_all(space)
    assert Forked(act, root, PROMOTE.split()).end()[0] == 0
    (root / "servers/books/source.txt").write_text("books 1")
    stage_all(space)
    return space


def meet(fault: Fault, space: Workspace) -> FaultResult:
    """Makes the fault, lets the command meet it, takes the fault away, and looks at what is left."""
    before = _ids(space)
    with _undone(space):
        fault.spoil(space)
        before = _ids(space) or before  # a fault may rewrite the history; where it cannot be read, it is put back below
        code, err = (_on_small_disk if fault.tmpfs else _command)(space, fault)
    told = next((line for line in err if line.startswith("error: ") or "; hint: " in line), err[-1] if err else "")
    message = told.removeprefix("error: ").partition("; hint: ")[0]
    hint = next((line.partition("hint: ")[2] for line in err if "hint: " in line), "")
    wrong = list(_wrong(fault, code, "\n".join(err), hint))
    wrong += _left(space, fault, before, code)
    return FaultResult(code, message, hint, tuple(wrong))


def _ids(space: Workspace) -> list[str]:
    try:
        return [event["id"] for event in Store(space).history("books")]
    except StateError:
        return []


def _wrong(fault: Fault, code: int, err: str, hint: str) -> Iterator[str]:
    if code != fault.code:
        yield f"exit code {code}, documented is {fault.code}"
    if fault.words not in err:
        yield f"the message does not say {fault.words!r}: {err}"
    if fault.hint not in hint or (fault.code not in {0} and not hint):
        yield f"the hint does not say {fault.hint!r}: {hint}"
    if "Traceback" in err:
        yield f"a traceback: {err}"


def _left(space: Workspace, fault: Fault, before: list[str], code: int) -> Iterator[str]:
    """What is not as it should be once the fault is gone."""
    if _damaged(space):  # files that only a person can put right, or that `--repair` does
        yield from (f"not mended: {entry['message']}" for entry in repair(space) if not entry["mended"])
    after = [event["id"] for event in Store(space).history("books")]
    if after[: len(before)] != before:
        yield f"lost: {[name for name in before if name not in after]}"
    if not fault.command.startswith("run") and len(after) != len(before) + (code == 0):
        yield f"{len(after) - len(before)} events were recorded by a command that ended in {code}"
    if code != 0 and (again := _command(space, fault, bounded=False))[0] != 0:
        yield f"the same command ends in {again[0]} when the fault is gone: {again[1]}"
    yield from (entry["message"] for entry in verify(space))
    for litter in (space.pipeline / "state").glob(".*.tmp"):
        yield f"left behind: {litter.name}"


def _damaged(space: Workspace) -> bool:
    return bool(verify(space))


@contextmanager
def _undone(space: Workspace) -> Iterator[None]:
    """Afterwards folders can be written again, and files that only a person can put right are as they were."""
    kept = {file: file.read_bytes() for file in (space.pipeline / "history").iterdir() if file.is_file()}
    wheels = {file: file.read_bytes() for file in space.artifacts.rglob("*.whl")}
    yield
    for path in (space.pipeline, *space.pipeline.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for file, data in wheels.items():
        file.write_bytes(data)
    for file, data in kept.items():
        if not _ids(space):
            file.write_bytes(data)
    state = Store(space).state_file("books")
    if state.exists() and b'"state": 99' in state.read_bytes():
        state.unlink()


def _command(space: Workspace, fault: Fault, *, bounded: bool = True) -> tuple[int, list[str]]:
    limit = fault.small(space) if fault.small and bounded else None

    def weakened() -> int:
        _weaken()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return act(space.root, fault.command.split())

    code, out, err = Forked(weakened).end()
    return code, [*out.splitlines(), *err.splitlines()]


def _weaken() -> None:
    """Take from this process and its children the powers of root over files; whoever has none keeps none."""
    libc = ctypes.CDLL(None)
    for capability in _DAC:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header, powers = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, powers)
    for at in range(2):  # effective and permitted
        powers[at] &= ~sum(1 << capability for capability in _DAC)
    libc.capset(header, powers)


_ON_SMALL_DISK = """\
set -e
cp -a pipeline "$1"
mount -t tmpfs -o size=8m none pipeline
cp -a "$1/pipeline/." pipeline/
dd if=/dev/zero of=pipeline/filler bs=1k 2>/dev/null || true
shift
code=0
"$@" || code=$?
rm pipeline/filler
cp -a pipeline/. "$OUT/"
exit $code
"""


def can_mount() -> bool:
    """Whether this user may mount a file system of its own."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return done.returncode == 0


def _on_small_disk(space: Workspace, fault: Fault) -> tuple[int, list[str]]:
    """The command with `pipeline/` on a file system that is full; afterwards its files are where they were."""
    aside, out = space.root / "aside", space.root / "out"
    aside.mkdir()
    out.mkdir()
    command = [sys.executable, "-m", "mcpfactory", "pipeline", *fault.command.split()]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", _ON_SMALL_DISK, "sh", str(aside), *command], cwd=space.root,
        capture_output=True, text=True, check=False, env={**os.environ, "OUT": str(out)},
    )  # fmt: skip
    shutil.rmtree(space.pipeline)
    out.rename(space.pipeline)
    return done.returncode, done.stderr.splitlines()


# --- the faults ---


def _nothing(_space: Workspace) -> None:
    pass


def _read_only(folder: str, *, emptied: bool = False) -> Callable[[Workspace], None]:
    """A folder with all that is in it."""

    def spoil(space: Workspace) -> None:
        for path in (space.pipeline / folder, *(space.pipeline / folder).rglob("*")):
            if emptied and path.is_file():
                path.unlink()
            else:
                path.chmod(0o555 if path.is_dir() else 0o444)

    return spoil


def _state(text: Callable[[str], str]) -> Callable[[Workspace], object]:
    def spoil(space: Workspace) -> None:
        file = Store(space).state_file("books")
        file.write_text(text(file.read_text()))

    return spoil


def _history(lines: Callable[[list[str]], list[str]]) -> Callable[[Workspace], object]:
    def spoil(space: Workspace) -> None:
        file = Store(space).history_file("books")
        file.write_text("".join(lines(file.read_text().splitlines(keepends=True))))

    return spoil


def _from_the_future(lines: list[str]) -> list[str]:
    """The history as it would be if the clock had been thirty days ahead until now: every id and moment is later."""
    events = [json.loads(line) for line in lines]
    last = max_id_at(utc_now() + timedelta(days=30))
    for event in events:
        event["at"] = format_time(parse_time(event["at"]) + timedelta(days=30))
        last = event["id"] = new_id(last)
    return [json.dumps(event, sort_keys=True) + "\n" for event in events]


def _wheel(act: Callable[[Path], object]) -> Callable[[Workspace], object]:
    def spoil(space: Workspace) -> None:
        state = Store(space).state("books")
        for file in (space.artifacts / "books" / str(state.candidate)).glob("*.whl"):
            act(file)

    return spoil


def _room(beyond: int, kind: str) -> Callable[[Workspace], int]:
    """Files may grow to the size of the history or state and so many bytes more."""
    return lambda space: (
        (space.pipeline / kind / f"books.{'json' if kind == 'state' else 'jsonl'}").stat().st_size + beyond
    )


_CONFLICT = "<<<<<<< ours\n{0}=======\n{0}>>>>>>> theirs\n"
FAULTS = (
    Fault("disk full, nothing can be written", _nothing, HOLD, 5, "cannot be written: No space left", "free space", tmpfs=True),
    Fault("disk full in the middle of an event", _nothing, HOLD, 5, "history/books.jsonl cannot be written", "free space", _room(25, "history")),
    Fault("read-only history", _read_only("history"), HOLD, 5, "history/books.jsonl cannot be written", "make the folder writable"),
    Fault("read-only state", _read_only("state"), HOLD, 5, "state/books.json cannot be written", "make the folder writable"),
    Fault("read-only locks", _read_only("locks", emptied=True), HOLD, 5, "cannot be locked", "make pipeline/locks/ writable"),
    Fault("read-only artifacts", _read_only("artifacts"), "run books --force", 5, "", "writable"),
    Fault("read-only channel", _read_only("channels/production"), PROMOTE, 5, "channel production cannot be written", "writable"),
    Fault("clock set back by thirty days", _history(_from_the_future), HOLD, 5, "later than this machine's clock", "git log -p"),
    Fault("state of a newer schema", _state(lambda text: text.replace('"state": 3', '"state": 99')), HOLD, 5, "schema 99", "update mcpfactory"),
    Fault("state edited by hand", _state(lambda text: text.replace('"passed"', '"failed"')), HOLD, 5, "does not match its history", "verify --repair books"),
    Fault("state with the marks of a merge", _state(_CONFLICT.format), HOLD, 0, ""),
    Fault("state that is empty", _state(lambda _text: ""), HOLD, 0, ""),
    Fault("state deleted", lambda space: Store(space).state_file("books").unlink(), HOLD, 0, ""),
    Fault("history with a line cut in the middle", _history(lambda lines: [*lines[:2], lines[2][:40] + "\n", *lines[3:]]), HOLD, 5, "line 3 is not a valid event", "git log -p"),
    Fault("history with a torn last line", _history(lambda lines: [*lines, '{"event": "he']), HOLD, 0, ""),
    Fault("history deleted", lambda space: Store(space).history_file("books").unlink(), HOLD, 5, "history/books.jsonl is missing", "git checkout -- pipeline/history"),
    Fault("artifact deleted", _wheel(Path.unlink), PROMOTE, 1, "not on this machine", "pipeline restore books"),
    Fault("artifact changed", _wheel(lambda file: file.write_bytes(b"evil")), PROMOTE, 1, "differs from the checked file", "pipeline restore books"),
)  # fmt: skip
