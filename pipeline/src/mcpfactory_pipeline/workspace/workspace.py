"""Workspace: a repository with many servers, and the owners of servers.

The table `[owners]` contains the owners, for example `"billing-*" = ["Linus"]`. If several patterns match, the longest
pattern applies. Without the table `[owners]`, the last line of CODEOWNERS that matches `servers/<name>/` contains the
owners.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from mcpfactory_codegen.servers.config import AdoptedSettings, ApiConfig, ServerConfig
from mcpfactory_codegen.settings import Settings, SettingsError, parse_toml, read_settings, read_toml_text
from mcpfactory_codegen.text import closest_match, did_you_mean
from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, WorkspaceError
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings

Result = TypeVar("Result")
Model = TypeVar("Model", bound=Settings)


@dataclass(frozen=True, slots=True)
class BrokenServer:
    """A server with unusable files. `message` has the reason and `hint` the remedy."""

    name: str
    message: str
    hint: str


def isolate_server_errors(name: str, work: Callable[[], Result]) -> Result | BrokenServer:
    """Run `work` for one server, and return its result. An exception becomes a `BrokenServer`."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the others
        return broken_server_of_error(name, error)


def broken_server_of_error(name: str, error: Exception) -> BrokenServer:
    """Convert an error into a `BrokenServer`. The message of an unexpected error contains the error's type."""
    if isinstance(error, PipelineError):
        return BrokenServer(name, str(error), error.hint)
    if isinstance(error, OSError) and error.filename is not None:
        return BrokenServer(name, f"{error.filename}: {error.strerror}", "make it readable and writable for you")
    return BrokenServer(
        name,
        f"{name} cannot be read: {type(error).__name__}: {error}",
        f"mcpfactory pipeline verify {name} checks its history and state; restore its other files from version control",
    )


