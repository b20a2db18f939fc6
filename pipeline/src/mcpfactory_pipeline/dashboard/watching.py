"""Which servers' files have changed, as the kernel tells it: where it does, thirty thousand files need not be looked at for every page.

Linux tells of changes in folders (inotify). Elsewhere, on file systems that other machines change too, and behind symbolic links nothing is
told: what is there is never said to be unchanged, and its files are looked at.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import weakref
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

__all__ = ["FileWatch"]

_LOCAL: Final = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
_SELF: Final = 0xC00  # the folder itself was moved, or is gone
_ASKED: Final = 0x2 | 0x4 | 0x8 | 0xC0 | 0x100 | 0x200 | _SELF  # written, time or mode set, closed, moved, made, gone
_GONE: Final = _SELF | 0x8000  # or the kernel listens there no more
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name that follows
_READ: Final = 1 << 20  # bytes of events that are taken at once


class FileWatch:
    """Tells of what it was given to `cover` whether it is the same. Without a kernel that tells, nothing ever is."""

    def __init__(self, root: Path) -> None:
        self._library = _library() if _file_system(root) in _LOCAL else None
        self._descriptor = -1
        self._folders: dict[str, int] = {}
        self._whole: defaultdict[int, set[str]] = defaultdict(set)  # watch → who has all of the folder
        self._named: defaultdict[int, defaultdict[str, set[str]]] = defaultdict(
            lambda: defaultdict(set)
        )  # watch → name in the folder → who has that
        self._same: dict[str, object] = {}
        if self._library is not None:
            self._descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._descriptor >= 0:
                self._close = weakref.finalize(self, os.close, self._descriptor)

    def cover(self, name: str, paths: Iterable[str], folder: str) -> bool:
        """Listen for changes of files, those below `folder` by name and others; whether all of them are heard of.

        Whoever looks at the files after this and finds them as they were says so by `settle`.
        """
        if self._descriptor < 0:
            return False
        below, watch = f"{folder}/", self._watch_nearest(name, folder)
        for path in paths:
            kind = _kind(path)
            if watch < 0 or stat.S_ISLNK(kind):
                return False
            inside = path == folder or path.startswith(below)
            if inside and stat.S_ISDIR(kind):
                watch = self._watch(path)
                self._whole[watch].add(name)
            elif not inside or not kind:
                watch = self._watch_nearest(name, path)
        return watch >= 0

    def settle(self, name: str, content: object) -> None:
        """From now on what was covered by a name is `content`, until something is heard of it."""
        self._same[name] = content

    def unchanged(self, name: str, content: object) -> bool:
        """Whether what was covered by a name is that still."""
        return self._same.get(name) is content

    def forget(self) -> None:
        """Nothing is known to be the same any more."""
        self._same = {}

    def hear(self) -> None:
        """Take what the kernel has told since the last time."""
        while self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, _READ)
            except OSError:  # nothing more; whatever else it is, the files are looked at
                return
            at = 0
            while at < len(data):
                watch, mask, _, size = _EVENT.unpack_from(data, at)
                at += _EVENT.size + size
                self._heard(watch, mask, data[at - size : at].rstrip(b"\0").decode("utf-8", errors="surrogateescape"))

    def _heard(self, watch: int, mask: int, file: str) -> None:
        if mask & _OVERFLOW:
            self.forget()
        whole, named = self._whole.get(watch), self._named.get(watch)
        concerned = set(whole or ())
        if named is not None:
            concerned |= named.get(file, set())
        if mask & _GONE and (whole or named):
            concerned = self._drop(watch)
        for name in concerned:
            self._same.pop(name, None)

    def _drop(self, watch: int) -> set[str]:
        """Listen no more in a folder that is gone, nor in those that were below it; who had anything in them, and so is to look."""
        assert self._library is not None
        below = tuple(f"{path}/" for path, one in self._folders.items() if one == watch)
        gone = {watch} | {one for path, one in self._folders.items() if path.startswith(below)}
        self._folders = {path: one for path, one in self._folders.items() if one not in gone}
        concerned = set[str]()
        for one in gone:
            self._library.inotify_rm_watch(self._descriptor, one)  # one that was moved would be heard for ever
            concerned.update(self._whole.pop(one, ()), *self._named.pop(one, {}).values())
        return concerned

    def _watch_nearest(self, name: str, path: str) -> int:
        """Listen in the nearest folder that is there for what leads to a file."""
        folder, _, file = path.rpartition("/")
        while folder and not Path(folder).is_dir():
            folder, _, file = folder.rpartition("/")
        watch = self._watch(folder or "/")
        self._named[watch][file].add(name)
        return watch

    def _watch(self, folder: str) -> int:
        known = self._folders.get(folder)
        if known is not None:
            return known
        assert self._library is not None
        watch: int = self._library.inotify_add_watch(self._descriptor, os.fsencode(folder), _ASKED)
        if watch < 0:  # as many as the kernel allows
            self.forget()
            self._close()
            self._descriptor = -1
            return watch
        self._folders[folder] = watch
        return watch


def _kind(path: str) -> int:
    """Return what a path itself is, 0 where nothing is."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _library() -> Any:
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.inotify_init1, library.inotify_add_watch, library.inotify_rm_watch  # noqa: B018 - raises where there is none
        return library
    return None


def _file_system(root: Path) -> str:
    """Return the kind of file system on which a folder is, "" where that is not known."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    place, found, kind = f"{root.resolve()}/", "", ""
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = mount.split(" ")[4].replace("\\040", " ").rstrip("/") + "/"
        if place.startswith(point) and len(point) >= len(found):
            found, kind = point, rest.split(" ")[0]
    return kind
