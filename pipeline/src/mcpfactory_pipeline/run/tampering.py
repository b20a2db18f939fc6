"""Tampering with the histories while a job ran: lines that no command wrote are found, and taken out again.

Where a level of isolation keeps server code to its sandbox, nothing is ever found. Where none does, a forged approval would stand in the history as any
other line does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import read_regular, replace_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.state.history import LARGEST
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.written import was_written

__all__ = ["Baseline", "take_baseline", "undo_tampering"]

_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The histories before a job: of each the size and the time of its last change, and of the job's server every byte of both its files."""

    server: str
    history: bytes
    state: bytes
    signs: Mapping[str, tuple[int, int]]


def take_baseline(store: Store, server: str) -> Baseline:
    """Return what the histories are now. The caller holds the run lock of the server."""
    with file_lock(store.locks / f"{server}.lock"):
        own = _read(store.history_file(server)), _read(store.state_file(server))
    return Baseline(server, *own, dict(_signs(store)))


def undo_tampering(store: Store, before: Baseline, keep: Callable[[str, bytes], Path]) -> list[str]:
    """Take out what no command wrote since, and say what it was, a sentence for each file.

    `keep` puts the bytes that are taken out somewhere, and returns where.
    """
    now = dict(_signs(store))
    changed = {name for name in before.signs.keys() | now.keys() if before.signs.get(name) != now.get(name)}
    found: list[str] = []
    for name in sorted(changed | {before.server}):
        with file_lock(store.locks / f"{name}.lock"):
            found += _check(store, before, name, keep)
    return found


def _check(store: Store, before: Baseline, name: str, keep: Callable[[str, bytes], Path]) -> Iterator[str]:
    file, where = store.history_file(name), store.where(name, "history")
    data = _read(file)
    own = name == before.server
    size = len(before.history) if own else before.signs.get(name, (0, 0))[0]
    if not own and size <= len(
        data
    ):  # seen without its lock, perhaps in the middle of a line that a command was writing
        size = data.rfind(b"\n", 0, size) + 1
    old = before.history if own else data[:size]
    changed = not data.startswith(old) or len(data) < size
    lines = data[size:].splitlines(keepends=True) if not changed else data.splitlines(keepends=True)
    known = was_written(store.locks, name, lines)
    had = set() if all(known) else set(old.splitlines(keepends=True))
    foreign = [line for line, written in zip(lines, known, strict=True) if not written and line not in had]
    if not changed and not foreign:
        if own and data == before.history and _read(store.state_file(name)) != before.state:
            replace_file(store.state_file(name), before.state)
            yield f"{store.where(name, 'state')} was changed, and is again what it was"
        return
    if changed and not own:
        yield f"{where} lost what it had"
        return
    kept = keep(name, data)
    lawful = [line for line, written in zip(lines, known, strict=True) if written and line not in had]
    replace_file(file, old + b"".join(lawful))
    store.write_state(name, fold(name, store.history(name)))
    what = "was changed" if changed else f"got {len(foreign)} lines"
    yield f"{where} {what} that no command of mcpfactory wrote, and is again what it was (kept: {kept})"


def _signs(store: Store) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield size and time of the last change of every history; that time cannot be set."""
    try:
        with os.scandir(store.history_file("x").parent) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    facts = entry.stat()
                    yield entry.name.removesuffix(_SUFFIX), (facts.st_size, facts.st_ctime_ns)
    except FileNotFoundError:
        return


def _read(file: Path) -> bytes:
    """Return the bytes of a file; none of what is no file: code of a server could put a pipe there, and nobody writes into that."""
    try:
        return read_regular(file, LARGEST)
    except OSError:
        return b""
