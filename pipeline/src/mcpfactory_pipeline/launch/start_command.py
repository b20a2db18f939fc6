"""Commands that start a server from its sources, and diagnosis of a failed start."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.isolation.levels import PLAIN, Sandbox, path_without_mcpfactory
from mcpfactory_pipeline.launch import start
from mcpfactory_pipeline.launch.server_environment import ensure_server_python
from mcpfactory_pipeline.workspace.api_addresses import reported_variables, server_variable_prefix
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer
from mcpfactory_runtime.upstream.secrets import SETTINGS, SHARED

# Variables that programs of a user need: file locations, locale, certificates, and keyring and browser for logins.
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
    """Return the command that starts the server in its own environment. A missing environment is created.

    `web` prepares the environment for HTTP.
    """
    if server.adopted is not None:
        if web or arguments:
            raise ServerError(
                f"{server.name} does not accept options of mcpfactory, because the server was adopted",
                hint=f"add the options to 'start' in servers/{server.name}/mcpfactory.toml",
            )
        from mcpfactory_pipeline.launch.adopted_commands import adopted_source_command  # noqa: PLC0415 - heavy

        return adopted_source_command(server)
    return [*package_command(ensure_server_python(server, web=web), server.package, server.folder), *arguments]


def server_environ(server: WorkspaceServer) -> dict[str, str]:
    """Return the environment variables of the server's process. The server's `src` folder is importable.

    The environment has variables that programs need, settings of the runtime, and variables in the server's report and
    configuration. Credentials of the factory and of other servers are left out.
    """
    named = {*_OF_PROGRAMS, *(f"{SHARED}_{one}" for one in _OF_RUNTIME), *_own_variables(server)}
    kept = {name: value for name, value in os.environ.items() if name in named or name.startswith(_PREFIXES)}
    if server.adopted is not None:
        plain = {name: value for name, value in kept.items() if not name.startswith("PYTHON")}
        return {**plain, "PATH": path_without_mcpfactory()}
    parts = [str(server.folder / "src"), os.environ.get("PYTHONPATH", "")]
    return {**kept, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}


def _own_variables(server: WorkspaceServer) -> Iterator[str]:
    prefix = server_variable_prefix(server)
    yield from (f"{prefix}_{setting}" for setting in SETTINGS)
    for name in (*reported_variables(server), *server.config.server.environment, *server.config.publish.environment):
        yield name
        yield f"{name}_FILE"


_SCRIPT: Final = Path(start.__file__)
STARTERS: Final = _SCRIPT.parent  # a sandbox must be able to read this folder
_TOLD: Final = re.compile(r"^error: (?P<what>.+(?:\n {2,}.*)*)\nhint: (?P<hint>.+)$", re.MULTILINE)
_TRACE: Final = "Traceback (most recent call last):\n"
_FRAME: Final = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in .+\n {4}(?P<code>.+)$', re.MULTILINE)
_RAISED: Final = re.compile(r"^[\w.]+(?:: .*)?$", re.MULTILINE)
_PATIENCE: Final = 15.0  # maximum seconds to wait for a server's exit after its input ends


def package_command(python: Path, package: str, folder: Path) -> list[str]:
    """Return the command that runs a server's package through the start script `start.py`."""
    return [str(python), "-P", str(_SCRIPT), package, str(folder)]


def parse_start_script_error(text: str) -> ServerError | None:
    """Return the error that `start.py` wrote to stderr; None if the text contains no such error."""
    found = _TOLD.search(text)
    return ServerError(found["what"], hint=found["hint"]) if found else None


def start_failure_summary(mistake: ServerError) -> str:
    """Format a start failure as the message of a stage."""
    return f"{str(mistake).splitlines()[0]}; hint: {mistake.hint}"


def convert_client_error(error: Exception, server: str = "") -> ServerError:
    """Convert a client's error into an error for the server's owner. `server` is the server's name, if known."""
    if (stated := parse_start_script_error(str(error))) is not None:
        return stated
    kind, called, name = type(error).__name__, server or "the server", server or "NAME"
    if kind == "ProtocolError":
        return ServerError(
            f"{called} does not speak MCP: {error}",
            hint="print to sys.stderr: on stdio, stdout is for MCP messages only",
        )
    if isinstance(error, TimeoutError):
        return ServerError(
            f"{called} did not answer in time" + (f": {error}" if str(error) else ""),
            hint=f"mcpfactory validate {name} shows how the server starts; to wait longer, use --timeout",
        )
    if str(error) == "the server ended with exit code 0":
        return ServerError(
            f"{called} ended before it answered, and without an error", hint="main() must call server.run()"
        )
    return ServerError(
        f"{server}: {error}" if server else str(error), hint=f"mcpfactory run {name} shows its full output"
    )


def find_tool_failure(log: str, server: str, folder: Path) -> ServerError | None:
    """Return the line of the server's code where the last tool failed, according to the log; None if not found."""
    _, found, trace = log.rpartition(_TRACE)
    frames = [frame for frame in _FRAME.finditer(trace) if Path(frame["file"]).is_relative_to(folder)]
    raised = _RAISED.search(trace)
    if not (found and frames and raised):
        return None
    place = f"servers/{server}/{Path(frames[-1]['file']).relative_to(folder).as_posix()}:{frames[-1]['line']}"
    hint = "correct that line of the server"
    if raised[0].startswith("ModuleNotFoundError"):
        hint = f"add the package that has it to [project] dependencies in servers/{server}/pyproject.toml"
    return ServerError(f"{place}: {raised[0]}\n    {frames[-1]['code']}", hint=hint)


def diagnose_start(python: Path, package: str, folder: Path, *, sandbox: Sandbox) -> ServerError | None:
    """Start a failed server again in a sandbox without input. Return its error, or None if the start succeeds."""
    try:
        done = subprocess.run(
            sandbox.command(package_command(python, package, folder)),
            cwd=sandbox.folder,
            env=dict(sandbox.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_start_script_error(done.stderr) if done.returncode == start.START_FAILED else None
