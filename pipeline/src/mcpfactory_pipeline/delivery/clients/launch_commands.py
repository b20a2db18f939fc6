"""Commands and URLs that clients use to start a server: from a channel, a package index, a URL or sources.

An entry for a channel contains paths of promoted wheels, so that no index is queried. An entry for an index contains a
package name. A stranger could publish an unpublished name and receive the server's credentials. A package name is
therefore trusted only if the state records its publication, or if the index has the promoted candidate.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from packaging.utils import canonicalize_name

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_pipeline.base.errors import ConfigError, PublishError, StateError, TargetUnavailableError
from mcpfactory_pipeline.build.factory_distributions import RUNTIME, requires_runtime
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.candidate import channels_folder, find_artifact, verify_candidate_files
from mcpfactory_pipeline.channels.channel import offered_project_file, offered_wheel_digest
from mcpfactory_pipeline.channels.contract import read_source_version
from mcpfactory_pipeline.delivery.clients.config_files import ClientConfigError
from mcpfactory_pipeline.delivery.clients.entry import PROJECT, LaunchEntry
from mcpfactory_pipeline.plan.policy import find_channel, read_channels
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.settings import PypiOptions
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS


def entry_channel_and_version(
    workspace: Workspace, server: WorkspaceServer, channel: str, project: Path | None
) -> tuple[str, str]:
    """Return the channel and version for an adopted server's entry. For local files, channel and version are both "".

    The default is the last channel that offers the server on this machine.

    Raises:
        ClientConfigError: the channel does not offer the server on this machine, or the configuration is shared.
    """
    state = Store(workspace).state(server.name)
    if not channel:
        here = [row.name for row in reversed(read_channels(workspace)) if _is_here(workspace, state, row.name)]
        channel = here[0] if here and project is None else ""
        return (channel, state.channels[channel].version) if channel else ("", "")
    find_channel(read_channels(workspace), channel)
    if project is not None:
        raise ClientConfigError(
            f"a project's configuration is shared, but channel {channel} exists only on this machine",
            hint="use --from source, or leave out --project",
        )
    if not _is_here(workspace, state, channel):
        raise _not_here(server, channel)
    return channel, state.channels[channel].version


def _is_here(workspace: Workspace, state: ServerState, channel: str) -> bool:
    release = state.channels.get(channel)
    artifact = find_artifact(workspace, state, release.candidate) if release else None
    try:
        if artifact is not None:
            verify_candidate_files(artifact)
    except StateError:
        return False
    return artifact is not None


def adopted_server_variables(server: WorkspaceServer, *, secret: bool) -> tuple[str, ...]:
    """Return the secret variables that an adopted server reads. If `secret` is False, return the other variables."""
    return tuple(name for name in server.config.server.environment if is_secret(name) is secret)


_TARGET: Final = "pypi"


class IndexedPackage(NamedTuple):
    """Version and project page of a server's release on an index."""

    version: str
    page: str

    @property
    def url(self) -> str:
        """Return the URL of the index, or "" for uv's default index."""
        url = self.page.rstrip("/").rpartition("/")[0]
        return "" if url == PypiOptions().index.rstrip("/") else f"{url}/"


def recorded_package(workspace: Workspace, server: WorkspaceServer, project: str) -> IndexedPackage | None:
    """Return the recorded publication of a project, or None, without a request."""
    live = Store(workspace).state(server.name).published.get(_TARGET)
    known = live.evidence if live and "index" in live.evidence else {}
    if live is None or project not in {wheel_name(file) for file in known if file.endswith(".whl")}:
        return None
    return IndexedPackage(live.version, live.evidence["index"])


def query_index_release(
    workspace: Workspace, server: WorkspaceServer, project: str, environ: Mapping[str, str]
) -> IndexedPackage:
    """Return the server's current release on the workspace's index.

    Raises:
        ClientConfigError: the release is not the promoted candidate, or the index does not respond.
    """
    from mcpfactory_pipeline.delivery.publish.publish import (  # noqa: PLC0415 - heavy, and rarely needed
        TARGETS,
        find_release,
        resolve_target_settings,
    )

    offered = Store(workspace).state(server.name).channels
    channel = next((row.name for row in reversed(read_channels(workspace)) if row.name in offered), None)
    if channel is None:
        raise ClientConfigError(
            f"{server.name} cannot be installed from an index: the server was neither published nor promoted, so a package {project} is from someone else",
            hint=f"use --from source, or run 'mcpfactory pipeline run {server.name}', then promote and publish the server",
        )
    otherwise = f"use --from source or --from {channel}"
    target = TARGETS[_TARGET]
    try:
        release = find_release(workspace, server.name, channel)
        settings = resolve_target_settings(workspace, release, target, environ)
        live = target.inspect(release, settings) if target.inspect else None
    except TargetUnavailableError as error:
        raise ClientConfigError(f"the origin of {project} cannot be checked: {error}", hint=otherwise) from error
    except (PublishError, StateError) as error:
        raise ClientConfigError(f"{server.name} cannot be installed from an index: {error}", hint=otherwise) from error
    where = settings["index"]
    if live is None or live.other:
        raise ClientConfigError(
            f"{project} on the index is not from this workspace: {(live.other if live else where)}", hint=otherwise
        )
    if live.same is None or project != release.metadata.project:
        raise ClientConfigError(
            f"{where} does not have {project} {release.version}: someone else could publish this version",
            hint=f"run 'mcpfactory publish {server.name} --target {_TARGET} --channel {channel}', or {otherwise}",
        )
    return IndexedPackage(release.version, live.same.facts["index"])


