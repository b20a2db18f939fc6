"""Set up a workspace.

Missing files are written, and missing lines are added if that is safe. Existing content is never changed. Changes that
are not safe are reported and left to the user. A single obstacle stops the whole setup.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.settings import read_settings
from mcpfactory_pipeline.base.errors import ConfigError, WorkspaceError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.base.versions import python_version
from mcpfactory_pipeline.delivery.ci.factory_origin import (
    FOLDER,
    FactoryOrigin,
    factory_wheel_differences,
    factory_wheels,
    read_ci_settings,
    read_origin,
    refresh_factory_wheels,
    with_uv_tables,
)
from mcpfactory_pipeline.delivery.ci.github import PLACE, github_workflow
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace, read_settings_file, read_toml

# Lines that a repository needs in its `.gitignore`. They do not affect other files of the repository.
IGNORED: Final = (
    "/pipeline/artifacts/",
    "/pipeline/channels/",
    "/pipeline/locks/",
    "/pipeline/state/.*.tmp",
    "/servers/**/.venv/",
    "/servers/**/__pycache__/",
    "/servers/**/dist/",
    "/servers/**/.env",
)

CODEOWNERS: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")  # read by code forges

NOBODY: Final = "@OWNER"  # placeholder; a person replaces it with the owner's name


def _template(name: str) -> str:
    return (files("mcpfactory_pipeline.maintenance") / "templates" / name).read_text("utf-8")


def workspace_files(
    name: str, origin: FactoryOrigin | None = None, *, branch: str = "main", python: str = "", owner: str = NOBODY
) -> dict[str, str]:
    """Return the files of a new workspace as texts by path.

    If `origin` is set, the files also name the source of mcpfactory, the branch for results and the Python version. The
    `owner` must review changes to the pipeline's records and policies.
    """
    factory = _template("factory.toml").format(factory=json.dumps(str(origin)))  # a JSON string is a TOML string
    ci = _template("ci.toml").format(branch=json.dumps(branch), python=json.dumps(python))
    parts = {"factory": factory if origin else "", "ci": ci if origin else ""}
    config = _template("mcpfactory.toml").format(name=json.dumps(name), **parts)
    project = _template("pyproject.toml")
    return {
        "mcpfactory.toml": config,
        "pyproject.toml": with_uv_tables(project, origin) if origin else project,
        "README.md": _template("README.md").format(name=name),
        ".gitignore": _template("gitignore"),
        ".gitattributes": _template("gitattributes"),
        CODEOWNERS[0]: _template("CODEOWNERS").format(owner=owner),
        PLACE.as_posix(): github_workflow(read_ci_settings(read_settings(WorkspaceSettings, config, CONFIG))),
        "servers/.gitkeep": "",
        "pipeline/state/.gitkeep": "",
        "pipeline/history/.gitkeep": "",
    }


def repository_root_of(folder: Path) -> Path | None:
    """Return the root of the repository that contains a folder. The folder may be missing."""
    top = git_text(_existing(folder), "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None


def main_branch(folder: Path) -> str:
    """Return the main branch: the remote's HEAD, else the checked-out branch, else ""."""
    if repository_root_of(folder) is None:
        return ""
    there = _existing(folder)
    remote = git_text(there, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    found = remote or git_text(there, "symbolic-ref", "--short", "HEAD")
    return found if re.fullmatch(r"[A-Za-z0-9][\w./-]{0,99}", found) else ""


def forge_owner(folder: Path) -> str:
    """Return the owner of the remote repository at GitHub or GitLab as `@name`; "" if unknown."""
    if repository_root_of(folder) is None:
        return ""
    url = git_text(_existing(folder), "remote", "get-url", "origin")
    found = re.search(r"(?:github|gitlab)[\w.-]*[:/]([A-Za-z0-9][\w.-]{0,99})/", url)
    return f"@{found[1]}" if found else ""


def git_ignored_paths(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return the paths below a folder that git would not track."""
    named = list(paths)
    return git_text(folder, "check-ignore", *named).splitlines() if named else []


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.is_dir())


# Names of files that a folder may contain before it becomes a workspace.
_HARMLESS: Final = re.compile(r"\.git|LICEN[CS]E.*|README.*")
_OURS: Final = ("pipeline/state", "pipeline/history", "pipeline/artifacts", "pipeline/channels", "pipeline/locks")
WRITE: Final = "write"  # action: create a missing file
ADD: Final = "add"  # action: append lines to an existing file
WHEELS: Final = "wheels"  # action: put the factory's wheels into a folder
NOTE: Final = "tell"  # action: only print a message to the user
BLOCKED: Final = "blocked"  # action: stop, because something prevents the setup
_FILE: Final = "pyproject.toml"
_MEMBERS: Final = "servers/*"


@dataclass(frozen=True, slots=True)
class WorkspaceSetup:
    """Planned changes to a folder.

    `others` are unrelated files in the folder. `origin` is the source from which CI jobs install mcpfactory.
    """

    folder: Path
    origin: FactoryOrigin | None
    changes: tuple[SetupChange, ...]
    others: tuple[str, ...]

    @property
    def blocked(self) -> tuple[SetupChange, ...]:
        """Return the changes that are blocked."""
        return tuple(change for change in self.changes if change.action == BLOCKED)

    def written(self) -> list[str]:
        """Return the files that an applied setup wrote below the folder."""
        found = [change.path for change in self.changes if change.action == WRITE]
        for change in self.changes:
            if change.action == WHEELS:
                found += [
                    wheel.relative_to(self.folder).as_posix() for wheel in factory_wheels(self.folder / change.path)
                ]
        return found


def plan_workspace_setup(folder: Path, name: str = "", origin: FactoryOrigin | None = None) -> WorkspaceSetup:
    """Plan the changes that turn a folder into a workspace, or that add missing parts to a workspace.

    If `origin` is None, an existing workspace keeps its origin, and a new workspace gets no origin.
    """
    others = _unrelated_entries(folder)
    config = read_toml(folder / CONFIG) if (folder / CONFIG).is_file() else None
    settings = read_settings_file(WorkspaceSettings, folder / CONFIG) if config and "workspace" in config else None
    known = settings is not None
    origin = _origin(settings, origin) if settings else origin
    owner = forge_owner(folder) or NOBODY
    wanted = workspace_files(
        name or folder.name, origin, branch=main_branch(folder) or "main", python=python_version(), owner=owner
    )
    if settings:
        wanted[PLACE.as_posix()] = github_workflow(read_ci_settings(settings))
    changes = [
        *_config(config),
        *(change for path, text in wanted.items() if (change := _file(folder, path, text, known=known))),
        *pyproject_changes(folder, origin, known=known),
        *_wheels(folder, origin),
        *([] if known else _conflicts(folder)),
    ]
    if owner == NOBODY and any(change.path == CODEOWNERS[0] and change.action == WRITE for change in changes):
        changes.append(SetupChange(CODEOWNERS[0], NOTE, note=f"names {NOBODY}: put people or a team there"))
    outer = repository_root_of(folder)
    if outer and outer != folder.resolve() and any(change.path == PLACE.as_posix() for change in changes):
        changes.append(
            SetupChange(
                PLACE.as_posix(), NOTE, note=f"GitHub reads workflows at the root of the repository only, {outer}"
            )
        )
    return WorkspaceSetup(folder, origin, tuple(changes), () if known else others)


def _origin(settings: WorkspaceSettings, wanted: FactoryOrigin | None) -> FactoryOrigin | None:
    """Return the workspace's origin; raise `ConfigError` if `wanted` is another origin."""
    recorded = read_origin(settings)
    if wanted is not None and wanted != recorded:
        raise ConfigError(
            f"this workspace already installs mcpfactory from {recorded or 'an unknown source'}",
            hint=f"mcpfactory ci --factory {wanted}",
        )
    return recorded


def _unrelated_entries(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in folder.iterdir() if not _HARMLESS.fullmatch(entry.name)))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise WorkspaceError(
            f"{folder} cannot be a workspace: {error.strerror}", hint="choose a new or empty folder"
        ) from error


def _config(config: dict[str, Any] | None) -> Iterator[SetupChange]:
    if config is None or "workspace" in config:
        return
    what = "belongs to a server" if "server" in config else "has no table [workspace]"
    hint = "make the workspace around servers/" if "server" in config else 'add [workspace] and name = "…" to it'
    yield SetupChange(CONFIG, BLOCKED, note=f"{what}: {hint}")


def _file(folder: Path, path: str, text: str, *, known: bool) -> SetupChange | None:
    file = folder / path
    if above := _file_above(folder, file.parent):
        return SetupChange(path, BLOCKED, note=f"{above.relative_to(folder).as_posix()} is a file")
    if file.is_dir():
        return SetupChange(path, BLOCKED, note="is a folder")
    if file.name == ".gitkeep":
        return None if file.parent.is_dir() and any(file.parent.iterdir()) else SetupChange(path, WRITE, text)
    if path == "README.md" and any(folder.glob("README*")):
        return None
    if path == CODEOWNERS[0] and (there := next((one for one in CODEOWNERS if (folder / one).exists()), None)):
        lacking = [line for line in _paths(text) if line not in _paths((folder / there).read_text("utf-8", "replace"))]
        return SetupChange(there, NOTE, note=f"name owners of {', '.join(lacking)}") if lacking and not known else None
    if not file.exists():
        return SetupChange(path, WRITE, text)
    if path == PLACE.as_posix() and not known:
        return SetupChange(path, NOTE, note="exists and stays; `mcpfactory ci` would replace it")
    if path == ".gitattributes":
        return _lines(file, path, [line for line in text.splitlines() if not line.startswith("#")])
    return _lines(file, path, IGNORED) if path == ".gitignore" else None


def _file_above(folder: Path, place: Path) -> Path | None:
    """Return the file that occupies the path `place`, or a path above it."""
    above = (one for one in (place, *place.parents) if one.is_relative_to(folder))
    return next((one for one in above if one.exists() and not one.is_dir()), None)


def _paths(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _lines(file: Path, path: str, wanted: Iterable[str]) -> SetupChange | None:
    text = file.read_text(encoding="utf-8", errors="replace")
    there = {line.strip().strip("/") for line in text.splitlines()}
    lacking = [line for line in wanted if not there & {line.strip("/"), line.rpartition("**/")[2].strip("/")}]
    if not lacking:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    start = "" if not text or text.endswith("\n") else end
    return SetupChange(
        path, ADD, start + "".join(f"{line}{end}" for line in ("# mcpfactory:", *lacking)), ", ".join(lacking)
    )


def _wheels(folder: Path, origin: FactoryOrigin | None) -> Iterator[SetupChange]:
    if origin is None or origin.kind != FOLDER:
        return
    place = folder / origin.place
    if above := _file_above(folder, place):
        yield SetupChange(origin.place, BLOCKED, note=f"{above.relative_to(folder).as_posix()} is a file")
    elif factory_wheel_differences(place):
        yield SetupChange(origin.place, WHEELS, note="the wheels of this factory")


def _conflicts(folder: Path) -> Iterator[SetupChange]:
    """Yield an obstacle for each folder that mcpfactory needs but that has unrelated files."""
    for path in _OURS:
        place = folder / path
        if place.is_dir() and (held := sorted(entry.name for entry in place.iterdir() if entry.name != ".gitkeep")):
            yield SetupChange(
                path,
                BLOCKED,
                note=f"contains unrelated files ({', '.join(held[:3])}), but mcpfactory needs this folder",
            )


@dataclass(frozen=True, slots=True)
class SetupChange:
    """A change to a path. `text` is the text to write or append. `note` is a remark for the user."""

    path: str
    action: str
    text: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"path": self.path, "action": self.action, "note": self.note}


def pyproject_changes(folder: Path, origin: FactoryOrigin | None, *, known: bool) -> Iterator[SetupChange]:
    """Yield the changes to an existing `pyproject.toml`.

    If the workspace exists (`known`), only the location of the runtime is added. If the file defines a package, no
    tables are added, because they would change the package's lock file.
    """
    file = folder / _FILE
    if not file.is_file():
        return
    try:
        text = file.read_bytes().decode("utf-8")
        data = tomllib.loads(text)
    except (OSError, ValueError) as error:
        yield SetupChange(_FILE, BLOCKED, note=f"cannot be read: {error}")
        return
    made, problem = text, ""
    if not known and _MEMBERS not in data.get("tool", {}).get("uv", {}).get("workspace", {}).get("members", []):
        problem = _unsafe(folder, data)
        if not problem:
            members = _template("pyproject.toml")
            made = f"{text.rstrip()}\n\n{members}" if text.strip() else members
    if problem:
        yield SetupChange(_FILE, NOTE, note=problem)
    if origin is not None:
        try:
            made = with_uv_tables(made, origin)
        except ConfigError as error:
            yield SetupChange(_FILE, NOTE, note=f"{error}; {error.hint}".removeprefix(f"{_FILE} "))
    if made != text and made.startswith(text.rstrip()):
        added = made.removeprefix(text.rstrip()).lstrip("\n")
        yield SetupChange(
            _FILE, ADD, "\n" * (2 - text.endswith("\n")) + added, "where uv finds servers and their runtime"
        )


def _unsafe(folder: Path, data: dict[str, Any]) -> str:
    """Return the reason why workspace members cannot be added, with the remedy; "" if they can be added."""
    add = f"for `uv sync` of servers add {json.dumps(_MEMBERS)} to members in [tool.uv.workspace]"
    if "workspace" in data.get("tool", {}).get("uv", {}):
        return f"is a uv workspace: {add}"
    if "project" in data or (folder / "uv.lock").exists():
        return f"is a separate package: {add}, which changes its lock file"
    strangers = [place.name for place in (folder / "servers").glob("[!.]*") if not (place / _FILE).is_file()]
    return f"servers/{strangers[0]} is not a package: {add}, and exclude other folders" if strangers else ""


def apply_setup(setup: WorkspaceSetup, *, git: bool = True) -> Workspace:
    """Apply the changes of a setup, and return the workspace.

    Raises:
        StageError: a wheel is not available; nothing was written.
    """
    if setup.blocked:
        obstacles = "; ".join(f"{change.path}: {change.note}" for change in setup.blocked)
        raise ConfigError(
            f"{setup.folder} cannot become a workspace: {obstacles}",
            hint="move the named files, or choose another folder",
        )
    try:
        for change in setup.changes:
            if change.action == WHEELS:  # do this step first, because this step may fail
                refresh_factory_wheels(setup.folder / change.path)
        for change in setup.changes:
            file = setup.folder / change.path
            if change.action in {WRITE, ADD}:
                before = file.read_bytes() if change.action == ADD else b""
                replace_file(file, before + change.text.encode())
    except OSError as error:
        raise WorkspaceError(
            f"{setup.folder} cannot be written: {error.strerror}", hint="choose a folder that you own"
        ) from error
    if git and repository_root_of(setup.folder) is None:  # git is optional: state is stored in files
        git_text(setup.folder, "init", "--quiet", "--initial-branch", "main")
    return Workspace.find(setup.folder)
