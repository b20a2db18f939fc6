"""Channel: a directory with a PEP 503 index, which pip and uv can install from.

```
pipeline/channels/staging/simple/index.html                  the projects
pipeline/channels/staging/simple/bookshop-mcp/index.html     a link to each file of the candidate, with its hash
pipeline/channels/staging/files/<hash>/bookshop_mcp-….whl    the bytes that were checked
```

A project's page offers only the promoted candidate. A client that requests the newest version gets the promoted
candidate, even if an earlier candidate has a higher version. Files are stored under their hash. The bytes of a version
never change (`plan.policy.version_reuse_fault`), because installers cache wheels by version.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import ABSENT, hash_bytes, hash_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.plan.stage import RECORD

_PAGE: Final = (
    '<!DOCTYPE html>\n<html>\n<head><meta name="pypi:repository-version" '
    'content="1.0"><title>{title}</title></head>\n<body>\n{links}\n</body>\n</html>\n'
)

_LINKED: Final = re.compile(r">([^<\n]+)</a>")
_HASH: Final = re.compile(r"#sha256=([0-9a-f]{64})")
_LINK: Final = re.compile(r'<a href="([^"\n]*)">([^<\n]*)</a>')


def copy_files_into_channel(
    channels: Path,
    channel: str,
    wheel: Path,
    expected: str,
    companions: Iterable[Path] = (),
    *,
    others: Mapping[Path, str] = MappingProxyType({}),
) -> None:
    """Replace a project's files in a channel with a wheel and the other files of a candidate.

    `expected` is the hash of the checked wheel. `others` are the other files of the candidate with their hashes.
    `companions` are required wheels that no public index has.

    Raises:
        StateError: a file has unexpected bytes, or the channel cannot be written. The channel is unchanged.
    """
    files = {file.name: read_verified_file(file, content) for file, content in {wheel: expected, **others}.items()}
    with _writing(channels, channel) as folder:
        for companion in companions:
            _write_project(folder, wheel_name(companion.name), {companion.name: companion.read_bytes()})
        _write_project(folder, wheel_name(wheel.name), files)


def withdraw_project(channels: Path, channel: str, project: str) -> None:
    """Remove a project from a channel."""
    if not (channels / channel / "simple").is_dir():
        return
    with _writing(channels, channel) as folder:
        if (folder / "simple" / project).is_dir():
            shutil.rmtree(folder / "simple" / project)


@contextmanager
def _writing(channels: Path, channel: str) -> Iterator[Path]:
    """Lock a channel's folder during the block, then rewrite the channel's list of projects."""
    try:
        with file_lock(channels / f".{channel}.lock"):
            yield channels / channel
            root = channels / channel / "simple"
            projects = sorted(page.parent.name for page in root.glob("*/index.html"))
            _write_page(root, "simple index", [(f"{name}/", name) for name in projects])
    except OSError as error:
        raise StateError(
            f"channel {channel} cannot be written: {error}", hint="make pipeline/channels/ writable"
        ) from error


def has_project(channels: Path, channel: str, project: str) -> bool:
    """Return True if a channel on this machine has a page for a project."""
    return (channels / channel / "simple" / project).is_dir()


def offered_hashes(channels: Path, channel: str, project: str) -> set[str]:
    """Return the hashes of the files on a project's page in a channel on this machine."""
    return {f"sha256:{digest}" for digest in _HASH.findall(_page(channels / channel / "simple" / project))}


def lacks_candidate_files(channels: Path, channel: str, project: str, files: Mapping[str, str]) -> bool:
    """Return True if a channel folder on this machine contains no file of a candidate."""
    folder = channels / channel
    here = (folder / "files" / _short(content) / name for name, content in files.items())
    return not _page(folder / "simple" / project) and not any(file.exists() for file in here)


def channel_project_faults(channels: Path, channel: str, project: str, files: Mapping[str, str]) -> list[str]:
    """Return the faults of a project's page and files in a channel on this machine; empty without faults.

    `files` are the promoted candidate's files with their hashes.
    """
    folder = channels / channel
    page = _page(folder / "simple" / project)
    if not page:
        return [f"there is no page of {project}"]
    links = {name: _link(name, content) for name, content in files.items()}
    wanted = _page_text(project, [(target, name) for name, target in links.items()])
    found = []
    if sorted(page.splitlines()) != sorted(wanted.splitlines()):
        more = sorted(set(_LINKED.findall(page)) - {html.escape(name) for name in files})
        found.append(f"the page of {project} names {', '.join(more)}" if more else f"the page of {project} was changed")
    for name, content in files.items():
        place = folder / "files" / _short(content) / name
        if place.is_symlink() or place.parent.is_symlink():
            found.append(f"{name} is a link that points outside the channel")
        elif (there := hash_file(place)) != content:
            found.append(f"{name} is missing" if there == ABSENT else f"{name} has other bytes")
    return found


