"""Servers that are installed in this machine's clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import JsonRecord, PipelineError
from mcpfactory_pipeline.build.wheels import wheel_name, wheel_version
from mcpfactory_pipeline.decisions.drift import default_channel_drift_blockers
from mcpfactory_pipeline.delivery.clients import config_edits
from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS, ClientProfile
from mcpfactory_pipeline.delivery.clients.config_files import (
    ClientConfigError,
    ConfigSyntaxError,
    UserPaths,
    client_config_path,
    read_text,
)
from mcpfactory_pipeline.delivery.clients.launch_commands import (
    INDEX,
    SOURCE,
    ServerPackage,
    promoted_wheel,
    recorded_package,
    server_package,
    versions_by_channel,
)
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

_PINNED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")
_CHANNEL: Final = re.compile(r"[^@]+ @ (file://.*/pipeline/channels/([^/]+)/files/[0-9a-f]+/([^/]+\.whl))")
_SOURCE: Final = ("run", "--workspace")  # `mcpfactory run NAME --workspace FOLDER`
_OFFERED: Final = ("run", "--channel", "--workspace")  # `mcpfactory run NAME --channel CHANNEL --workspace FOLDER`
_URLS: Final = ("url", "serverUrl", "httpUrl", "uri")


@dataclass(frozen=True, slots=True)
class InstalledServer(JsonRecord):
    """An installed server in a client's configuration.

    `state` has one of these values:

    - `current`: the entry is up to date.
    - `stale`: the workspace has another version.
    - `drifted`: according to the last check, the server at the URL differs from the adopted version.
    - `broken`: the server cannot start.
    - `unreadable`: the file cannot be read.
    - `other`: the server is from outside this workspace.
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

    @property
    def uninstall_command(self) -> str:
        """Return the command that removes the entry."""
        return f"mcpfactory uninstall {self.name} --client {self.client}{' --project' * (self.scope == 'project')}"


@dataclass(frozen=True, slots=True)
class _KnownServer:
    workspace: Workspace
    server: WorkspaceServer
    package: ServerPackage
    offered: Mapping[str, str]
    published: str


@dataclass(frozen=True, slots=True)
class _EntryTarget:
    """Target of an entry. `one` is None for a server from outside this workspace."""

    one: _KnownServer | None
    source: str = ""
    version: str = ""
    file: Path | None = None


def installed(workspace: Workspace | None, home: UserPaths, project: Path | None = None) -> list[InstalledServer]:
    """Return the servers in all client configurations of the user and of the project, grouped by client.

    An unreadable file appears as one server with the state `unreadable`.
    """
    known = _known(workspace, workspace.servers()) if workspace is not None else []
    found: list[InstalledServer] = []
    for row in CLIENTS:
        found += _read_config(row, "user", home, None, known)
        if project is not None and row.project is not None:
            found += _read_config(row, "project", home, project, known)
    return found


def starts_server(entry: Mapping[str, Any], workspace: Workspace, server: WorkspaceServer) -> bool:
    """Return True if an entry starts this server.

    A handwritten entry is recognized if it has the same form as entries of `install`.
    """
    return not entry_url(entry) and _recognised(_command(entry), tuple(_known(workspace, [server]))).one is not None


def entry_url(entry: Mapping[str, Any]) -> str:
    """Return the URL of an entry, or "" if the entry starts a program."""
    return next((str(entry[key]) for key in _URLS if entry.get(key)), "")


def _known(workspace: Workspace, servers: Iterable[WorkspaceServer]) -> list[_KnownServer]:
    found = []
    for server in servers:
        if server.adopted is not None or (server.folder / "pyproject.toml").exists():
            package = server_package(server)
            has = recorded_package(workspace, server, package.project)
            found.append(
                _KnownServer(
                    workspace, server, package, versions_by_channel(workspace, server), has.version if has else ""
                )
            )
    return found


