"""How a client starts a server of the workspace: from a channel, from a package index, or from its sources here."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.channels.artifacts import channels_folder
from mcpfactory_pipeline.channels.channel import index_of
from mcpfactory_pipeline.clients.entry import Launch
from mcpfactory_pipeline.clients.errors import ClientError
from mcpfactory_pipeline.plan.policy import channel_named, read_channels
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Server, Workspace
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS

__all__ = ["INDEX", "SOURCE", "Package", "launch", "package_of", "promoted"]

SOURCE: Final = "source"
INDEX: Final = "index"
_CLIENT_ID: Final = 1  # of a scheme's variables: access token, client id, client secret
_VERSION: Final = re.compile(r"^__version__\s*=\s*[\"']([^\"']+)[\"']", re.MULTILINE)


class Package(NamedTuple):
    """A server as a distribution: its name, the program that it installs, and the version of its sources."""

    name: str
    program: str
    version: str


def package_of(server: Server) -> Package:
    """What the server's `pyproject.toml` says. Raises `ConfigError`."""
    file = server.folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        name, programs = str(project["name"]), dict(project.get("scripts", {}))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{file} does not say what the server is called: {error!r}", hint="[project]\nname = …"
        ) from error
    program = name if name in programs else next(iter(programs), name)
    return Package(name, program, str(project.get("version") or _source_version(server)))


def promoted(workspace: Workspace, server: Server) -> dict[str, str]:
    """Which version each channel offers, the last channel first. Raises `StateError` and `ConfigError`."""
    offered = Store(workspace).state(server.name).channels
    return {row.name: offered[row.name].version for row in reversed(read_channels(workspace)) if row.name in offered}


def launch(workspace: Workspace, server: Server, source: str = "") -> tuple[Launch, str, str]:
    """How the server is started, from where, and in which version.

    Args:
        workspace: of the server.
        server: one of it.
        source: a channel, `index` (PyPI, or the one that uv is set to) or `source`; "" takes the last channel that offers the
            server on this machine, or else its sources.

    Raises:
        ClientError: it is not there.
        NotFoundError: there is no such channel.
    """
    package, offered = package_of(server), promoted(workspace, server)
    report = _report(server)
    variables, plain = _variables(report, secret=True), _variables(report, secret=False)
    if not source:
        source = next((name for name in offered if _index(workspace, name, package).is_dir()), SOURCE)
    if source == SOURCE:
        own = server.folder / ".venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        python = str(own if own.exists() else Path(sys.executable))
        literals = {"PYTHONPATH": str(server.folder / "src")}
        return Launch(python, python, ("-m", server.package), variables, plain, literals), source, package.version
    where: tuple[str, ...] = ()
    if source == INDEX:
        version = next(iter(offered.values()), package.version)
    else:
        channel_named(read_channels(workspace), source)
        if source not in offered or not _index(workspace, source, package).is_dir():
            raise ClientError(
                f"channel {source} does not offer {server.name} on this machine",
                hint=f"mcpfactory pipeline restore {server.name}, or --from source",
            )
        version = offered[source]
        where = ("--index", index_of(channels_folder(workspace), source).resolve().as_uri())
    wanted = f"{package.name}=={version}"
    what = (wanted,) if package.program == package.name else ("--from", wanted, package.program)
    program, path = _uvx()
    return Launch(program, path, (*where, *what), variables, plain), source, version


def _index(workspace: Workspace, channel: str, package: Package) -> Path:
    name = re.sub(r"[-_.]+", "-", package.name).lower()
    return index_of(channels_folder(workspace), channel) / name


def _uvx() -> tuple[str, str]:
    """Its name, which is its path when no shell finds it; and its path."""
    if found := shutil.which("uvx"):
        return "uvx", found
    beside = shutil.which("uvx", path=str(Path(sys.executable).parent))
    if beside is None:
        raise ClientError("uvx is not here, which starts servers from packages", hint="install uv, or --from source")
    return beside, beside


def _report(server: Server) -> Mapping[str, Any]:
    """The server's report; empty without one."""
    try:
        found = json.loads((server.folder / ".mcpfactory" / "report.json").read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the report of {server.name} cannot be read: {error}",
            hint=f"mcpfactory pipeline run {server.name} --until generate --force",
        ) from error
    return found if isinstance(found, dict) else {}


def _variables(report: Mapping[str, Any], *, secret: bool) -> tuple[str, ...]:
    """What the report names, but of a scheme with a login only the id of the client: the login has the rest.

    A reference to a variable that nobody sets would stand in the login's way.
    """
    schemes = report.get("credentials", {}).get("schemes", [])
    logins = [row for row in schemes if {flow["grant"] for flow in row["flows"]} & set(LOGIN_GRANTS)]
    spared = {name for row in logins for place, name in enumerate(row["variables"]) if place != _CLIENT_ID}
    rows = (row for row in report.get("environment", []) if bool(row.get("secret")) is secret)
    return tuple(row["name"] for row in rows if row["name"] not in spared)


def _source_version(server: Server) -> str:
    file = server.folder / "src" / Path(*server.package.split(".")) / "__init__.py"
    try:
        found = _VERSION.search(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        found = None
    return found[1] if found else "0"
