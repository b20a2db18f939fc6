"""Commands: a program that was built elsewhere, or a script, with the files that it runs, as bytes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.adoption.sources import Collected, Sources
from mcpfactory_pipeline.base.archives import ArchiveEntry, tar_bytes
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.build.leaks import find_leaks_among
from mcpfactory_pipeline.build.programs import ProgramRefusedError

__all__ = ["collect", "command_program", "unpack"]

_BUNDLE: Final = "files.tar"  # not compressed: its bytes depend on no compression library
_RUNS: Final = 0o755


def collect(sources: Sources) -> Collected:
    """Put the files of a command into one archive, whose bytes follow from theirs."""
    adopted = sources.adopted
    names = adopted.own_files(sources.root)
    entries = list(_entries(sources.own(), names)) if names else []
    if leaks := list(find_leaks_among((_BUNDLE, entry.path, entry.data) for entry in entries)):
        raise ProgramRefusedError(f"its files would publish secrets: {'; '.join(leaks[:5])}")
    made = {_BUNDLE: tar_bytes(entries)} if entries else {}
    return Collected(sources.server, adopted.version or "0", made)


def _entries(folder: Path, names: Sequence[str]) -> Iterator[ArchiveEntry]:
    for name in names:
        file = folder / name
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"{name} is not there, or leads out of its folder",
                hint="correct files in the table [adopted], or put it there",
            )
        mode = _RUNS if file.stat().st_mode & 0o111 else 0o644
        yield ArchiveEntry(name, file.read_bytes(), mode)


def unpack(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Lay the files of a command out again in `place/files`."""
    del log
    inside = place / "files"
    inside.mkdir()
    if _BUNDLE not in names:
        return
    with tarfile.open(fileobj=io.BytesIO((files / _BUNDLE).read_bytes())) as archive:
        for member in archive.getmembers():
            target = (inside / member.name).resolve()
            if member.isfile() and target.is_relative_to(inside.resolve()):
                target.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                target.write_bytes(stream.read())
                target.chmod(member.mode & _RUNS)


def command_program(place: Path, start: Sequence[str]) -> tuple[str, ...]:
    """Return the command line over the files that were laid out: words that are files become their places."""
    inside = place / "files"
    return tuple(str(inside / word) if (inside / word).is_file() else word for word in start)
