"""Workspace: a repository with many servers, the keys of its `mcpfactory.toml`, and the owners of servers.

The keys are checked whenever the file is read, so that the first command reports a mistyped key, not only the command
that needs it. The content below a field listed here is checked by its own reader.

Owners are in `[owners]`, as `"billing-*" = ["Linus"]`: the longest matching pattern counts. Without that table they are those
of the CODEOWNERS file: the last line that matches `servers/<name>/` counts, as on forges.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from mcpfactory_codegen.servers.values import SERVER_FIELDS, unread
from mcpfactory_codegen.text import listed, nearest
from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, WorkspaceError
from mcpfactory_pipeline.workspace.adopted import Adopted, read_adopted

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BrokenServer:
    """A server whose files cannot be used: why, and what to do about it."""

    name: str
    message: str
    hint: str


def contain(name: str, work: Callable[[], Result]) -> Result | BrokenServer:
    """Return the result of work on one server, or the error, of any type, that broke it."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - one server's files can be broken in any way, and stop no other
        return explain_broken(name, error)


def explain_broken(name: str, error: Exception) -> BrokenServer:
    """Return an error as one server's problem. An error other than a `PipelineError` is unexpected: show its type."""
    if isinstance(error, PipelineError):
        return BrokenServer(name, str(error), error.hint)
    if isinstance(error, OSError) and error.filename is not None:
        return BrokenServer(name, f"{error.filename}: {error.strerror}", "make it readable and writable for you")
    return BrokenServer(
        name,
        f"{name} cannot be read: {type(error).__name__}: {error}",
        f"mcpfactory pipeline verify {name} judges its record; put its other files back as version control has them",
    )


FIELDS: Final[Mapping[str, Collection[str] | None]] = {
    "workspace": ("name", "factory"),
    "pipeline": (
        *("attempts", "backoff", "executor", "channels", "stages"),
        *("limits", "events", "isolation", "container", "evaluation"),
    ),
    "artifacts": ("keep",),
    "ci": ("jobs", "servers", "branch", "python", "channel", "environment", "image", "install"),
    "release": ("name", "packages"),
    "waivers": ("limit", "max_days", "by"),
    "owners": None,
    "publish": None,
}
TARGET_FIELDS: Final[Mapping[str, Collection[str]]] = {
    "pypi": ("url", "index", "auth", "user", "token_variable", "runtime"),
    "mcpb": ("type", "platform", "python", "author"),
    "docker": ("base",),
    "sbom": ("resolve", "platform", "python"),
    "registry": ("url", "auth", "token_variable", "audience"),
}


