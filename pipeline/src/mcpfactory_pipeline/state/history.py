"""History of a server: an append-only file with one event per line.

A merge in Git keeps the lines of both branches (union merge).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic_core import from_json

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import read_regular_file, replace_file
from mcpfactory_pipeline.state import event_schema
from mcpfactory_pipeline.state.state import repair_hint

MAX_HISTORY_BYTES: Final = 1 << 31  # maximum size of a history in bytes; enough for millions of events
MAX_EVENT_BYTES: Final = 1 << 24  # maximum size of an event in bytes

# First characters of the lines that Git adds at a merge conflict.
CONFLICT_MARKERS: Final = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")


def read(file: Path, where: str) -> list[event_schema.Event]:
    """Return all events, sorted by ID and without duplicates. A union merge can repeat and reorder lines.

    An incomplete last line is ignored, because the write of this line was interrupted.

    Raises:
        StateError: the file cannot be read, or a line is not a valid event (`event_schema`).
    """
    try:
        data = read_regular_file(file, MAX_HISTORY_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        hint = f"restore it: git checkout -- {where}"
        raise StateError(f"{where} cannot be read: {error.strerror}", hint=hint) from error
    return parse(data, where)


def parse(data: bytes, where: str) -> list[event_schema.Event]:
    """Parse a history by the same rules as `read`."""
    events: dict[str, event_schema.Event] = {}
    lines, limits = data.split(b"\n"), event_schema.newest_valid_times()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = _read_line(line, limits)
        except ValueError as error:
            if number == len(lines) and not _is_json(line):
                break
            raise _invalid_event(where, number, line, error) from error
        events[event["id"]] = event
    return [events[key] for key in sorted(events)]


def _read_line(line: bytes, limits: Mapping[str, str]) -> event_schema.Event:
    if len(line) > MAX_EVENT_BYTES:
        raise ValueError(f"the event is longer than {MAX_EVENT_BYTES} bytes")
    return event_schema.read_event(line, limits)


def _invalid_event(where: str, number: int, line: bytes, error: ValueError) -> StateError:
    place, start = f"{where}, line {number}", repr(line[:60].decode(errors="replace"))
    if line.startswith(CONFLICT_MARKERS):
        return StateError(f"{place} is not a valid event: {start} is a merge conflict marker", hint=repair_hint(where))
    if kind := event_schema.unknown_event_kind(error):
        return StateError(f"{place} is an unknown event, {kind}", hint=event_schema.UPGRADE)
    hint = f"restore the line (git log -p -- {where}), or delete it; then: {repair_hint(where)}"
    return StateError(f"{place} is not a valid event: {start}; {event_schema.describe_invalid_event(error)}", hint=hint)


def event_line(event: event_schema.Event) -> str:
    """Return the line of an event, without a newline."""
    return json.dumps(event, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def append(file: Path, events: Sequence[event_schema.Event], where: str) -> tuple[int, int]:
    """Append events durably. Return the start and end offset of the new lines.

    If the write fails, the previous content is restored. The caller must hold the state lock.
    """
    data = "".join(f"{event_line(event)}\n" for event in events).encode()
    for event in events:
        event_schema.check_event(event, where)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        raise _unwritable(where, error) from error
    try:
        start = _end_of_last_event(descriptor)
        try:
            _write(descriptor, data)
        except OSError as error:
            os.ftruncate(descriptor, start)
            raise _unwritable(where, error) from error
        return start, start + len(data)
    finally:
        os.close(descriptor)


def remove(file: Path, gone: Collection[str], where: str) -> None:
    """Remove the events with these IDs, and leave all other lines unchanged. The caller must hold the state lock."""
    lines = read_regular_file(file, MAX_HISTORY_BYTES).splitlines(keepends=True)
    try:
        replace_file(file, b"".join(line for line in lines if not line.strip() or from_json(line)["id"] not in gone))
    except OSError as error:
        raise _unwritable(where, error) from error


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _end_of_last_event(descriptor: int) -> int:
    """Move to the end of the last complete event. Remove an incomplete last line, or add a missing newline."""
    size, tail = _last_line(descriptor)
    os.lseek(descriptor, 0, os.SEEK_END)
    if not tail:
        return size
    if _is_json(tail):
        os.write(descriptor, b"\n")
        return size + 1
    start = size - len(tail)
    os.ftruncate(descriptor, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return start


def _last_line(descriptor: int) -> tuple[int, bytes]:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    tail, place = b"", size
    while place and b"\n" not in tail:
        length = min(place, 1 << 16)
        place -= length
        os.lseek(descriptor, place, os.SEEK_SET)
        tail = os.read(descriptor, length) + tail
    return size, tail[tail.rfind(b"\n") + 1 :]


def half_written(file: Path, *, remove: bool = False) -> bytes:
    """Return an incomplete last line, or empty bytes. The line may be part of a write in progress.

    With `remove`, the line is deleted. If `remove` is set, the caller must hold the state lock.
    """
    flags = (os.O_RDWR if remove else os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(file, flags)
    except OSError:
        if remove:
            raise
        return b""  # the reader of the history reports the error
    try:
        size, tail = _last_line(descriptor) if stat.S_ISREG(os.fstat(descriptor).st_mode) else (0, b"")
        if not tail.strip() or _is_json(tail):
            return b""
        if remove:
            os.ftruncate(descriptor, size - len(tail))
            os.fsync(descriptor)
        return tail
    finally:
        os.close(descriptor)


def _is_json(line: bytes) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    return True


def _unwritable(where: str, error: OSError) -> StateError:
    return StateError(
        f"{where} cannot be written: {error.strerror}", hint="free space, or make the folder writable; nothing was lost"
    )
