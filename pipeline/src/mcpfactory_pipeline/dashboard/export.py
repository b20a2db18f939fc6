"""Static export of the dashboard: the same pages with relative links.

`assets/export.json` lists the files of an exported site, so that the next export can remove outdated files.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError, RefusedError
from mcpfactory_pipeline.dashboard.facts import to_json_text
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, path_of
from mcpfactory_pipeline.dashboard.render import ASSETS, Links, asset, page_folder, render
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader

_RECORD: Final = "assets/export.json"  # lists the files of an exported site


def export(workspace_root: Path, out: Path, *, logs: bool = False) -> tuple[Path, ...]:
    """Write the site into `out` and return the written files. With `logs`, pages of runs have the output of steps.

    Files of an earlier export are replaced. Other files are kept. Symbolic links are replaced, so that nothing outside
    `out` is written.

    Raises:
        RefusedError: `out` is a file, or contains files that no earlier export wrote.
    """
    if out.exists() and not out.is_dir():
        raise RefusedError(f"{out} is a file", hint="choose a new folder")
    there = {one.name for one in out.iterdir()} if out.is_dir() else set()
    if there - {".git"} and not (out / _RECORD).is_file():
        raise RefusedError(f"{out} has files that do not belong to a dashboard", hint="choose a new or empty folder")
    before, files = _read_record(out / _RECORD), [_RECORD]
    try:
        for path, content in _site(WorkspaceReader(workspace_root, live=False, logs=logs)):
            _write(out, path, _without_root(content, workspace_root) if path.endswith((".html", ".json")) else content)
            files.append(path)
        _write(out, _RECORD, (json.dumps(sorted(files), indent=0, ensure_ascii=False) + "\n").encode())
        for path in before - set(files):
            _remove(out, path)
    except OSError as error:
        raise PipelineError(
            f"{error.filename} cannot be written: {error.strerror}", hint="choose a new folder"
        ) from error
    return tuple(out / path for path in files)


def _without_root(content: bytes, root: Path) -> bytes:
    """Return a page with paths relative to the workspace."""
    for path in {f"{root}/", f"{root.resolve()}/"}:
        for written in (path, html.escape(path), json.dumps(path)[1:-1]):
            content = content.replace(written.encode(), b"")
    return content


def _write(out: Path, path: str, content: bytes) -> None:
    place = out
    for part in PurePosixPath(path).parts:
        place /= part
        if place.is_symlink():
            place.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    if not (place.is_file() and place.read_bytes() == content):
        place.write_bytes(content)


def _remove(out: Path, path: str) -> None:
    """Remove a file of an earlier export, and folders that become empty.

    Paths outside `out` are ignored, because the list of files is not trusted.
    """
    file = out / path
    if {"..", ".git"} & set(PurePosixPath(path).parts) or not file.parent.resolve().is_relative_to(out.resolve()):
        return
    file.unlink(missing_ok=True)
    for folder in file.parents:
        if folder == out or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def _read_record(file: Path) -> set[str]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    return {one for one in found if isinstance(one, str)} if isinstance(found, list) else set()


def _site(reader: WorkspaceReader) -> Iterator[tuple[str, bytes]]:
    facts = reader.workspace()  # fails before any file is written if there is no workspace
    yield ".nojekyll", b""  # without this file, hosts with Jekyll omit files whose names begin with "_"
    for name in ASSETS:
        yield f"assets/{name}", asset(name)
    servers = [server.name for server in facts.servers]
    of_servers = [page for page in PAGES if page.path.startswith("/servers/{name}/")]
    for page in PAGES:
        if page not in of_servers:
            for values in page.instances(reader, servers):
                yield from _instance(reader, page, values)
    for name in servers:  # read the data of each server only once
        for page in of_servers:
            for values in page.instances(reader, [name]):
                yield from _instance(reader, page, values)


def _instance(reader: WorkspaceReader, page: Page, values: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    path, number, last = path_of(page, values), 1, 1
    while number <= last:
        view = page.view(reader, values, {"page": str(number)})
        last = view.pager.pages if hasattr(view, "pager") else 1
        folder, links = path.removeprefix("/") + page_folder(number), Links(path, static=True, page=number)
        yield f"{folder}index.json", to_json_text(view)
        yield f"{folder}index.html", render(page, view, links).encode()
        number += 1
