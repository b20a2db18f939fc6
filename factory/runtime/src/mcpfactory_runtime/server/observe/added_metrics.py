"""Series of several processes behind one port, added up by whichever of them is scraped.

Each process writes its series into a file of one folder: every second, before it answers a scrape, and at its end. A scrape adds its
own to those of all files. What was counted by a process that has ended is kept, so that no counter ever goes back; gauges are of
those that live, which a lock on a file shows.

prometheus_client's own way (`PROMETHEUS_MULTIPROC_DIR`) has to be chosen by a variable before the library is loaded, when nobody
knows yet how many processes there will be; and of series that were made before the processes were, it sees nothing.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

__all__ = ["AddedMetrics", "Families"]

Families = dict[str, tuple[str, str, str, dict[tuple[str, tuple[tuple[str, str], ...]], float]]]
"""Name → documentation, type, unit, and samples: name and labels → value."""

_OF_THE_LIVING: Final = {"gauge", "gaugehistogram", "stateset", "unknown"}
_ENDED: Final = "ended.json"


class AddedMetrics:
    """The series of this process and of the others of a folder. From any thread.

    Args:
        own: returns the series of this process.
        folder: where all of them write; it is made when it is missing.
        name: of this process, in no use by another one ever.
    """

    def __init__(self, own: Callable[[], Families], folder: Path, name: str) -> None:
        self._own, self._folder = own, folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = folder / f"{name}.json"
        self._life = os.open(self._file.with_suffix(".alive"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._life, fcntl.LOCK_EX)  # until this process ends, however it does
        self._fold()

    def write(self) -> None:
        """Write down what this process has counted."""
        with self._locked(fcntl.LOCK_SH):
            _write(self._file, self._own())

    def sums(self) -> Families:
        """Return the sums, after this process has written down what it has counted."""
        self.write()
        with self._locked(fcntl.LOCK_SH):
            found = [(file.stem == "ended" or not _lives(file), _read(file)) for file in self._files()]
        sums: Families = {}
        for ended, families in found:
            _add(sums, families, ended=ended)
        return sums

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _fold(self) -> None:
        """Put what those that have ended counted into one file, so that their number grows no work."""
        with self._locked(fcntl.LOCK_EX):
            ended = [file for file in self._files() if file.name != _ENDED and file != self._file and not _lives(file)]
            sums: Families = {}
            for file in [self._folder / _ENDED, *ended]:
                with suppress(FileNotFoundError):
                    _add(sums, _read(file), ended=True)
            if ended:
                _write(self._folder / _ENDED, sums)
            for file in ended:
                file.unlink()
                file.with_suffix(".alive").unlink(missing_ok=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, how)
            yield
        finally:
            os.close(lock)


def _lives(file: Path) -> bool:
    """Whether the process of a file has not ended."""
    try:
        lock = os.open(file.with_suffix(".alive"), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _add(sums: Families, families: Families, *, ended: bool) -> None:
    for name, (documentation, kind, unit, samples) in families.items():
        if ended and kind in _OF_THE_LIVING:
            continue
        into = sums.setdefault(name, (documentation, kind, unit, {}))[3]
        for key, value in samples.items():
            add = _adding(kind, key[0])
            into[key] = value if key not in into else add((into[key], value))


def _adding(kind: str, sample: str) -> Callable[[tuple[float, float]], float]:
    """Return what makes one value of two: mostly their sum."""
    if kind == "info":
        return max
    return min if sample.endswith("_created") else math.fsum


def _write(file: Path, families: Families) -> None:
    rows = [
        [name, *about, [[sample, labels, value] for (sample, labels), value in samples.items()]]
        for name, (*about, samples) in families.items()
    ]
    beside = file.with_suffix(".tmp")
    beside.write_text(json.dumps(rows), encoding="utf-8")
    beside.replace(file)


def _read(file: Path) -> Families:
    rows: Any = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: (
            documentation,
            kind,
            unit,
            {(sample, tuple((key, text) for key, text in labels)): value for sample, labels, value in samples},
        )
        for name, documentation, kind, unit, samples in rows
    }
