"""Workspace files for pages: reports, manifests, logs, and stamps that detect changes.

Missing or damaged files are ignored, so that broken servers still have a page.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.base.files import FileStamp, file_stamp, open_below, read_json
from mcpfactory_pipeline.base.locks import active_runs
from mcpfactory_pipeline.dashboard.facts import (
    STATUSES,
    LogFacts,
    Pager,
    ShownStatus,
    outcome_status,
    page_number,
    shorten,
)

_MAX_LOG: Final = 12_000  # maximum number of bytes from the end of a log
# terminal escape sequences and control characters
_COMMANDS: Final = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ "
    r"-/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_TRACEBACK: Final = re.compile(r"\s*Traceback \(")
_CHAINED: Final = 5  # maximum number of lines between an exception and the traceback that it caused
_MANIFEST: Final = "/_generated/manifest.json"


def open_log(file: Path) -> BinaryIO:
    """Open the log `ARTIFACTS/SERVER/logs/STAGE.log`. Raises `OSError` if the log is not a regular file."""
    return open_below(file, file.parents[2])


def strip_terminal_codes(data: bytes) -> str:
    """Decode text and remove terminal codes.

    For an overwritten line, such as a progress bar, keep only the last state.
    """
    text = data.decode("utf-8", errors="replace")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _COMMANDS.sub("", text)


def read_log(file: Path) -> str:
    """Return the end of a log as plain text, or "" if it does not exist."""
    try:
        with open_log(file) as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _MAX_LOG))
            text = strip_terminal_codes(stream.read(_MAX_LOG))
    except OSError:
        return ""
    return text if size <= _MAX_LOG else f"… {size - _MAX_LOG} bytes before this …\n{text.partition(chr(10))[2]}"


def read_validation_report(file: Path) -> Mapping[str, Any]:
    """Return the validation report, or an empty report if the file is not on this machine."""
    report = read_json(file)
    return report if "findings" in report else {}


Stamps = tuple[FileStamp | None, ...]

_FOLDERS: Final = ("state", "history", "locks", "locks/runs")
_SUFFIXES: Final = (".json", ".jsonl", ".running")  # lock files are omitted, because they do not affect any page
_IGNORED: Final = frozenset(
    {".git", ".venv", "__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)


def hash_workspace_files(pipeline: Path, servers: Sequence[str]) -> str:
    """Return a hash of the names of servers, and of the names and stamps of state files, histories and run locks."""
    digest = hashlib.sha256(repr(servers).encode())
    for folder in _FOLDERS:
        digest.update(repr(sorted(_entries_of(pipeline / folder))).encode())
    # A killed run changes no file, so include the active runs.
    digest.update(repr(sorted(active_runs(pipeline / "locks"))).encode())
    return digest.hexdigest()[:16]


def _entries_of(folder: Path) -> Iterator[tuple[str, FileStamp]]:
    with suppress(OSError):
        for entry in os.scandir(folder):
            named = entry.name.endswith(_SUFFIXES) and not entry.name.startswith(".")
            if named and (stamp := file_stamp(entry.path)) is not None:
                yield entry.name, stamp


def channel_page_stamps(channels: Path) -> Iterator[tuple[str, FileStamp | None]]:
    """Yield channel folders and their projects, with stamps."""
    for channel in _folders_in(str(channels)):
        for folder in (f"{channel}/simple", *_folders_in(f"{channel}/simple")):
            yield folder, file_stamp(folder)


def _folders_in(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    return []


def paths_below(folder: str) -> Iterator[str]:
    """Yield a folder with all folders and files in it."""
    yield folder
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name in _IGNORED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from paths_below(entry.path)
        else:
            yield entry.path


def file_stamps(paths: Iterable[str]) -> Stamps:
    """Return the stamp of each file or folder. The stamp of a missing file is None. Equal stamps mean equal content."""
    return tuple(map(file_stamp, paths))


_READ: Final = 4 * 1024 * 1024  # maximum number of bytes that are read from the end of a log
_PAGE: Final = 12_000  # maximum number of characters per page; with escapes, a page stays below 100 kB
_LEAST: Final = 40  # number of characters of HTML per line
_LINE: Final = 1_000  # maximum number of characters of a line; longer lines are usually data, not messages
_QUERY: Final = 200  # maximum number of characters of a search text
_WRONG: Final = re.compile(
    r"\b(?:error|failed|failure|fatal|traceback|exception|assert)\b|^E[ \t]{2,}|^[^\s:]*Error:", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. `wrong` marks a line about an error."""

    number: int
    page: int
    text: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of a log. With `query`, the page has only lines that contain this text.

    Attributes:
        going: True while the run writes the log.
        unread: number of bytes at the start of a long log that are not read.
        wrong: number of the first line about an error, or 0.
    """

    workspace: str
    server: str
    stage: str
    status: ShownStatus
    run: str
    going: bool
    size: int
    unread: int
    wrong: int
    wrong_page: int
    query: str
    pager: Pager
    lines: tuple[LogLine, ...]


@contextmanager
def open_stage_log(facts: LogFacts) -> Iterator[BinaryIO]:
    """Open a log for reading."""
    try:
        stream = open_log(facts.file)
    except OSError as error:
        again = f"mcpfactory pipeline run {facts.server} --force"
        if error.errno in {errno.EINVAL, errno.ELOOP}:
            raise NotFoundError(
                f"the log of {facts.stage} of {facts.server} is not a regular file: {error.strerror}",
                hint=f"remove logs/{facts.file.name} from the artifacts of {facts.server}, then {again}",
            ) from error
        raise NotFoundError(f"the log of {facts.stage} of {facts.server} is not on this machine", hint=again) from error
    with stream:
        yield stream


def log_page(facts: LogFacts, stream: BinaryIO, *, query: str = "", page: str = "") -> LogPage:
    """Return a page of a stage's log. `query` selects lines that contain this text.

    The default page contains the first line about an error. If there is no error, the default is the last page.
    """
    size, query = stream.seek(0, 2), query.strip()[:_QUERY]
    unread = max(0, size - _READ)
    stream.seek(unread)
    lines = strip_terminal_codes(stream.read(_READ)).removesuffix("\n").split("\n") if size else []
    starts = _page_starts(lines, range(len(lines)))
    wrong = _first_error(lines)
    shown: Sequence[int] = range(len(lines))
    first = len(starts) if wrong < 0 else bisect_right(starts, wrong)
    if query:
        shown = [number for number, line in enumerate(lines) if query.casefold() in line.casefold()]
        first = 1
    parts = [*_page_starts(lines, shown), len(shown)]
    pages = max(1, len(parts) - 1)
    number = page_number(page, pages) if page else max(1, first)
    status = outcome_status(facts.outcome) if facts.outcome else STATUSES["never"]
    return LogPage(
        workspace=facts.workspace,
        server=facts.server,
        stage=facts.stage,
        status=STATUSES["running"] if facts.going else status,
        run=facts.run,
        going=facts.going,
        size=size,
        unread=unread,
        wrong=wrong + 1,
        wrong_page=bisect_right(starts, wrong),
        query=query,
        pager=Pager(number, pages, len(shown)),
        lines=tuple(
            LogLine(at + 1, bisect_right(starts, at), shorten(lines[at], _LINE), _is_wrong(lines[at]))
            for at in shown[parts[number - 1] : parts[min(number, len(parts) - 1)]]
        ),
    )


def _first_error(lines: Sequence[str]) -> int:
    """Return the index of the first line about an error, or -1. In a traceback, this is the line of the exception."""
    found = next((number for number, line in enumerate(lines) if _is_wrong(line)), -1)
    last = len(lines) - 1
    while 0 <= found < last and _TRACEBACK.match(lines[found]):
        indent = lines[found].partition("Traceback")[0] + " "
        end = next(
            (at for at in range(found + 1, last) if lines[at].strip() and not lines[at].startswith(indent)), last
        )
        # another traceback follows if the exception caused a second one
        found = next((at for at in range(end + 1, min(end + _CHAINED, last)) if _TRACEBACK.match(lines[at])), end)
    return found


def _is_wrong(line: str) -> bool:
    return len(line) <= _LINE and bool(_WRONG.search(line))


def _page_starts(lines: Sequence[str], shown: Sequence[int]) -> list[int]:
    starts, room = list[int](), 0
    for index, number in enumerate(shown):
        room -= max(_LEAST, min(len(lines[number]), _LINE))
        if room < 0:
            starts.append(index)
            room = _PAGE - max(_LEAST, min(len(lines[number]), _LINE))
    return starts
