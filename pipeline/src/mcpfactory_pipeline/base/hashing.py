"""Hash content: canonical JSON, files, folders and reproducible archives.

States are serialized for every event, so `canonical_json` avoids the slow `json.dumps(…, indent=2)`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError

ABSENT: Final = "none"

# Files in a server's folder that are not sources: environments, caches, secrets.
# Build output is excluded only at the top level, because a package may have a module named `build` or `dist`.
_NOT_SOURCE: Final = re.compile(
    r"\.git|\.venv|__pycache__|\.\w+_cache|\.hypothesis|node_modules|\.DS_Store|.*\.egg-info|.*\.py[co]|\.env(\..*)?"
)
_NOT_SOURCE_AT_TOP: Final = frozenset({"build", "dist", "env", "venv"})


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of data as `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def shorten_hash(value: str) -> str:
    """Return `#` and the first 16 digits of a hash. Any other text is returned unchanged."""
    return f"#{value[7:23]}" if value.startswith("sha256:") else value


def hash_file(file: str | Path) -> str:
    """Return the hash of a file's content; `none` for a missing file."""
    try:
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - a plan reads 1,000 servers; pathlib takes twice as long
            return hash_bytes(stream.read())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ABSENT


def hash_named_texts(record: Mapping[str, str]) -> str:
    """Return one hash of named texts. The order of the texts does not matter."""
    return hash_bytes(json.dumps(dict(record), sort_keys=True).encode())


def hash_files(root: Path, files: Iterable[str]) -> str:
    """Return one hash of the content and paths of files below `root`; `none` without files."""
    record = {path: hash_file(f"{root}/{path}") for path in files}
    return hash_named_texts(record) if record else ABSENT


def list_source_files(root: Path, *, without: tuple[str, ...] = ()) -> list[str]:
    """Return the sorted POSIX paths of all source files below `root`.

    `without` are the names of folders to omit. A link to a file inside `root` counts as a file.

    Raises:
        StageError: a link points outside `root`.
    """
    found: list[str] = []
    _walk(str(root), "", _NOT_SOURCE_AT_TOP | set(without), found)
    return sorted(found)


def _walk(root: str, below: str, without: frozenset[str], found: list[str]) -> None:
    try:
        entries = list(os.scandir(os.path.join(root, below) if below else root))  # noqa: PTH118 - a plan walks 1,000 servers; pathlib takes five times as long
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
            f"{path} is a link to a folder, or to a file outside the server's folder",
            hint="replace the link with the file or folder",
        )


_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)  # earliest time that the ZIP format can store
_LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """File or folder in an archive. `path` is relative and uses `/`."""

    path: str
    data: bytes = b""
    mode: int = 0o644
    folder: bool = False


def zip_bytes(files: Mapping[str, bytes], *, compress: bool = False) -> bytes:
    """Return a zip with the given files, sorted by path, with the date 1980-01-01 and the mode 0644.

    Uncompressed archives do not depend on the version of a compression library.
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, _ZIP_TIME)
            # Set the system to Unix and the mode to 644, so that equal files give equal bytes on every system.
            info.create_system, info.external_attr = 3, 0o100644 << 16
            info.compress_type = method
            archive.writestr(info, files[path], compresslevel=_LEVEL if compress else None)
    return buffer.getvalue()


def tar_bytes(entries: Iterable[ArchiveEntry]) -> bytes:
    """Return a tar with these entries and their parent folders, sorted by path and dated 1970-01-01."""
    known = {entry.path: entry for entry in entries}
    for path in list(known):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            known.setdefault(above, ArchiveEntry(above, mode=0o755, folder=True))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(known):
            archive.addfile(_info(known[path]), io.BytesIO(known[path].data))
    return buffer.getvalue()


def _info(entry: ArchiveEntry) -> tarfile.TarInfo:
    info = tarfile.TarInfo(entry.path)
    info.mode = entry.mode
    if entry.folder:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(entry.data)
    return info


def canonical_json(value: object) -> str:
    """Return data as JSON with sorted keys, an indent of two and no final newline. Keys must be strings."""
    return _written(value, "\n")


def _written(value: object, line: str) -> str:
    """Return a value as JSON text. Each further line begins with `line`."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = f"{line}  "
        facts = [f"{inner}{_quoted(key)}: {_written(value[key], inner)}" for key in sorted(value)]
        return f"{{{','.join(facts)}{line}}}"
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        inner = f"{line}  "
        return f"[{','.join(inner + _written(one, inner) for one in value)}{line}]"
    return json.dumps(value)