CONFIG: Final = "mcpfactory.toml"
CALLS: Final = "tests/calls.json"  # path of the hand-written cases of an adopted server
CASES: Final = "tests/_generated/cases.json"  # path of the generated cases in a server's folder
REPORT: Final = ".mcpfactory/report.json"  # path of the report of code generation in a server's folder
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class WorkspaceDocument:
    """An API document of a server. `source` is "" if unknown. `label` is "" if the server has only one document."""

    path: Path
    source: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceServer:
    """A server of a workspace. `documents` is empty for a server without an API document."""

    name: str
    folder: Path
    package: str
    template: str
    documents: tuple[WorkspaceDocument, ...]
    config: ServerConfig

    @property
    def adopted(self) -> AdoptedSettings | None:
        """The settings of an adopted server; None for other servers."""
        return self.config.adopted

    @property
    def document(self) -> Path | None:
        """The first API document on disk; None for a server without an API document."""
        return self.documents[0].path if self.documents else None

    @property
    def source(self) -> str | None:
        """Return the source of the API documents, or the origin of an adopted server; None without either."""
        if self.adopted is not None:
            return self.adopted.origin
        places = [one.source or one.path.relative_to(self.folder).as_posix() for one in self.documents]
        return ", ".join(places) or None

    @property
    def cases(self) -> Path:
        """The path of the generated calls with their expected API requests. The file may be missing."""
        return self.folder / CASES

    @property
    def report(self) -> Path:
        """The path of the code generation report. The report may be missing."""
        return self.folder / REPORT


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class Workspace:
    """A root folder whose `mcpfactory.toml` has a `[workspace]` table."""

    root: Path
    name: str
    settings: WorkspaceSettings

    @classmethod
    def find(cls, start: Path) -> Workspace:
        """Return the workspace that contains the folder `start`.

        Raises:
            WorkspaceError: no workspace is found.
            ConfigError: the settings file of the workspace cannot be read.
        """
        start, mistyped = start.resolve(), ""
        for folder in (start, *start.parents):
            file = folder / CONFIG
            if file.is_file():
                config = read_toml(file)
                if "workspace" in config:
                    settings = read_settings_file(WorkspaceSettings, file)
                    return cls(folder, settings.workspace.name or folder.name, settings)
                if "server" not in config and (key := closest_match("workspace", config)):
                    mistyped = mistyped or f"; did {file} mean [workspace] by [{key}]?"
        raise WorkspaceError(
            f"{start} is not in a workspace: no {CONFIG} with a [workspace] table in this folder or its parents",
            hint=f"mcpfactory init, or change into a workspace{mistyped}",
        )

    @cached_property
    def pipeline(self) -> Path:
        """The folder for state, history, artifacts, channels and locks."""
        return self.root / "pipeline"

    @cached_property
    def artifacts(self) -> Path:
        """The folder for wheels, reports and logs; not tracked."""
        return self.pipeline / "artifacts"

    def servers(self) -> list[WorkspaceServer]:
        """Return the servers with a valid `mcpfactory.toml`."""
        return self.load_servers()[0]

    def load_servers(self, names: Sequence[str] | None = None) -> tuple[list[WorkspaceServer], list[BrokenServer]]:
        """Return the usable servers and the broken servers, of the named servers or of all servers.

        Raises:
            NotFoundError: a named server has no folder.
        """
        servers: list[WorkspaceServer] = []
        broken: list[BrokenServer] = []
        for name in dict.fromkeys(names or self.names()):
            try:
                servers.append(self.server(name))
            except NotFoundError:
                raise
            except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the others
                broken.append(broken_server_of_error(name, error))
        return servers, broken

    def names(self) -> list[str]:
        """Return the names of folders with an `mcpfactory.toml`, even an invalid one.

        Folders of servers that are being created (`.name-…`) are skipped.
        """
        servers = f"{self.root}/servers"
        try:
            folders = [name for name in os.listdir(servers) if not name.startswith(".")]  # noqa: PTH208 - pathlib takes four times as long
        except OSError:  # no server exists yet
            return []
        return sorted(name for name in folders if _exists(f"{servers}/{name}/{CONFIG}"))

    def server(self, name: str) -> WorkspaceServer:
        """Return the server of that name.

        Raises:
            NotFoundError: the server does not exist.
            ConfigError: the server's `mcpfactory.toml` is invalid.
        """
        folder = self.root / "servers" / name
        if not self.has_folder(name) and name not in (known := self.names()):
            raise NotFoundError(
                f"workspace {self.name} has no server {name!r}",
                hint=did_you_mean(name, known, "servers") if known else "mcpfactory new makes a server",
            )
        return _read_server(folder)

    def has_folder(self, name: str) -> bool:
        """Return True if a folder of that name has an `mcpfactory.toml`, even an invalid one."""
        return is_server_name(name) and _exists(self.root / "servers" / name / CONFIG)

    def choose(self, names: list[str] | tuple[str, ...] | None) -> list[WorkspaceServer]:
        """Return the named servers, each once, in the given order; without names, return all usable servers."""
        return [self.server(name) for name in dict.fromkeys(names)] if names else self.servers()


def is_server_name(text: str) -> bool:
    """Return True if a name is valid: one word in a shell, a path and a URL, and not an option."""
    return bool(_NAME.fullmatch(text))


