"""The dashboard as files: the same pages with relative links, readable from a disk or any static host.

An export into an earlier one writes only files that differ, and takes away what the site does not have any more. Which files the site had, and by
which bytes they are known, says one of them; it has no times, so that the site is the same whatever was there before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PipelineError, RefusedError
from mcpfactory_pipeline.base.hashing import hash_record
from mcpfactory_pipeline.base.versions import part_version, python_version
from mcpfactory_pipeline.dashboard.feed import FEED, atom_feed
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, path_of
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.dashboard.render import ASSETS, Links, asset, page_folder, render
from mcpfactory_pipeline.dashboard.values import to_json_text

__all__ = ["ExportedSite", "export"]

_MARK: Final = "assets/live.js"  # a folder with this file has an earlier export
_RECORD: Final = "assets/export.json"  # which files an export has
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class ExportedSite:
    """The files of a site, `index.html` among them; and how many of them were written, how many were as they are, and how many others are gone."""

    files: tuple[Path, ...]
    written: int
    unchanged: int
    removed: int


@dataclass(frozen=True, slots=True)
class _SiteFile:
    """One file of the site. `content` makes its bytes; where those of `source`, another file, are as they were, so are these."""

    path: str
    content: Callable[[], bytes]
    source: str = ""


def export(workspace_root: Path, out: Path, *, url: str = "") -> ExportedSite:
    """Write the site into `out`: what differs from what is there.

    What an earlier export wrote and the site does not have any more is removed; files of others stay. A link where the site has a folder or a
    file is replaced by that: nothing is written outside of `out`. `url` is where the folder will be
    served, with its last slash: the links of the feed begin with it, and are relative without.

    Raises:
        WorkspaceError: when `workspace_root` is in no workspace.
        RefusedError: when `out` is a file, or has files and none of an earlier export.
        PipelineError: when `out` cannot be written.
    """
    if out.exists() and not out.is_dir():
        raise RefusedError(f"{out} is a file", hint="name a new folder")
    there = {one.name for one in out.iterdir()} if out.is_dir() else set()
    if there - {".git"} and not (out / _MARK).is_file():
        raise RefusedError(f"{out} has files that are no dashboard", hint="name a new or empty folder")
    writer = _SiteWriter(out)
    for one in _site(WorkspaceReader(workspace_root, live=False), url):
        writer.put(one)
    return writer.end()


class _SiteWriter:
    """Brings a folder to what a site is, file by file."""

    def __init__(self, out: Path) -> None:
        self._out, self._of = out, _made_with()
        self._before = _read_record(out / _RECORD)
        self._same = self._before.get("of") == self._of  # the same code makes the same page of the same data
        self._now: dict[str, str] = {}
        self._written = 0

    def put(self, one: _SiteFile) -> None:
        """Make one file what it should be. One is made only where what it is made of has changed, or what is there is not what was written."""
        there = self._read(one.path)
        known, hashed = self._files.get(one.path), _hash(there) if there is not None else ""
        same_source = self._same and one.source and self._files.get(one.source) == self._now.get(one.source)
        if same_source and hashed == known:
            self._now[one.path] = hashed
            return
        content = one.content()
        self._now[one.path] = _hash(content)
        if content != there:
            self._write(one.path, content)
            self._written += 1

    def end(self) -> ExportedSite:
        """Take away what is no part of the site any more, and say which files are."""
        files = (*self._now, _RECORD)
        gone = [path for path in self._files if path not in self._now and self._remove(path)]
        record = {"format": _FORMAT, "of": self._of, "files": self._now}
        content = (json.dumps(record, indent=0, sort_keys=True, ensure_ascii=False) + "\n").encode()
        if content != self._read(_RECORD):
            self._write(_RECORD, content)
            self._written += 1
        return ExportedSite(
            tuple(self._out / path for path in files), self._written, len(files) - self._written, len(gone)
        )

    @property
    def _files(self) -> Mapping[str, str]:
        """The files of the earlier export, each with the hash of its bytes."""
        files: Mapping[str, str] = self._before.get("files", {})
        return files

    def _read(self, path: str) -> bytes | None:
        """Return what a file of the site holds; None where there is none, or only one elsewhere that a link leads to."""
        if self._link(path) is not None:
            return None
        try:
            return (self._out / path).read_bytes()
        except OSError:
            return None

    def _link(self, path: str) -> Path | None:
        """Return the first link on the way from the site's folder to a file, None where there is none."""
        place = self._out
        for part in PurePosixPath(path).parts:
            place /= part
            if place.is_symlink():
                return place
        return None

    def _write(self, path: str, content: bytes) -> None:
        """Write a file of the site. A link in its way is taken away, and nothing is written where it leads."""
        file = self._out / path
        try:
            if (link := self._link(path)) is not None:
                link.unlink()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise PipelineError(f"{file} cannot be written: {error.strerror}", hint="name a new folder") from error

    def _remove(self, path: str) -> bool:
        """Remove a file of the earlier export, and folders that it leaves empty; whether it was there. The record may be anybody's: nothing outside is touched."""
        file = self._out / path
        if not _is_inside(path) or not file.parent.resolve().is_relative_to(self._out.resolve()) or not file.is_file():
            return False
        try:
            file.unlink()
            for folder in file.parents:
                if folder == self._out or any(folder.iterdir()):
                    break
                folder.rmdir()
        except OSError as error:
            raise PipelineError(f"{file} cannot be removed: {error.strerror}", hint="name a new folder") from error
        return True


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and not {"..", ".git"} & set(parts) and "\\" not in path


