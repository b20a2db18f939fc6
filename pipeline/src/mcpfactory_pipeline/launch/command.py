"""The command that starts a server of the workspace from its sources."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.isolation.levels import PLAIN, foreign_path
from mcpfactory_pipeline.launch.diagnosis import package_command
from mcpfactory_pipeline.launch.environment import server_python
from mcpfactory_pipeline.workspace.upstream import reported_variables, server_prefix
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
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
        from mcpfactory_pipeline.launch.adopted import source_command  # noqa: PLC0415 - heavy, and only such servers need it

        return source_command(server)
    return [*package_command(server_python(server, web=web), server.package, server.folder), *arguments]


def server_environ(server: WorkspaceServer) -> dict[str, str]:
    """Return the environment of the server's process, with its `src` folder importable.

    Of our environment it has the variables that programs need, the runtime's own switches, the variables of the
    server's report, and those that its configuration names; it excludes our credentials and those of other servers.
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
    """Return the table at a key; {} if missing."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}