SOURCE: Final = "source"
INDEX: Final = "index"
_CLIENT_ID: Final = 1  # position of the client ID among a login scheme's variables

_NAME: Final = "mcpfactory"
# Folders in uv's cache that `uvx mcpfactory` runs from begin with these names.
_CACHE_FOLDERS: Final = ("archive-v", "environments-v")

_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class ServerPackage(NamedTuple):
    """Python package of a server: name, program and source version."""

    name: str
    program: str
    version: str

    @property
    def project(self) -> str:
        """Return the normalized package name."""
        return canonicalize_name(self.name)


def server_package(server: WorkspaceServer) -> ServerPackage:
    """Return the Python package of a server. For an adopted server, name and program are the server's name."""
    if server.adopted is not None:
        return ServerPackage(server.name, server.name, read_source_version(server) or "0")
    file = server.folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        name, programs = str(project["name"]), dict(project.get("scripts", {}))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{file} does not declare the name of the server: {error!r}", hint="[project]\nname = …"
        ) from error
    program = name if name in programs else next(iter(programs), name)
    return ServerPackage(name, program, read_source_version(server) or "0")


def versions_by_channel(workspace: Workspace, server: WorkspaceServer) -> dict[str, str]:
    """Return the offered version by channel. The last channel comes first."""
    offered = Store(workspace).state(server.name).channels
    return {row.name: offered[row.name].version for row in reversed(read_channels(workspace)) if row.name in offered}


def promoted_wheel(workspace: Workspace, server: WorkspaceServer, channel: str) -> Path | None:
    """Return a server's wheel in a channel, or None if the wheel is missing or has changed."""
    state = Store(workspace).state(server.name)
    release = state.channels.get(channel)
    known = state.candidates.get(release.candidate) if release else None
    channels = channels_folder(workspace)
    for file, content in (known.files if known else {}).items():
        if file.endswith(".whl") and offered_wheel_digest(channels, channel, wheel_name(file)) == content:
            return offered_project_file(channels, channel, wheel_name(file))
    return None


