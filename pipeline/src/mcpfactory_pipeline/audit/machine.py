"""What the file system says of what a server starts: whether it is there, and whether others than its owner may change it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.audit.inventory import ConfiguredServer

__all__ = ["NOTHING_KNOWN", "FilesLookedAt", "MachineFacts", "examine_files"]

_WRITERS: Final = 0o022
_VARIABLE: Final = re.compile(r"\$\{?\w|%\w+%|\{env:")


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Of one server: where its program is ("" when it is not there, None when that cannot be told), and its files.

    `missing` are files that are not there; `replaceable` maps each that others may change to what lets them.
    """

    program: str | None = None
    missing: tuple[str, ...] = ()
    replaceable: tuple[tuple[str, str], ...] = ()


NOTHING_KNOWN: Final = MachineFacts()


@dataclass(frozen=True, slots=True)
class FilesLookedAt:
    """What one audit has asked the file system already: thousands of servers may have the same program."""

    programs: dict[tuple[str, str], str] = field(default_factory=dict)
    replacers: dict[str, str] = field(default_factory=dict)

    def program(self, word: str, search: str) -> str:
        """Return where a program is that is named without a folder; "" where there is none."""
        if (word, search) not in self.programs:
            self.programs[word, search] = shutil.which(word, path=search) or ""
        return self.programs[word, search]

    def who_replaces(self, path: str) -> str:
        """Return what lets others than its owner replace a file; "" where nothing does."""
        if path not in self.replacers:
            self.replacers[path] = _who_replaces(Path(path))
        return self.replacers[path]


def examine_files(
    server: ConfiguredServer, environ: Mapping[str, str], home: Path, looked: FilesLookedAt
) -> MachineFacts:
    """Return what the file system says of a server that is started here. Nothing is run."""
    if not server.words or "wsl" in server.words[0].lower():
        return NOTHING_KNOWN
    folder = _expanded(server.folder, home) if server.folder and not _VARIABLE.search(server.folder) else None
    search = server.environ.get("PATH") or environ.get("PATH", "")
    program = _program(server.words[0], search, home, folder, looked)
    missing = []
    paths = [program] if program else []
    for script in server.origin.scripts:
        place = _place(script, home, folder)
        if place is None or script == server.words[0]:
            continue
        if not place.exists():
            missing.append(script)
        else:
            paths.append(str(place))
    replaceable = ((path, looked.who_replaces(path)) for path in dict.fromkeys(paths))
    return MachineFacts(program, tuple(missing), tuple((path, why) for path, why in replaceable if why))


def _program(word: str, search: str, home: Path, folder: Path | None, looked: FilesLookedAt) -> str | None:
    if _VARIABLE.search(word):
        return None
    if not re.search(r"[/\\]", word):
        return looked.program(word, search)
    place = _place(word, home, folder)
    if place is None:
        return None
    return str(place) if place.exists() else ""


def _place(word: str, home: Path, folder: Path | None) -> Path | None:
    """Return where a word leads; None where that depends on the folder that the client happens to start it in, or on its variables."""
    if _VARIABLE.search(word) or re.match(r"[A-Za-z]:[\\/]|\\\\|file:", word):
        return None
    path = _expanded(word, home)
    if path.is_absolute():
        return path
    return folder / path if folder is not None else None


def _expanded(word: str, home: Path) -> Path:
    return home / word[2:] if word.startswith("~/") else Path(word)


def _who_replaces(path: Path) -> str:
    """Return what lets others than its owner replace a file: its own mode, or that of a folder that it is in."""
    try:
        for place in _chain(path.resolve()):
            mode = place.stat().st_mode
            if mode & _WRITERS and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX) and _by_others(place, mode):
                return f"{'the folder ' if stat.S_ISDIR(mode) else ''}{place} has mode {stat.S_IMODE(mode):o}"
    except OSError:
        return ""
    return ""


def _by_others(place: Path, mode: int) -> bool:
    """Whether the right to write is more than that of the owner's own group: people often share a group with nobody."""
    facts = place.stat()
    return bool(mode & stat.S_IWOTH) or facts.st_gid not in {facts.st_uid, os.getgid() if hasattr(os, "getgid") else -1}


def _chain(path: Path) -> Iterator[Path]:
    yield path
    yield path.parent