def _read_config(
    row: ClientProfile, scope: str, home: UserPaths, project: Path | None, known: Iterable[_KnownServer]
) -> Iterable[InstalledServer]:
    file, config = client_config_path(row, home, project)
    try:
        text = read_text(file)
        data = config_edits.read(text, config) if text is not None else {}
    except (ClientConfigError, ConfigSyntaxError) as error:
        return [InstalledServer(row.id, scope, str(file), "", "", "", "", "unreadable", str(error))]
    entries = config_edits.entries(data, config_edits.detect_layout(data, row.forms), config)
    known = tuple(known)
    return [
        InstalledServer(row.id, scope, str(file), name, *_classify(entry, known)) for name, entry in entries.items()
    ]


def _classify(entry: Mapping[str, Any], known: tuple[_KnownServer, ...]) -> tuple[str, str, str, str, str]:
    if url := entry_url(entry):
        one = next((one for one in known if one.server.adopted and one.server.adopted.url == url), None)
        return (one.server.name, "url", one.package.version, *_url_state(one)) if one else ("", "url", "", "other", url)
    words = _command(entry)
    found = _recognised(words, known)
    if found.one is None:
        return "", found.source, found.version, "other", " ".join(words[:1])
    if words and Path(words[0]).is_absolute() and not Path(words[0]).exists():
        state, message = "broken", f"{words[0]} is not there"
    else:
        state, message = _state(found, found.one)
    return found.one.server.name, found.source, found.version, state, message


def _url_state(one: _KnownServer) -> tuple[str, str]:
    """Return the recorded state of a server at a URL, without a request."""
    try:
        known = default_channel_drift_blockers(one.workspace, one.server, Store(one.workspace).state(one.server.name))
    except PipelineError as error:  # the drift record cannot be read
        return "drifted", str(error)
    return ("drifted", known[0].message) if known else ("current", "")


def _state(found: _EntryTarget, one: _KnownServer) -> tuple[str, str]:
    if found.source == SOURCE:
        return "current", ""
    expected = one.published if found.source == INDEX else one.offered.get(found.source, "")
    if not expected and found.source == INDEX:
        return "broken", f"no record shows that {one.package.name} was published, so it could be a stranger's"
    if not expected:
        return "broken", f"channel {found.source} offers it no longer"
    if found.file is not None and not found.file.exists():
        return "broken", f"{found.file.name} is not there; the channel offers {expected}"
    if found.version != expected:
        return "stale", f"{expected} is here"
    if found.file not in {None, promoted_wheel(one.workspace, one.server, found.source)}:
        return "stale", f"another {expected} is here"
    return "current", ""


def _recognised(words: list[str], known: tuple[_KnownServer, ...]) -> _EntryTarget:
    for word in words:
        if match := _CHANNEL.fullmatch(word):
            file = Path(url2pathname(unquote(urlsplit(match[1]).path)))
            return _EntryTarget(_named(wheel_name(file.name), known), match[2], wheel_version(file.name), file)
        if match := _PINNED.fullmatch(word):
            return _EntryTarget(_named(canonicalize_name(match[1]), known), INDEX, match[2])
    if len(words) >= 7 and (words[-6], words[-4], words[-2]) == _OFFERED:
        found = _from_source(words[-5], words[-1], known)
        version = found.one.offered.get(words[-3], "") if found.one else ""
        return _EntryTarget(found.one, words[-3], version)
    if len(words) >= 5 and (words[-4], words[-2]) == _SOURCE:
        return _from_source(words[-3], words[-1], known)
    return _EntryTarget(None)


def _from_source(name: str, folder: str, known: tuple[_KnownServer, ...]) -> _EntryTarget:
    """Return the server with this name and source folder.

    A relative folder always matches. Only a project's file has relative folders.
    """
    for one in known:
        if one.server.name == name and (not Path(folder).is_absolute() or Path(folder) == one.workspace.root):
            return _EntryTarget(one, SOURCE, one.package.version)
    return _EntryTarget(None)


def _named(project: str, known: tuple[_KnownServer, ...]) -> _KnownServer | None:
    return next((one for one in known if one.package.project == project), None)


def _command(entry: Mapping[str, Any]) -> list[str]:
    command = entry.get("command", entry.get("cmd", ""))
    words = command if isinstance(command, list) else [command]
    rest = entry.get("args")
    return [str(word) for word in [*words, *(rest if isinstance(rest, list) else [])]]
