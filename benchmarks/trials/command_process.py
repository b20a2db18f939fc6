"""One command on a workspace of a trial, in a process of its own.

The process is forked, so that it need not import the factory again. `kill` is the number of the file operation before which it
kills itself with SIGKILL, 0 for never. Operations are those that change something: opening to write, the second half of what is
written, renaming, removing, making a folder, cutting a file. Where `TRIAL_TRACE` names a file, what was synced and renamed is
listed there in its order. `run` is `mcpfactory pipeline run` with the cheap stages; anything else is handed to
`mcpfactory pipeline` as it is. The exit code is the command's; of `carry_out` the last line on stderr says how many operations
there were, and which were second halves.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.trials.fake_stages import FAKE_STAGES
from benchmarks.trials.mutants import apply_mutant
from mcpfactory.main import main as mcpfactory
from mcpfactory_pipeline.reporting import make_reporter
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
_LOADED: Final = ("mcpfactory.commands.pipeline_run", "mcpfactory.operations", "mcpfactory_pipeline.operations.table")


class Forked:
    """A process that is forked from this one, and what it prints."""

    def __init__(self, action: Callable[..., int], *given: Any) -> None:
        for module in _LOADED:  # once, and not in every process
            import_module(module)
        self._streams = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with this object
        self.process = multiprocessing.get_context("fork").Process(target=self._begin, args=(action, *given))
        self.process.start()

    def _begin(self, action: Callable[..., int], *given: Any) -> None:
        sys.stdout, sys.stderr = self._streams
        for number, stream in enumerate(self._streams, 1):
            os.dup2(stream.fileno(), number)
        sys.exit(action(*given))

    def end(self) -> tuple[int, str, str]:
        """Wait for the process; return its exit code, stdout and stderr."""
        self.process.join()
        said = []
        for stream in self._streams:
            with stream:
                stream.seek(0)
                said.append(stream.read())
        return self.process.exitcode or 0, said[0], said[1]


@dataclass
class Operations:
    """How many changes to files there were, and which of them were the second half of what was written."""

    count: int = 0
    halves: list[int] = field(default_factory=list)


def count_operations(kill: int) -> Operations:
    """Counts this process's changes to files from now on, and ends it before the one that is named."""
    found = Operations()

    def operation() -> None:
        found.count += 1
        if found.count == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def half() -> None:
        found.halves.append(found.count + 1)
        operation()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writes and event not in _CHANGES:
            return
        operation()

    sys.addaudithook(hook)
    tear_writes(half)
    return found


class _TornStream:
    """A stream that writes in two halves, with an operation between them."""

    def __init__(self, stream: IO[bytes], operation: Callable[[], None]) -> None:
        self._stream, self._operation = stream, operation

    def write(self, data: bytes) -> int:
        """Writes all, if it comes to that."""
        half = len(data) // 2
        self._stream.write(data[:half])
        self._stream.flush()
        self._operation()
        self._stream.write(data[half:])
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _TornStream:
        self._stream.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stream.close()


def tear_writes(operation: Callable[[], None]) -> None:
    """Lets this process die in the middle of what it writes into a file, too."""
    write, opened = os.write, io.open

    def write_torn(descriptor: int, data: bytes) -> int:
        half = write(descriptor, bytes(data[: len(data) // 2])) if len(data) > 1 else 0
        operation()
        return half + write(descriptor, bytes(data[half:]))

    def open_torn(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        stream = opened(file, mode, *more, **options)
        return _TornStream(stream, operation) if mode == "wb" else stream

    os.write = write_torn  # type: ignore[assignment]
    io.open = open_torn


def trace_syncs() -> list[str]:
    """Lists from now on what this process syncs and renames."""
    found: list[str] = []
    sync = os.fsync

    def traced(descriptor: int) -> None:
        found.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink()}")
        sync(descriptor)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename":
            found.append(f"rename {os.fspath(args[1])}")

    os.fsync = traced  # type: ignore[assignment]
    sys.addaudithook(hook)
    return found


def act(root: Path, words: list[str]) -> int:
    """Does what the words say and gives the exit code."""
    os.chdir(root)
    apply_mutant()
    if words[0] != "run":
        sys.argv = ["mcpfactory", "pipeline", *words]
        try:
            mcpfactory()
        except SystemExit as end:
            return int(end.code or 0)
        return 0
    names = [word for word in words[1:] if word != "--force"]
    reporter = make_reporter("plain")
    force = "--force" in words
    outcome = run_pipeline(Workspace.find(root), names, force=force, jobs=2, reporter=reporter, stages=FAKE_STAGES)
    return 5 if outcome.errored or outcome.interrupted else int(outcome.failed)


def carry_out(root: Path, words: list[str], kill: int) -> int:
    """Act, and count."""
    done, trace = count_operations(kill), os.environ.get("TRIAL_TRACE")
    traced = trace_syncs() if trace else []
    code = act(root, words)
    if trace:
        Path(trace).write_text("\n".join(traced))
    print("operations", done.count, *done.halves, file=sys.stderr, flush=True)
    return code