def launch(
    workspace: Workspace,
    server: WorkspaceServer,
    source: str = "",
    *,
    project: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[LaunchEntry, str, str]:
    """Return the launch entry of a server, the source, and the version.

    `source` is a channel, `index` or `source`. The default is the last channel that offers the server on this machine.
    Without such a channel, the default is `source`. For a `project`, the default is `index` if the server is published
    on an index, otherwise `source`.

    Raises:
        ClientConfigError: the source does not have the server, or a stranger could publish the server's package.
    """
    if server.adopted is not None:
        return _adopted(workspace, server, source, project)
    package, report = server_package(server), _report(server)
    source = source or _default_source(workspace, server, package, project)
    if source == SOURCE:
        started, version = _from_source(workspace, server, package, project)
    elif source == INDEX:
        started, version = _from_index(workspace, server, package, environ)
    elif project is not None and find_channel(read_channels(workspace), source):
        raise ClientConfigError(
            f"a project's configuration is shared, but channel {source} exists only on this machine",
            hint="use --from index or --from source, or leave out --project",
        )
    else:
        started, version = _from_channel(workspace, server, package, source, environ)
    variables, plain = _variables(report, secret=True), _variables(report, secret=False)
    return replace(started, variables=variables, plain=plain), source, version


def _adopted(
    workspace: Workspace, server: WorkspaceServer, source: str, project: Path | None
) -> tuple[LaunchEntry, str, str]:
    if source == INDEX:
        raise ClientConfigError(
            f"mcpfactory does not publish the adopted server {server.name} to an index",
            hint="use --from CHANNEL or --from source",
        )
    channel, offered = ("", "") if source == SOURCE else entry_channel_and_version(workspace, server, source, project)
    started, version = _from_source(workspace, server, server_package(server), project, channel)
    variables, plain = adopted_server_variables(server, secret=True), adopted_server_variables(server, secret=False)
    return replace(started, variables=variables, plain=plain), channel or SOURCE, offered or version


def _default_source(workspace: Workspace, server: WorkspaceServer, package: ServerPackage, project: Path | None) -> str:
    if project is not None:
        return INDEX if recorded_package(workspace, server, package.project) else SOURCE
    return next(
        (one for one in versions_by_channel(workspace, server) if promoted_wheel(workspace, server, one)), SOURCE
    )


def _from_source(
    workspace: Workspace, server: WorkspaceServer, package: ServerPackage, project: Path | None, channel: str = ""
) -> tuple[LaunchEntry, str]:
    place = str(workspace.root) if project is None else PROJECT
    offered = ("--channel", channel) if channel else ()
    return replace(find_mcpfactory(), arguments=("run", server.name, *offered, "--workspace", place)), package.version


def _from_index(
    workspace: Workspace, server: WorkspaceServer, package: ServerPackage, environ: Mapping[str, str]
) -> tuple[LaunchEntry, str]:
    has = recorded_package(workspace, server, package.project) or query_index_release(
        workspace, server, package.project, environ
    )
    wanted = f"{package.name}=={has.version}"
    what = (wanted,) if package.program == package.name else ("--from", wanted, package.program)
    where = ("--index", has.url, "--index-strategy", "first-index") if has.url else ()
    return replace(find_uvx(environ), arguments=(*where, *what)), has.version


def _not_here(server: WorkspaceServer, channel: str) -> ClientConfigError:
    return ClientConfigError(
        f"channel {channel} does not offer {server.name} on this machine",
        hint=f"run 'mcpfactory pipeline restore {server.name}', or use --from source",
    )


def _from_channel(
    workspace: Workspace, server: WorkspaceServer, package: ServerPackage, channel: str, environ: Mapping[str, str]
) -> tuple[LaunchEntry, str]:
    """Return an entry with file paths, because an index could have different files with the same names."""
    find_channel(read_channels(workspace), channel)
    wheel = promoted_wheel(workspace, server, channel)
    if wheel is None:
        raise _not_here(server, channel)
    with_runtime: tuple[str, ...] = ()
    runtime = offered_project_file(channels_folder(workspace), channel, RUNTIME)
    if runtime is not None:
        with_runtime = ("--with", f"{RUNTIME} @ {runtime.as_uri()}")
    elif requires_runtime(wheel):
        raise ClientConfigError(
            f"{server.name} cannot be installed: channel {channel} does not contain the runtime, and someone else could "
            "publish a package under the name of the runtime",
            hint=f"run 'mcpfactory pipeline restore {server.name}', or use --from source",
        )
    version = versions_by_channel(workspace, server)[channel]
    arguments = ("--from", f"{package.name} @ {wheel.as_uri()}", *with_runtime, package.program)
    return replace(find_uvx(environ), arguments=arguments), version


def _report(server: WorkspaceServer) -> Mapping[str, Any]:
    try:
        found = json.loads(server.report.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the report of {server.name} cannot be read: {error}",
            hint=f"mcpfactory pipeline run {server.name} --until generate --force",
        ) from error
    return found if isinstance(found, dict) else {}


def _variables(report: Mapping[str, Any], *, secret: bool) -> tuple[str, ...]:
    """Return the environment variables in a report.

    For a login scheme, only the client ID is included.
    """
    schemes = report.get("credentials", {}).get("schemes", [])
    logins = [row for row in schemes if {flow["grant"] for flow in row["flows"]} & set(LOGIN_GRANTS)]
    spared = {name for row in logins for place, name in enumerate(row["variables"]) if place != _CLIENT_ID}
    rows = (row for row in report.get("environment", []) if bool(row.get("secret")) is secret)
    return tuple(row["name"] for row in rows if row["name"] not in spared)


# --- local programs that entries start ---


def find_mcpfactory() -> LaunchEntry:
    """Return the path of the running mcpfactory.

    A link on the `PATH` is preferred, because the link survives a reinstallation.
    """
    beside = shutil.which(_NAME, path=str(Path(sys.executable).parent))
    if beside is None:  # started with `python -m mcpfactory`
        return LaunchEntry(_NAME, sys.executable, before=("-m", _NAME), todo=_cache_warning())
    linked = shutil.which(_NAME)
    path = linked if linked and Path(linked).resolve() == Path(beside).resolve() else beside
    return LaunchEntry(_NAME, str(Path(path).absolute()), todo=_cache_warning())


def find_uvx(environ: Mapping[str, str]) -> LaunchEntry:
    """Return the path of `uvx`."""
    found = shutil.which("uvx") or shutil.which("uvx", path=str(Path(sys.executable).parent))
    if found is None:
        raise ClientConfigError(
            "uvx is not installed: clients need uvx to start servers from packages",
            hint="install uv, or use --from source",
        )
    todo = [
        f"{name} is set here, but not for clients that start from a desktop: put it into uv.toml"
        for name in _INDEXES
        if environ.get(name)
    ]
    return LaunchEntry("uvx", str(Path(found).absolute()), todo=tuple(todo))


def _cache_warning() -> tuple[str, ...]:
    if not any(part.startswith(_CACHE_FOLDERS) for part in Path(sys.prefix).resolve().parts):
        return ()
    remedy = "uv tool install mcpfactory, then install again"
    return (f"mcpfactory is in the cache of uv, and is lost when the cache is cleaned: {remedy}",)