def _read_record(file: Path) -> Mapping[str, Any]:
    """Return what an earlier export says of itself; nothing where it says nothing that can be understood."""
    try:
        record = json.loads(file.read_bytes())
        files = record["files"]
        sound = record["format"] == _FORMAT and all(isinstance(one, str) for one in files.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return record if sound else {}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _made_with() -> str:
    """Return what makes pages of views: our own code, and that of the templates' language."""
    parts = {name: part_version(name) for name in ("mcpfactory-pipeline", "mcpfactory-codegen")}
    return hash_record(
        {**parts, "jinja2": version("jinja2"), "markupsafe": version("markupsafe"), "python": python_version()}
    )


def _site(reader: WorkspaceReader, url: str) -> Iterator[_SiteFile]:
    facts = reader.workspace()  # before anything is written: is there one?
    yield _SiteFile(".nojekyll", bytes)  # static hosts that run Jekyll leave out what begins with an underscore
    for name in ASSETS:
        yield _SiteFile(f"assets/{name}", partial(asset, name))
    yield _SiteFile(FEED, partial(_feed, reader, url))
    servers = [server.name for server in facts.servers]
    of_servers = [page for page in PAGES if page.path.startswith("/servers/{name}/")]
    for page in PAGES:
        if page not in of_servers:
            for values in page.instances(reader, servers):
                yield from _instance(reader, page, values)
    for name in servers:  # one after another: what is known of one is read once
        for page in of_servers:
            for values in page.instances(reader, [name]):
                yield from _instance(reader, page, values)


def _instance(reader: WorkspaceReader, page: Page, values: dict[str, str]) -> Iterator[_SiteFile]:
    """One page with its data, and the further pages of its list."""
    path, number, last = path_of(page, values), 1, 1
    while number <= last:
        view = page.view(reader, values, {"page": str(number)})
        last = view.pager.pages if hasattr(view, "pager") else 1
        folder, links = path.removeprefix("/") + page_folder(number), Links(path, static=True, page=number)
        yield _SiteFile(f"{folder}index.json", partial(to_json_text, view))
        yield _SiteFile(
            f"{folder}index.html",
            partial(_page_text, page, view, links),
            source=f"{folder}index.json",
        )
        number += 1


def _page_text(page: Page, view: object, links: Links) -> bytes:
    return render(page, view, links).encode()


def _feed(reader: WorkspaceReader, url: str) -> bytes:
    links = Links("/", static=True)
    return atom_feed(reader.workspace(), lambda path: url + links.to(path), last=reader.last_time())