def _exists(file: str | Path) -> bool:
    """Return True if a file exists or cannot be checked. An error is reported when the file is read."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116 - runs for every page; pathlib takes twice as long
    except (ValueError, OSError) as error:
        return isinstance(error, OSError) and error.errno not in _NOT_THERE


def _read_server(folder: Path) -> WorkspaceServer:
    file = folder / CONFIG
    if not is_server_name(folder.name):
        raise ConfigError(
            f"{str(folder)!r} is not a valid name for a server's folder", hint="give the folder a name such as bookshop"
        )
    if folder.is_symlink():
        raise ConfigError(
            f"{folder} is a symbolic link, but a server must be a folder",
            hint="replace the link with the server's folder",
        )
    config = read_settings_file(ServerConfig, file)
    if (config.name or folder.name) != folder.name:
        raise ConfigError(
            f"{file}: server.name is {config.name!r}, but the folder is {folder.name!r}",
            hint=f"if the folder was moved, run 'mcpfactory rename {config.name} {folder.name}'; otherwise set server.name = "
            f'"{folder.name}"',
        )
    if config.adopted is None and not all(part.isidentifier() for part in config.package.split(".")):
        suggested = re.sub(r"\W+", "_", folder.name.lower()) + "_mcp"
        raise ConfigError(
            f"{file}: server.package {config.package!r} is not a valid import name", hint=f'package = "{suggested}"'
        )
    documents = tuple(_document(file, api) for api in config.apis)
    return WorkspaceServer(folder.name, folder, config.package, config.template, documents, config)


def _document(file: Path, api: ApiConfig) -> WorkspaceDocument:
    folder, document = file.parent, file.parent / api.document
    real = document.resolve()
    if not real.is_relative_to(folder) and not real.is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{file}: api.document {api.document!r} is outside the server's folder",
            hint='document = "api/openapi.yaml"',
        )
    return WorkspaceDocument(document, api.source, api.label)


def setting_error(message: str, hint: str) -> ConfigError:
    """Return an error about the root `mcpfactory.toml`."""
    return ConfigError(f"{CONFIG}: {message}", hint=hint)


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    with _config_errors():
        return parse_toml(read_toml_text(file), file)


def read_settings_file(model: type[Model], file: Path) -> Model:
    """Return the settings in a file.

    Raises:
        ConfigError: the file cannot be read, or a setting is invalid.
    """
    with _config_errors():
        return read_settings(model, read_toml_text(file), file)


@contextmanager
def _config_errors() -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise ConfigError(str(error), hint=error.hint) from error


API_MODEL_PROGRAM: Final = "tests/upstream.py"
_EVALUATION: Final = re.compile(r"evals/[^/]+\.ya?ml")
_NO_MODEL: Final = re.compile(r"tests/(_generated/.*|(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py)")


def is_evaluation_case_file(path: str) -> bool:
    """Return True if a path in a server's folder belongs to evaluation cases."""
    return _EVALUATION.fullmatch(path) is not None


def simulated_api_files(paths: Iterable[str]) -> list[str]:
    """Return the files that the simulated API can use; empty without a simulated API.

    The simulated API can use files below `tests/`, except tests and generated files.
    """
    found = [path for path in paths if path.startswith("tests/") and not _NO_MODEL.fullmatch(path)]
    return found if API_MODEL_PROGRAM in found else []


CODEOWNERS: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_LARGEST: Final = 1_000_000  # maximum characters of a CODEOWNERS file to read

Owners = Callable[[str], tuple[str, ...]]
"""The owners of a server, by its name."""


def owners_of(workspace: Workspace) -> Owners:
    """Return a function that returns the owners of a server; empty for a server without owners."""
    if workspace.settings.owners is not None:
        return _by_pattern(workspace.settings.owners)
    for name in CODEOWNERS:
        try:
            text = (workspace.root / name).read_text("utf-8", errors="replace")[:_LARGEST]
        except OSError:
            continue
        return _codeowners(text)
    return lambda _server: ()


def _by_pattern(table: Mapping[str, tuple[str, ...]]) -> Owners:
    patterns = sorted(table, key=len, reverse=True)

    def of(server: str) -> tuple[str, ...]:
        found = next((pattern for pattern in patterns if fnmatch.fnmatchcase(server, pattern)), None)
        return table[found] if found is not None else ()

    return of


def _codeowners(text: str) -> Owners:
    rows: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        # Skip section headings and exclusions. Only GitLab supports them.
        if words and not words[0].startswith(("[", "^[", "!")):
            rows.append((_pattern(words[0]), tuple(who.removeprefix("@") for who in words[1:])))

    def of(server: str) -> tuple[str, ...]:
        return next((people for pattern, people in reversed(rows) if pattern.match(f"servers/{server}/")), ())

    return of


def _pattern(text: str) -> re.Pattern[str]:
    """Return a CODEOWNERS pattern as a regex.

    A pattern with a slash matches only from the root, unless its only slash is at the end.
    """
    rooted = "/" in text.rstrip("/")
    parts = re.split(r"(\*\*/?|\*|\?)", text.strip("/"))
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        ("" if rooted else "(?:.*/)?") + "".join(signs.get(part, re.escape(part)) for part in parts) + "(?:/|$)"
    )
