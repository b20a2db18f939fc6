"""The dashboard as files: the same pages with relative links, readable from a disk or any static host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError, RefusedError
from mcpfactory_pipeline.dashboard.feed import FEED, atom_feed
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, path_of
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.dashboard.render import ASSETS, Links, asset, page_folder, render
from mcpfactory_pipeline.dashboard.values import to_json

__all__ = ["export"]

_MARK: Final = "assets/live.js"  # a folder with this file has an earlier export


def export(workspace_root: Path, out: Path, *, url: str = "") -> list[Path]:
    """Write the site into `out` and return the files, `out/index.html` among them.

    What the site does not have any more is not removed. `url` is where the folder will be served, with its last slash: the
    links of the feed begin with it, and are relative without.

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
    written = []
    for relative, content in _site(WorkspaceReader(workspace_root, live=False), url):
        file = out / relative
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise PipelineError(f"{file} cannot be written: {error.strerror}", hint="name a new folder") from error
        written.append(file)
    return written


def _site(reader: WorkspaceReader, url: str) -> Iterator[tuple[str, bytes]]:
    facts = reader.workspace()  # before anything is written: is there one?
    yield ".nojekyll", b""  # static hosts that run Jekyll leave out what begins with an underscore
    for name in ASSETS:
        yield f"assets/{name}", asset(name)
    links = Links("/", static=True)
    yield FEED, atom_feed(facts, lambda path: url + links.to(path), last=reader.last_time())
    for page in PAGES:
        for values in page.instances(reader):
            yield from _instance(reader, page, values)


def _instance(reader: WorkspaceReader, page: Page, values: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """One page with its data, and the further pages of its list."""
    path, number, last = path_of(page, values), 1, 1
    while number <= last:
        view = page.view(reader, values, {"page": str(number)})
        last = view.pager.pages if hasattr(view, "pager") else 1
        folder = path.removeprefix("/") + page_folder(number)
        yield f"{folder}index.html", render(page, view, Links(path, static=True, page=number)).encode()
        yield f"{folder}index.json", (json.dumps(to_json(view), indent=2, ensure_ascii=False) + "\n").encode()
        number += 1
