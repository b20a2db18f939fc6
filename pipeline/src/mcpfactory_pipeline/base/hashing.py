"""Hashes of content: bytes, files, folders, records. Only content counts, never times or owners."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError

__all__ = ["ABSENT", "hash_bytes", "hash_file", "hash_files", "hash_record", "source_files"]

ABSENT: Final = "none"

# What lies in a server's folder and is no source: environments, caches, secrets; build output at the top only, for a
# package may have a module of such a name.
_NOT_SOURCE: Final = re.compile(
    r"\.git|\.venv|__pycache__|\.\w+_cache|\.hypothesis|node_modules|\.DS_Store|.*\.egg-info|.*\.py[co]|\.env(\..*)?"
)
_NOT_SOURCE_AT_TOP: Final = frozenset({"build", "dist", "env", "venv"})


def hash_bytes(data: bytes) -> str:
    """`sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def hash_file(file: str | Path) -> str:
    """Return the hash of a file's content; `none` when there is no such file."""
    try:
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - 1,000 servers are read for a plan; pathlib costs half of that
            return hash_bytes(stream.read())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ABSENT


def hash_record(record: Mapping[str, str]) -> str:
    """Return the hash of named texts; the order of the names does not matter."""
    return hash_bytes(json.dumps(dict(record), sort_keys=True).encode())


def hash_files(root: Path, files: Iterable[str]) -> str:
    """Return the hash of files below `root` with their paths; `none` when there are none."""
    record = {path: hash_file(f"{root}/{path}") for path in files}
    return hash_record(record) if record else ABSENT


def source_files(root: Path, *, without: tuple[str, ...] = ()) -> list[str]:
    """Return the paths of all source files below `root`, sorted, with `/` between parts; `without` names folders to leave out.

    Links to files inside `root` count as files.

    Raises:
        StageError: for a link that leads out of `root`: what it points to could change unseen.
    """
    found: list[str] = []
    _walk(str(root), "", _NOT_SOURCE_AT_TOP | set(without), found)
    return sorted(found)


def _walk(root: str, below: str, without: frozenset[str], found: list[str]) -> None:
    try:
        entries = list(os.scandir(os.path.join(root, below) if below else root))  # noqa: PTH118 - 1,000 servers are walked for a plan; pathlib is five times slower
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        if _NOT_SOURCE.fullmatch(entry.name) or path in without:
            continue
        if entry.is_symlink():
            _check_link(root, path)
        if entry.is_dir(follow_symlinks=False):
            _walk(root, path, without, found)
        elif entry.is_file():
            found.append(path)


def _check_link(root: str, path: str) -> None:
    target = Path(root, path).resolve()
    if not target.is_relative_to(Path(root).resolve()) or target.is_dir():
        raise StageError(
            f"{path} is a link that leads out of the server's folder, or to a folder",
            hint="replace it by what it points to: a server's folder stands on its own",
        )
