"""Release: the candidate that a channel offers.

A release is read from the candidate's files, not from the working tree.
"""

from __future__ import annotations

import ast
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name

from mcpfactory_codegen.servers.config import ServerConfig, ServerTable
from mcpfactory_codegen.settings import SettingsError, read_settings
from mcpfactory_pipeline.adoption.candidate import read_record
from mcpfactory_pipeline.base.errors import ConfigError, StateError
from mcpfactory_pipeline.base.hashing import hash_named_texts
from mcpfactory_pipeline.channels.channel import read_verified_file
from mcpfactory_pipeline.channels.contract import wheel_manifest
from mcpfactory_pipeline.plan.stage import Artifact
from mcpfactory_runtime.upstream.secrets import server_url_setting
from mcpfactory_runtime.urls import private_target_kind

_LARGEST: Final = 50_000_000  # maximum size in bytes of a file that is read from a package
_API: Final = re.compile(r"(?:.*/)?_generated/api\.py")
_CONFIG: Final = re.compile(r"[^/]+/mcpfactory\.toml")
_NO_CONFIG: Final = ServerConfig(server=ServerTable())
_OPEN: Final = frozenset({("oauth2", 1), ("awsSigV4", 0), ("awsSigV4", 3)})
"""Public variables of security schemes, such as client IDs and regions: kind of scheme, and position of the variable.

The runtime's `SecurityScheme` defines the positions.
"""


@dataclass(frozen=True, slots=True)
class ServerVariable:
    """An environment variable of a server."""

    name: str
    description: str = ""
    required: bool = False
    secret: bool = False
    default: str = ""


@dataclass(frozen=True, slots=True)
class WheelMetadata:
    """Metadata of a wheel. `urls` maps labels to URLs, and `scripts` maps programs to entry points."""

    name: str
    version: str
    summary: str = ""
    description: str = ""
    license: str = ""
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    urls: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> str:
        """Return the normalized package name."""
        return canonicalize_name(self.name)

    def link(self, *labels: str) -> str:
        """Return the first URL with one of the labels, or ""."""
        links = {label.lower(): url for label, url in self.urls.items()}
        return next((links[label] for label in labels if label in links), "")

    @property
    def repository(self) -> str:
        """Return the URL of the source repository, or ""."""
        return self.link("repository", "source", "source code", "sources", "github", "gitlab")

    @property
    def program(self) -> str:
        """Return the program that starts the server. By default, this program has the same name as the package."""
        return self.name if self.name in self.scripts else next(iter(self.scripts), self.name)


@dataclass(frozen=True, slots=True)
class CandidateRelease:
    """A promoted candidate whose files match the hashes in the state.

    Attributes:
        config: the `mcpfactory.toml` in the source distribution.
        tools: tools in the manifest, and handwritten tools.
        companions: required wheels that a public index may lack, such as the runtime's wheel.
    """

    server: str
    candidate: str
    version: str
    channel: str
    hashes: Mapping[str, str]
    files: Mapping[str, bytes]
    metadata: WheelMetadata
    config: ServerConfig = _NO_CONFIG
    title: str = ""
    instructions: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    variables: tuple[ServerVariable, ...] = ()
    companions: Mapping[str, bytes] = field(default_factory=dict)
    adopted: bool = False

    @property
    def wheel(self) -> str:
        """Return the file name of the wheel."""
        return next(name for name in sorted(self.files) if name.endswith(".whl"))

    @property
    def sdist(self) -> str | None:
        """Return the file name of the sdist, or None for an adopted project or an old candidate."""
        return next((name for name in sorted(self.files) if name.endswith(".tar.gz")), None)

    @property
    def digest(self) -> str:
        """Return one hash for all files."""
        return hash_named_texts(self.hashes)


def read_release(
    server: str,
    channel: str,
    artifact: Artifact,
    kept_tools: tuple[Mapping[str, Any], ...] = (),
    companions: tuple[Path, ...] = (),
) -> CandidateRelease:
    """Return the release from a candidate's files on this machine.

    `kept_tools` are the tools that `validate` found, including handwritten tools.
    """
    files = {name: read_verified_file(artifact.folder / name, content) for name, content in artifact.files.items()}
    try:
        with zipfile.ZipFile(io.BytesIO(files[artifact.wheel.name])) as wheel:
            metadata, manifest, code = _metadata(wheel), wheel_manifest(wheel), _api_module(wheel)
        config = _config(server, [data for name, data in files.items() if name.endswith(".tar.gz")])
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise StateError(
            f"candidate {artifact.id} of {server} cannot be read: {error!r}",
            hint=f"mcpfactory pipeline restore {server} --candidate {artifact.id}",
        ) from error
    manifest = manifest if isinstance(manifest, dict) else {}
    about = manifest.get("server", {})
    return CandidateRelease(
        server=server,
        candidate=artifact.id,
        version=artifact.version,
        channel=channel,
        hashes=dict(artifact.files),
        files=files,
        metadata=metadata,
        config=config,
        title=str(about.get("title") or ""),
        instructions=str(about.get("instructions") or ""),
        tools=_all_tools(manifest.get("tools") or (), kept_tools),
        variables=tuple(_variables(code, config)),
        companions={file.name: file.read_bytes() for file in companions},
    )


