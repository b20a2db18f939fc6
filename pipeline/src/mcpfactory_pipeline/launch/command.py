"""The command that starts a server of the workspace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.candidate import build_adopted
from mcpfactory_pipeline.adoption.ready import make_ready
from mcpfactory_pipeline.adoption.sources import Sources
from mcpfactory_pipeline.base.errors import ConfigError, ServerError, StateError
from mcpfactory_pipeline.base.hashing import hash_file, hash_files, hash_record, source_files
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.isolation.levels import PLAIN, foreign_path
from mcpfactory_pipeline.launch.diagnosis import package_command
from mcpfactory_pipeline.launch.environment import server_python
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.upstream import reported_variables, server_prefix
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, WorkspaceServer, read_toml
from mcpfactory_runtime.upstream.secrets import SETTINGS, SHARED

# What programs of a person need of the surroundings: where files are, which languages and certificates, the keyring and the browser of a login.
_OF_PROGRAMS: Final = (
    *PLAIN,
    *("HOME", "USER", "LOGNAME", "SHELL", "TERM", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"),
    *("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "WINDIR", "PATHEXT"),
)
_OF_RUNTIME: Final = (
    *SETTINGS,
    *("MODE", "PROFILE", "DIALECT", "RATES", "FILES", "DEMO", "TOKEN_STORE", "TOOL_RECORD"),
    *("STATE_KEY", "STORE", "TASKS_DB", "CACHE_DIR"),
)
_PREFIXES: Final = ("XDG_", "PYTHON", f"{SHARED}_AUTH_")


def server_command(server: WorkspaceServer, *arguments: str, web: bool = False) -> list[str]:
    """Return the command that starts the server in its own environment, which is made where it is not there; `web` to serve over HTTP.

    Raises:
        ServerError: when its environment cannot be installed; for an adopted server that is at a URL, or is to take options.
        StageError: when that could not be made.
    """
    if server.adopted is not None:
        if web or arguments:
            raise ServerError(
                f"{server.name} was adopted: it starts as its start in mcpfactory.toml says, and takes no options of ours",
                hint=f"write them into start in servers/{server.name}/mcpfactory.toml",
            )

        return source_command(server)
    return [*package_command(server_python(server, web=web), server.package, server.folder), *arguments]


def server_environ(server: WorkspaceServer) -> dict[str, str]:
    """Return the environment of the server's process, with its `src` folder importable.

    Of ours it has what programs need, the runtime's own switches, the variables of the server's report, and those that its
    configuration names; the credentials of other servers, and ours, are none of them.
    """
    named = {*_OF_PROGRAMS, *(f"{SHARED}_{one}" for one in _OF_RUNTIME), *_own_variables(server)}
    kept = {name: value for name, value in os.environ.items() if name in named or name.startswith(_PREFIXES)}
    if server.adopted is not None:
        plain = {name: value for name, value in kept.items() if not name.startswith("PYTHON")}
        return {**plain, "PATH": foreign_path()}
    parts = [str(server.folder / "src"), os.environ.get("PYTHONPATH", "")]
    return {**kept, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}


def _own_variables(server: WorkspaceServer) -> Iterator[str]:
    """Yield the names of variables that are for this server: by its report, `[server] environment`, and `[publish.environment]`."""
    prefix = server_prefix(server)
    yield from (f"{prefix}_{setting}" for setting in SETTINGS)
    for name in (*reported_variables(server), *_configured(server)):
        yield name
        yield f"{name}_FILE"


def _configured(server: WorkspaceServer) -> list[str]:
    wanted = _table(server.config, "server").get("environment", [])
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise ConfigError(
            f"environment in the [server] of {server.name} is no list of names of variables",
            hint='environment = ["DATABASE_URL"]',
        )
    return [*wanted, *_table(_table(server.config, "publish"), "environment")]


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table at a key; {} where there is none."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


_KEPT: Final = 2  # folders of earlier sources that stay, for a server may still run from them


def source_command(server: WorkspaceServer) -> list[str]:
    """Return the command that starts an adopted server as its files say; it is made ready at the first start, and again when they change.

    Raises:
        ServerError: it cannot be made ready, or is at a URL.
        StageError: an index did not answer.
    """
    adopted, root = server.adopted, server.folder.parents[1]
    assert adopted is not None  # the caller looked
    if adopted.url:
        raise _not_started(server.name, adopted.url)
    own = adopted.folder(root)
    state = {
        "beside": hash_files(server.folder, source_files(server.folder, without=("tests",))),
        "own": hash_files(own, adopted.own_files(root)) if own else "none",
    }
    house = root / "pipeline" / "artifacts" / server.name / "source"
    place = house / hash_record(state).removeprefix("sha256:")[:16]
    files = place / "files"
    try:
        if not files.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".building-", dir=house) as work:
                sources = Sources(server.name, adopted, server.folder, root, Path(work), log=False)
                built = build_adopted(sources, read_toml(server.folder / CONFIG))
                built.folder.rename(files)
            _remove_older(house, place)
        hashes = {file.name: hash_file(file) for file in sorted(files.iterdir())}
        ready = make_ready(files, hashes, place / "ready", log=False, verify=False)
    except (ProgramRefusedError, StateError) as error:
        raise ServerError(
            f"{server.name} cannot be made ready: {error}",
            hint=f"mcpfactory pipeline run {server.name} shows all of it",
        ) from error
    return list(ready.command)


def channel_command(workspace: Workspace, server: WorkspaceServer, channel: str) -> list[str]:
    """Return the command that starts an adopted server as a channel offers it, by the bytes that were checked.

    Raises:
        StateError: the channel does not offer it, or its bytes are not on this machine.
        ServerError: it cannot be made ready, or is at a URL.
        StageError: an index did not answer.
    """
    state = Store(workspace).state(server.name)
    release = state.channels.get(channel)
    if release is None:
        raise StateError(
            f"channel {channel} does not offer {server.name}",
            hint=f"channels that do: {', '.join(sorted(state.channels)) or 'none'}; mcpfactory pipeline status",
        )
    known, folder = state.candidates[release.candidate], workspace.artifacts / server.name / release.candidate
    try:
        ready = make_ready(folder, dict(known.files), folder / "run", log=False, verify=False)
    except ProgramRefusedError as error:
        raise ServerError(
            f"{server.name} {release.version} cannot be made ready: {error}",
            hint=f"mcpfactory pipeline restore {server.name}",
        ) from error
    if ready.record.url:
        raise _not_started(server.name, ready.record.url)
    return list(ready.command)


def _not_started(name: str, url: str) -> ServerError:
    return ServerError(f"{name} is at {url}: it is not started here", hint=f"mcpfactory install {name} --client CLIENT")


def _remove_older(house: Path, place: Path) -> None:
    others = [one for one in house.iterdir() if one.is_dir() and not one.name.startswith(".") and one != place]
    for old in sorted(others, key=lambda one: one.stat().st_mtime)[: -(_KEPT - 1) or None]:
        shutil.rmtree(old, ignore_errors=True)