def unknown_setting(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return an error message and a hint for an unknown table or field in the file; None if all are known."""
    if found := unread(data, FIELDS):
        return found
    targets = data.get("publish")
    if not isinstance(targets, Mapping):
        return None
    for name, table in targets.items():
        if name not in TARGET_FIELDS:
            return f"[publish.{name}] is of no target", listed(name, TARGET_FIELDS, "targets")
        for field in table if isinstance(table, Mapping) else ():
            if field not in TARGET_FIELDS[name]:
                message = f"publish.{name} has an unknown option {field!r}"
                return message, listed(field, TARGET_FIELDS[name], "options")
    return None


CONFIG: Final = "mcpfactory.toml"
CALLS: Final = "tests/calls.json"  # the same for an adopted server: calls that must work
CASES: Final = "tests/_generated/cases.json"  # in a server's folder
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class WorkspaceDocument:
    """An API document of a server on disk, and its source ("" if unknown). `label` is "" for the only one."""

    path: Path
    source: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceServer:
    """A server of a workspace, with its API documents, if any. An adopted server has build and start settings."""

    name: str
    folder: Path
    package: str
    template: str
    documents: tuple[WorkspaceDocument, ...]
    config: Mapping[str, Any]
    adopted: Adopted | None = None

    @property
    def document(self) -> Path | None:
        """The first API document on disk; None when it is not made from one."""
        return self.documents[0].path if self.documents else None

    @property
    def source(self) -> str | None:
        """Return the human-readable source of the API documents or of an adopted server; None if neither."""
        if self.adopted is not None:
            return self.adopted.origin
        places = [one.source or one.path.relative_to(self.folder).as_posix() for one in self.documents]
        return ", ".join(places) or None

    @property
    def cases(self) -> Path:
        """Calls with their expected upstream requests, made by code generation; the file need not exist."""
        return self.folder / CASES


@dataclass(frozen=True)  # no slots: cached properties
class Workspace:
    """A root folder whose `mcpfactory.toml` has a `[workspace]` table."""

    root: Path
    name: str
    config: Mapping[str, Any]

    @classmethod
    def find(cls, start: Path) -> Workspace:
        """Return the workspace that contains `start`: that folder or one above it.

        Raises:
            WorkspaceError: no workspace is found.
            ConfigError: its file cannot be read.
        """
        start, mistyped = start.resolve(), ""
        for folder in (start, *start.parents):
            file = folder / CONFIG
            if file.is_file():
                config = read_toml(file)
                if isinstance(config.get("workspace"), dict):
                    return cls(folder, _workspace_name(file, config), config)
                if "server" not in config and (key := nearest("workspace", config)):
                    mistyped = mistyped or f"; did {file} mean [workspace] by [{key}]?"
        raise WorkspaceError(
            f"{start} is not in a workspace: no {CONFIG} with a [workspace] table here or above",
            hint=f"mcpfactory init, or change into a workspace{mistyped}",
        )

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the table `[pipeline]` of the root `mcpfactory.toml`; empty if it is missing."""
        table = self.config.get("pipeline", {})
        if not isinstance(table, dict):
            raise ConfigError(f"{self.root / CONFIG}: pipeline is not a table", hint="write [pipeline] on its own line")
        return table

    @cached_property
    def pipeline(self) -> Path:
        """The folder with state, history, artifacts, channels and locks."""
        return self.root / "pipeline"

    @cached_property
    def artifacts(self) -> Path:
        """Wheels, reports and logs; not tracked."""
        return self.pipeline / "artifacts"

    def servers(self) -> list[WorkspaceServer]:
        """Return the servers in `servers/` with a valid `mcpfactory.toml`, by name; `survey` also returns others."""
        return self.survey()[0]

    def survey(self, names: Sequence[str] | None = None) -> tuple[list[WorkspaceServer], list[BrokenServer]]:
        """Return the named servers, or all, without repetition: those that can be used, and those that cannot, with the reason.

        Raises:
            NotFoundError: for a name that no folder has.
        """
        servers: list[WorkspaceServer] = []
        broken: list[BrokenServer] = []
        for name in dict.fromkeys(names or self.names()):
            try:
                servers.append(self.server(name))
            except NotFoundError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever is wrong with its files, it is this server's alone
                broken.append(explain_broken(name, error))
        return servers, broken

    def names(self) -> list[str]:
        """Folders with an `mcpfactory.toml`, or that cannot be read; without those that are being created (`.name-…`)."""
        servers = f"{self.root}/servers"
        try:
            folders = [name for name in os.listdir(servers) if not name.startswith(".")]  # noqa: PTH208 - asked for every page about 1,000 servers; pathlib takes four times as long
        except OSError:  # the folder does not exist yet
            return []
        return sorted(name for name in folders if _exists(f"{servers}/{name}/{CONFIG}"))

    def server(self, name: str) -> WorkspaceServer:
        """Return the server of that name.

        Raises:
            NotFoundError: the server does not exist.
            ConfigError: its file is invalid.
        """
        folder = self.root / "servers" / name
        if not self.has_folder(name) and name not in (known := self.names()):
            raise NotFoundError(
                f"workspace {self.name} has no server {name!r}",
                hint=listed(name, known, "servers") if known else "mcpfactory new makes one",
            )
        return _read_server(folder)

    def has_folder(self, name: str) -> bool:
        """Return True if a folder of that name has an `mcpfactory.toml`, valid or not."""
        return is_name(name) and _exists(self.root / "servers" / name / CONFIG)

    def choose(self, names: list[str] | tuple[str, ...] | None) -> list[WorkspaceServer]:
        """Return the named servers in the given order without repetition, or all that can be used when no name is given."""
        return [self.server(name) for name in dict.fromkeys(names)] if names else self.servers()


def is_name(text: str) -> bool:
    """Return True if the name is valid: one word in a shell, a path and a page, and not an option."""
    return bool(_NAME.fullmatch(text))


def _exists(file: str | Path) -> bool:
    """Return True if a file exists, or if we cannot check: reading it then reports the error."""
    try:
        return stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116 - as above
    except (ValueError, OSError) as error:
        return isinstance(error, OSError) and error.errno not in _NOT_THERE


def _workspace_name(file: Path, config: Mapping[str, Any]) -> str:
    """Return the name of the workspace. Raises `ConfigError` for a file with an unknown table or field."""
    if found := unknown_setting(config):
        raise ConfigError(f"{file}: {found[0]}", hint=found[1])
    name = config["workspace"].get("name") or file.parent.name
    if not isinstance(name, str):
        raise ConfigError(f"{file}: workspace.name must be a string", hint='name = "…"')
    return name


def _read_server(folder: Path) -> WorkspaceServer:
    file = folder / CONFIG
    if not is_name(folder.name):
        raise ConfigError(f"{str(folder)!r} is not a valid folder for a server", hint="give it a name like bookshop")
    if folder.is_symlink():
        raise ConfigError(
            f"{folder} is a symbolic link, which can point anywhere", hint="move the server's folder here"
        )
    config = read_toml(file)
    if found := unread(config, SERVER_FIELDS):
        raise ConfigError(f"{file}: {found[0]}", hint=found[1])
    table, apis = config.get("server"), config.get("api", {})
    apis = apis if isinstance(apis, list) else [apis]
    if not isinstance(table, dict) or not all(isinstance(api, dict) for api in apis):
        raise ConfigError(f"{file} has no [server] table", hint='[server]\nname = "…"\npackage = "…"')
    values = {
        key: table.get(key, default) for key, default in (("name", folder.name), ("package", ""), ("template", ""))
    }
    for key, value in values.items():
        if not isinstance(value, str):
            raise ConfigError(f"{file}: server.{key} must be a string", hint=f'{key} = "…"')
    if values["name"] != folder.name:
        raise ConfigError(
            f"{file}: server.name is {values['name']!r}, but the folder is {folder.name!r}",
            hint=f'''mcpfactory rename {values["name"]} {folder.name}, if the folder was moved; otherwise set name = "{folder.name}" in it''',
        )
    package, adopted = values["package"], read_adopted(file, config)
    if adopted is None and not all(part.isidentifier() for part in package.split(".")):
        suggested = re.sub(r"\W+", "_", folder.name.lower()) + "_mcp"
        raise ConfigError(
            f"{file}: server.package {package!r} is not a valid import name", hint=f'package = "{suggested}"'
        )
    return WorkspaceServer(
        name=folder.name,
        folder=folder,
        package=package,
        template=values["template"],
        documents=tuple(one for api in apis if (one := _document(file, api)) is not None),
        config=config,
        adopted=adopted,
    )


def _document(file: Path, api: Mapping[str, Any]) -> WorkspaceDocument | None:
    relative = _text(file, api, "document")
    if relative is None:
        return None
    folder, document = file.parent, file.parent / relative
    real = document.resolve()
    if not real.is_relative_to(folder) and not real.is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{file}: api.document {relative!r} is outside the server's folder", hint='document = "api/openapi.yaml"'
        )
    return WorkspaceDocument(document, _text(file, api, "source") or "", _text(file, api, "label") or "")


