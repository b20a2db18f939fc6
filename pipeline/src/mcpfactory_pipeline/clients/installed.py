"""What is installed in the clients of this machine: which server, from where, in which version, and whether that is still so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.clients import edits
from mcpfactory_pipeline.clients.errors import ClientError, UnreadableError
from mcpfactory_pipeline.clients.files import Home, path_of, read_text
from mcpfactory_pipeline.clients.launch import INDEX, SOURCE, Package, package_of, promoted
from mcpfactory_pipeline.clients.table import CLIENTS, Client
from mcpfactory_pipeline.workspace.workspace import Server, Workspace

__all__ = ["Installed", "installed"]

_PINNED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
_CHANNEL: Final = re.compile(r"file://.*/pipeline/channels/([^/]+)/simple/?")
_URLS: Final = ("url", "serverUrl", "httpUrl", "uri")


@dataclass(frozen=True)
class Installed:
    """One server in one configuration.

    `server` is "" for one that is not of this workspace. `state`: current; stale, another version is here; broken, it cannot
    start; unreadable, the file cannot be read; other, not of this workspace. `message` says why.
    """

    client: str
    scope: str
    file: str
    name: str
    server: str
    source: str
    version: str
    state: str
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


@dataclass(frozen=True)
class _Known:
    """A server of the workspace, as configurations may name it."""

    server: Server
    package: Package
    offered: Mapping[str, str]

    @property
    def newest(self) -> str:
        """What an index is expected to have."""
        return next(iter(self.offered.values()), self.package.version)


def installed(workspace: Workspace | None, home: Home, project: Path | None = None) -> list[Installed]:
    """Every server in every client's configuration, for the user and for the project, by client.

    Without a workspace none of them is known. A file that cannot be read is one row, and no error.
    """
    known = _known(workspace) if workspace is not None else []
    found: list[Installed] = []
    for row in CLIENTS:
        found += _of_file(row, "user", home, None, known)
        if project is not None and row.project is not None:
            found += _of_file(row, "project", home, project, known)
    return found


def _known(workspace: Workspace) -> list[_Known]:
    servers = [server for server in workspace.servers() if (server.folder / "pyproject.toml").exists()]
    return [_Known(server, package_of(server), promoted(workspace, server)) for server in servers]


def _of_file(row: Client, scope: str, home: Home, project: Path | None, known: Iterable[_Known]) -> Iterable[Installed]:
    file, place = path_of(row, home, project)
    try:
        text = read_text(file)
        data = edits.read(text, place) if text is not None else {}
    except (ClientError, UnreadableError) as error:
        return [Installed(row.id, scope, str(file), "", "", "", "", "unreadable", str(error))]
    entries = edits.entries(data, edits.form_of(data, row.forms), place)
    known = tuple(known)
    return [Installed(row.id, scope, str(file), name, *_judged(entry, known)) for name, entry in entries.items()]


def _judged(entry: Mapping[str, Any], known: tuple[_Known, ...]) -> tuple[str, str, str, str, str]:
    """Server, source, version, state and message of an entry."""
    if url := next((str(entry[key]) for key in _URLS if entry.get(key)), ""):
        return "", "url", "", "other", url
    words = _command(entry)
    one, source, version = _recognised(words, entry, known)
    if one is None:
        return "", source, version, "other", " ".join(words[:1])
    server = one.server.name
    if words and Path(words[0]).is_absolute() and not Path(words[0]).exists():
        return server, source, version, "broken", f"{words[0]} is not there"
    if source == SOURCE:
        return server, source, one.package.version, "current", ""
    expected = one.newest if source == INDEX else one.offered.get(source, "")
    if not expected:
        return server, source, version, "broken", f"channel {source} offers it no longer"
    if version != expected:
        return server, source, version, "stale", f"{expected} is here"
    return server, source, version, "current", ""


def _recognised(
    words: list[str], entry: Mapping[str, Any], known: tuple[_Known, ...]
) -> tuple[_Known | None, str, str]:
    source = next((match[1] for word in words if (match := _CHANNEL.fullmatch(word))), INDEX)
    for word in words:
        if match := _PINNED.fullmatch(word):
            one = next((one for one in known if _plain(one.package.name) == _plain(match[1])), None)
            return one, source, match[2]
    environ: Mapping[str, Any] = next(
        (entry[key] for key in ("env", "envs", "environment") if isinstance(entry.get(key), dict)), {}
    )
    folder = environ.get("PYTHONPATH", "")
    for one in known:
        if words[1:3] == ["-m", one.server.package] and Path(folder) == one.server.folder / "src":
            return one, SOURCE, one.package.version
    return None, "", ""


def _command(entry: Mapping[str, Any]) -> list[str]:
    command = entry.get("command", entry.get("cmd", ""))
    words = command if isinstance(command, list) else [command]
    rest = entry.get("args")
    return [str(word) for word in [*words, *(rest if isinstance(rest, list) else [])]]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
