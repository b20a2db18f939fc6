from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

_MAX_JSON: Final = 32 * 1024 * 1024  # maximum size in bytes of a file that is read as JSON


def read_json(file: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; {} if the file is missing, too large or contains no JSON object."""
    try:
        found = {} if file.stat().st_size > _MAX_JSON else json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_regular_file(file: Path, most: int) -> bytes:
    """Return the content of a regular file."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size} bytes, more than {most}", str(file))
        return stream.read()


FileStamp = tuple[int, int, int, int]


def file_stamp(file: str | Path) -> FileStamp | None:
    """Return modification time, size, inode and change time of a file; None if the file is missing.

    A writer can reset the modification time, but not the change time.
    """
    try:
        found = os.stat(file)  # noqa: PTH116 - the dashboard calls this 30,000 times; pathlib takes twice as long
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def open_below(file: Path, root: Path) -> BinaryIO:
    """Open a file below `root` for reading, without blocking and without following links below `root`.

    Raises:
        OSError: the file cannot be read, is a link, or is not a regular file.
    """
    for part in (file, *file.parents):
        if part == root:
            break
        if part.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(part))
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(file, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def venv_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def copy_files(source: Path, files: Iterable[str], target: Path) -> None:
    """Copy files below `source` to the same paths below `target`; links are replaced by their targets."""
    for path in files:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, place)


def replace_file(file: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file atomically and durably: readers see the old or the new content, even after a crash.

    `mode` sets the file's permissions before the first byte is written. The caller must hold a lock for the file.
    """
    move_into_place(write_temporary_file(file, data, mode=mode), file)


def has_file_content(file: Path, data: bytes) -> bool:
    """Return True if a file exists and has this content."""
    return file.is_file() and file.read_bytes() == data


def write_if_changed(file: Path, data: bytes) -> bool:
    """Write a file if its content differs, and return True if the file was written."""
    if has_file_content(file, data):
        return False
    replace_file(file, data)
    return True


def write_temporary_file(file: Path, data: bytes, *, mode: int | None = None) -> Path:
    """Write content to a temporary file next to `file`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    remove_temporary_files(file)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode & 0o600), "wb") as stream:
            if mode is not None:
                temporary.chmod(mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def remove_temporary_files(file: Path) -> None:
    """Remove temporary files that killed processes left next to the file."""
    for leftover in file.parent.glob(f".{glob.escape(file.name)}.*.tmp"):
        leftover.unlink(missing_ok=True)


def move_into_place(temporary: Path, file: Path) -> None:
    """Replace a file with its temporary file, durably."""
    temporary.replace(file)
    if os.name == "posix":  # Windows cannot sync a folder
        descriptor = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# First words of ValueError messages from Python, not from mcpfactory.
_PYTHONS: Final = ("invalid", "Invalid", "Exceeds the limit", "could not convert")


def unreadable_json_reason(error: Exception) -> str:
    """Describe why a JSON file cannot be read."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON: line {error.lineno}"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    if isinstance(error, ValueError) and not str(error).startswith(_PYTHONS):
        return str(error)
    return "a part of it has an unexpected format"
