"""The history of one server: one event a line, only ever added to; two branches are merged by keeping all their lines."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.state.state import Event, repair_hint

__all__ = ["CONFLICT_MARKERS", "append", "read"]

# The beginnings of the lines that git writes into a file that it cannot merge.
CONFLICT_MARKERS: Final = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")


def read(file: Path, where: str) -> list[Event]:
    """All events, in the order of their ids, each once (a union merge may repeat and reorder lines).

    A last line without its end that is no JSON was being written when the machine stopped; nobody was told of it, and it is
    left out.

    Raises:
        StateError: on any other line that cannot be read.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(f"{where} cannot be read: {error.strerror}", hint="make it readable") from error
    events: dict[str, Event] = {}
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            events[event["id"]] = event
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):
                break
            raise _no_event(where, number, line) from error
    return [events[key] for key in sorted(events)]


def _no_event(where: str, number: int, line: bytes) -> StateError:
    words = f"{where}, line {number} is not an event: {line[:60].decode(errors='replace')!r}"
    if line.startswith(CONFLICT_MARKERS):
        return StateError(f"{words}, but the mark of a merge", hint=repair_hint(where))
    return StateError(
        words,
        hint=f"put the line back as it was (git log -p -- {where}), or take it out; then: {repair_hint(where)}",
    )


def append(file: Path, events: Sequence[Event], where: str) -> None:
    """Add events and return when they are on disk; on failure the file is as it was. The caller holds the state lock."""
    text = "".join(json.dumps(event, sort_keys=True, ensure_ascii=False) + "\n" for event in events)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        raise _unwritable(where, error) from error
    try:
        start = _end_of_last_event(descriptor)
        try:
            _write(descriptor, text.encode())
        except OSError as error:
            os.ftruncate(descriptor, start)
            raise _unwritable(where, error) from error
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _end_of_last_event(descriptor: int) -> int:
    """Put the descriptor behind the last whole event: a torn last line goes, a whole one gets its end."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0:
        return 0
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = b""
    while chunk := os.read(descriptor, 1 << 20):
        data += chunk
    tail = data[data.rfind(b"\n") + 1 :]
    if not tail:
        return size
    if _is_event(tail):
        os.write(descriptor, b"\n")
        return size + 1
    start = size - len(tail)
    os.ftruncate(descriptor, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return start


def _is_event(line: bytes) -> bool:
    try:
        event: Any = json.loads(line)
    except ValueError:
        return False
    return isinstance(event, dict) and "id" in event


def _unwritable(where: str, error: OSError) -> StateError:
    return StateError(
        f"{where} cannot be written: {error.strerror}", hint="free space, or make the folder writable; nothing was lost"
    )