def projects_in_channel(channels: Path, channel: str) -> list[str]:
    """Return the projects with a page in a channel on this machine."""
    return sorted(page.parent.name for page in (channels / channel / "simple").glob("*/index.html"))


def companion_project_faults(channels: Path, channel: str, project: str) -> list[str]:
    """Return the faults of the page and files of a project that is not a server."""
    folder = channels / channel / "simple" / project
    if not (page := _page(folder)):  # the channel offers no runtime, or this clone lacks the channel's files
        return []
    links = [(html.unescape(target), html.unescape(text)) for target, text in _LINK.findall(page)]
    if page.splitlines() != _page_text(project, links).splitlines():
        return [f"the page of {project} was not written by mcpfactory"]
    found = []
    for target, name in links:
        place, _, digest = target.partition("#sha256=")
        if not place.startswith("../../files/") or not digest:
            found.append(f"the link to {name} on the page of {project} has no hash, or another path")
        elif hash_file(folder / place) != f"sha256:{digest}":
            found.append(f"{name} has other bytes, or is missing")
    return found


def offered_wheel_digest(channels: Path, channel: str, project: str) -> str | None:
    """Return the `sha256:…` of the wheel on a project's page on this machine; None if the project has no page."""
    digest = _page(channels / channel / "simple" / project).partition("#sha256=")[2].partition('"')[0]
    return f"sha256:{digest}" if digest else None


def offered_project_file(channels: Path, channel: str, project: str) -> Path | None:
    """Return the file that a project's page offers, which is a wheel or an adopted server's record; None if missing."""
    folder = channels / channel / "simple" / project
    found = re.search(rf'"(\.\./\.\./files/[0-9a-f]+/[^"#/]+(?:\.whl|{re.escape(RECORD)}))#', _page(folder))
    wheel = (folder / found[1]).resolve() if found else None
    return wheel if wheel and wheel.is_file() else None


def read_verified_file(file: Path, expected: str) -> bytes:
    """Return the bytes of a candidate's file."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StateError(
            f"{file.name} of the candidate is not on this machine: {error.strerror}",
            hint="build and check a new candidate with 'mcpfactory pipeline run NAME --force'",
        ) from error
    if hash_bytes(data) != expected:
        raise StateError(
            f"{file.name} differs from the checked file: the hash is {hash_bytes(data)}, expected {expected}",
            hint="delete the file, then run 'mcpfactory pipeline run NAME --force'",
        )
    return data


def _write_project(folder: Path, project: str, files: Mapping[str, bytes]) -> None:
    """Replace the files of a project. The first file is the wheel."""
    links, page = [], folder / "simple" / project
    for name, data in files.items():
        content = hash_bytes(data)
        place = folder / "files" / _short(content) / name
        if place.parent.is_symlink():
            place.parent.unlink()
        if place.is_symlink() or not place.exists() or place.read_bytes() != data:
            replace_file(place, data)
        links.append((_link(name, content), name))
    before = _linked_folders(page)
    _write_page(page, project, links)
    now, prefix = _linked_folders(page), next(iter(files)).split("-", maxsplit=1)[0]
    for old in {path.parent for path in (folder / "files").glob(f"*/{prefix}-*")}:
        if old.name not in now | before:  # keep the previous release, because an installation may be in progress
            shutil.rmtree(old, ignore_errors=True)


def _linked_folders(folder: Path) -> set[str]:
    return set(re.findall(r'"\.\./\.\./files/([0-9a-f]+)/', _page(folder)))


def _page(folder: Path) -> str:
    try:
        return (folder / "index.html").read_text(encoding="utf-8")
    except OSError:
        return ""


def _write_page(folder: Path, title: str, links: list[tuple[str, str]]) -> None:
    replace_file(folder / "index.html", _page_text(title, links).encode())


def _page_text(title: str, links: list[tuple[str, str]]) -> str:
    lines = [f'<a href="{html.escape(target)}">{html.escape(text)}</a><br>' for target, text in links]
    return _PAGE.format(title=html.escape(title), links="\n".join(lines))


def _link(name: str, content: str) -> str:
    return f"../../files/{_short(content)}/{name}#{content.replace(':', '=', 1)}"


def _short(content: str) -> str:
    return content.removeprefix("sha256:")[:16]
