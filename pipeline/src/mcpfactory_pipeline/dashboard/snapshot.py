"""One look at a whole workspace that costs next to nothing, for those who wait for a change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.locks import active_runs

__all__ = ["glance"]

_FOLDERS: Final = ("state", "history", "locks", "locks/runs")
_TELLING: Final = (".json", ".jsonl", ".running")  # a lock that is only held tells nothing


def glance(pipeline: Path) -> str:
    """Another text whenever a state, a history or who is at work has changed; from names, times and sizes of files."""
    told = hashlib.sha256()
    for folder in _FOLDERS:
        told.update(repr(sorted(_listed(pipeline / folder))).encode())
    told.update(repr(sorted(active_runs(pipeline / "locks"))).encode())  # one that is killed changes no file
    return told.hexdigest()[:16]


def _listed(folder: Path) -> Iterator[tuple[str, int, int]]:
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(_TELLING) and not entry.name.startswith("."):
                with suppress(OSError):
                    found = entry.stat()
                    yield entry.name, found.st_mtime_ns, found.st_size
