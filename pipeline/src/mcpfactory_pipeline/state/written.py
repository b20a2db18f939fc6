"""Which lines of a server's history commands of mcpfactory wrote on this machine: a note beside the locks, for what looks after a job.

Only hashes are noted, and only the newest: a line that is in the history and not in here came from elsewhere (a pull, a merge, an editor, code
of a server). That counts while a job runs; at other times a history may grow as git likes.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["note_written", "was_written"]

_LARGEST: Final = 1 << 18  # bytes of notes; the older half goes
_LINE: Final = 33  # bytes of a note


def note_written(locks: Path, server: str, line: str) -> None:
    """Note a line that is about to be written; the caller holds the state lock. Where no note can be taken, there is none."""
    file = _file(locks, server)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            stream.write(f"{_digest(line.encode())}\n".encode())
            size = stream.tell()
        if size > _LARGEST:
            file.write_bytes(file.read_bytes()[-(_LARGEST // 2 // _LINE * _LINE) :])


def was_written(locks: Path, server: str, lines: list[bytes]) -> list[bool]:
    """Return for each line whether it was noted."""
    try:
        noted = set(_file(locks, server).read_bytes().split())
    except OSError:
        noted = set()
    return [_digest(line).encode() in noted for line in lines]


def _digest(line: bytes) -> str:
    return hashlib.sha256(line.strip()).hexdigest()[: _LINE - 1]


def _file(locks: Path, server: str) -> Path:
    return locks / f"{server}.written"