def _text(file: Path, table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{file}: api.{key} must be a string", hint=f'{key} = "…"')
    return value or None


def setting_error(message: str, hint: str) -> ConfigError:
    """Return the error for a setting of the root `mcpfactory.toml`."""
    return ConfigError(f"{CONFIG}: {message}", hint=hint)


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        ConfigError: when it cannot be read.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))  # editors on Windows put a mark before the text
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}", hint="correct that line") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", hint="make it readable") from error


MODEL_PROGRAM: Final = "tests/upstream.py"
_EVALUATION: Final = re.compile(r"evals/[^/]+\.ya?ml")
_NO_MODEL: Final = re.compile(r"tests/(_generated/.*|(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py)")


def is_evaluation(path: str) -> bool:
    """Return True if a file, by its path below the server's folder, contains evaluation cases."""
    return _EVALUATION.fullmatch(path) is not None


def model_files(paths: Iterable[str]) -> list[str]:
    """Return the files that the model can use; empty without a model.

    These are the files below `tests/`, except tests and generated files.
    """
    found = [path for path in paths if path.startswith("tests/") and not _NO_MODEL.fullmatch(path)]
    return found if MODEL_PROGRAM in found else []


CODEOWNERS: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_LARGEST: Final = 1_000_000  # characters of a file that are read

Owners = Callable[[str], tuple[str, ...]]
"""The owners of a server, by its name."""


def owners_of(workspace: Workspace) -> Owners:
    """Return the lookup of server owners; a server without a matching line has no owners.

    Raises:
        ConfigError: `[owners]` is invalid.
    """
    if "owners" in workspace.config:
        return read_owners(workspace.config["owners"])
    for name in CODEOWNERS:
        try:
            text = (workspace.root / name).read_text("utf-8", errors="replace")[:_LARGEST]
        except OSError:
            continue
        return _codeowners(text)
    return lambda _server: ()


def read_owners(table: object) -> Owners:
    """Return the same for a table `[owners]`.

    Raises:
        ConfigError: for one that cannot be used.
    """
    if not isinstance(table, Mapping):
        raise setting_error("owners is not a table", '[owners]\n"*" = ["Ada"]')
    for pattern, people in table.items():
        if not isinstance(people, list) or not all(isinstance(one, str) and one.strip() for one in people):
            raise setting_error(f"owners.{pattern} is not a list of names", f'"{pattern}" = ["Ada", "Grace"]')
    patterns = sorted(table, key=len, reverse=True)

    def of(server: str) -> tuple[str, ...]:
        found = next((pattern for pattern in patterns if fnmatch.fnmatchcase(server, pattern)), None)
        return tuple(table[found]) if found is not None else ()

    return of


def _codeowners(text: str) -> Owners:
    rows: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and not words[0].startswith(
            ("[", "^[", "!")
        ):  # sections of GitLab, and what GitHub does not know either
            rows.append((_pattern(words[0]), tuple(who.removeprefix("@") for who in words[1:])))

    def of(server: str) -> tuple[str, ...]:
        return next((people for pattern, people in reversed(rows) if pattern.match(f"servers/{server}/")), ())

    return of


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of CODEOWNERS as one of paths: `*` stays within a folder, `**` does not, a leading slash is the root."""
    rooted = "/" in text.rstrip("/")
    parts = re.split(r"(\*\*/?|\*|\?)", text.strip("/"))
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        ("" if rooted else "(?:.*/)?") + "".join(signs.get(part, re.escape(part)) for part in parts) + "(?:/|$)"
    )
