"""Archives whose bytes follow from their content alone: sorted names, one time, no owner, plain modes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["ArchiveEntry", "gzip_bytes", "tar_bytes", "zip_bytes"]

_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows
_LEVEL: Final = 6


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """What stands at one path of a file system: a file, a link (`link` is what it points to), or a folder.

    `path` is relative, with `/` between parts; `owner` is the number of user and group.
    """

    path: str
    data: bytes = b""
    mode: int = 0o644
    link: str = ""
    folder: bool = False
    owner: int = 0


def zip_bytes(files: Mapping[str, bytes], *, compress: bool = False) -> bytes:
    """Return a zip with these files, sorted by path, all of them of 1980 and mode 0644.

    Without `compress` they are stored: the bytes then depend on no compression library, and wheels do not shrink anyway.
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, _ZIP_TIME)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # as if made on Unix, wherever it is made
            info.compress_type = method
            archive.writestr(info, files[path], compresslevel=_LEVEL if compress else None)
    return buffer.getvalue()


def tar_bytes(entries: Iterable[ArchiveEntry]) -> bytes:
    """Return a tar with these entries, sorted by path, of the beginning of 1970; folders above an entry are added."""
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
    info.mode, info.uid, info.gid = entry.mode, entry.owner, entry.owner
    if entry.link:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
    elif entry.folder:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(entry.data)
    return info


def gzip_bytes(data: bytes) -> bytes:
    """Return the data, compressed, with neither name nor time in the header."""
    return gzip.compress(data, compresslevel=_LEVEL, mtime=0)