def read_adopted_release(
    server: str, channel: str, artifact: Artifact, kept_tools: tuple[Mapping[str, Any], ...] = ()
) -> CandidateRelease:
    """Return the release of an adopted project."""
    record = read_record(artifact.folder, artifact.files)
    own = {name: hash_ for name, hash_ in artifact.files.items() if name.endswith(".whl")}
    config = ServerConfig(server=ServerTable(environment=record.environment))
    found = read_release(server, channel, replace(artifact, files=own), kept_tools)
    variables = tuple(_variables(ast.Module([], []), config))
    return replace(found, config=config, variables=variables, adopted=True)


def _all_tools(
    generated: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    rows = {str(tool.get("name")): tool for tool in generated}
    own = {str(tool.get("name")): tool for tool in kept if tool.get("name") not in rows}
    return (*rows.values(), *own.values())


def _metadata(wheel: zipfile.ZipFile) -> WheelMetadata:
    location = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    found = PathDistribution(zipfile.Path(wheel, location.removesuffix("METADATA")))
    fields = found.metadata

    def text(field: str) -> str:
        return str((fields.get_all(field) or [""])[0])

    labels = (value.partition(", ") for value in fields.get_all("Project-URL") or ())
    return WheelMetadata(
        name=text("Name"),
        version=text("Version"),
        summary=text("Summary"),
        description=text("Description"),
        license=text("License-Expression") or text("License"),
        requires_python=text("Requires-Python"),
        requires=tuple(fields.get_all("Requires-Dist") or ()),
        urls={label: url for label, _, url in labels},
        scripts={one.name: one.value for one in found.entry_points.select(group="console_scripts")},
    )


def _api_module(wheel: zipfile.ZipFile) -> ast.Module:
    """Parse the generated `api.py` without running it."""
    for entry in wheel.infolist():
        if _API.fullmatch(entry.filename) and entry.file_size <= _LARGEST:
            return ast.parse(wheel.read(entry))
    return ast.Module([], [])


def _calls(code: ast.Module, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(code) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _schemes(code: ast.Module) -> list[tuple[str, str, tuple[str, ...]]]:
    created = [call.args for call in _calls(code, "SecurityScheme")]
    return [tuple(ast.literal_eval(arg) for arg in args[:3]) for args in created if len(args) >= 3]


def _addresses(code: ast.Module, *, several: bool) -> Iterator[ServerVariable]:
    """Yield the environment variables for API addresses that a user may have to set.

    If a server has several API documents, each address has a variable.
    """
    servers = [tuple(str(ast.literal_eval(arg)) for arg in call.args) for call in _calls(code, "ServerAddress")]
    for call in _calls(code, "Upstream"):
        names = [ast.literal_eval(one.value) for one in call.keywords if one.arg == "prefix"]
        root = next((str(ast.literal_eval(one.value)) for one in _assigned(code, "BASE_URL")), "")
        beside = [(server_url_setting(name), url, not url) for name, url in servers]
        rooted = [] if several and servers else [("BASE_URL", root, not root and not servers)]
        for setting, url, required in (*rooted, *beside):
            if names and (several or not url or private_target_kind(url)):
                words = f"Address of the API, {f'{url} when unset' if url else 'such as https://api.example.com/v1'}"
                yield ServerVariable(f"{names[0]}_{setting}", words, required)


def _assigned(code: ast.Module, name: str) -> list[ast.Assign]:
    return [one for one in code.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name]


def _config(server: str, sdists: list[bytes]) -> ServerConfig:
    for data in sdists:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for entry in archive:
                if _CONFIG.fullmatch(entry.name) and entry.isfile() and entry.size <= _LARGEST:
                    stream = archive.extractfile(entry)
                    text = stream.read().decode() if stream else ""
                    try:
                        return read_settings(ServerConfig, text, f"mcpfactory.toml of {server}")
                    except SettingsError as error:
                        raise ConfigError(str(error), hint=error.hint) from error
    return _NO_CONFIG


def _variables(code: ast.Module, config: ServerConfig) -> Iterator[ServerVariable]:
    """Yield the server's environment variables. Fields in `[publish.environment.<NAME>]` take precedence."""
    several = any(api.label for api in config.apis)
    found = {one.name: one for one in _addresses(code, several=several)}
    for name, kind, variables in _schemes(code):
        for number, variable in enumerate(variables):
            words = f"{'API key' if kind == 'apiKey' else 'Credentials'} of {name}"
            found[variable] = ServerVariable(variable, words, secret=(kind, number) not in _OPEN)
    for name in config.server.environment:
        found.setdefault(name, ServerVariable(name))
    for name, declared in config.publish.environment.items():
        known = replace(found.get(name, ServerVariable(name)), default="")
        found[name] = replace(known, **declared.model_dump(exclude_unset=True))
    yield from found.values()
