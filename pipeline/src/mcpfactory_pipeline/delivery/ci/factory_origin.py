"""Installation source of mcpfactory for CI jobs: a package index, a repository, or a folder of wheels.

```toml
[workspace]
factory = "tools/mcpfactory/"                     # wheels in a folder of the workspace, tracked
factory = "git+https://host/repository@1.2.3"     # a commit, a tag or a branch of a repository
factory = "index"                                 # this version, from the package index of the jobs
```

If mcpfactory cannot edit a configuration file safely, the error contains the line to add.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, NotFoundError, StageError
from mcpfactory_pipeline.base.files import has_file_content, write_if_changed
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.versions import installed_version
from mcpfactory_pipeline.build.factory_distributions import DISTRIBUTIONS, RUNTIME, write_factory_wheel
from mcpfactory_pipeline.build.wheels import read_wheel
from mcpfactory_pipeline.workspace.settings import CiSettings, WorkspaceSettings

NEWER: Final = "is newer"


@dataclass(frozen=True, slots=True)
class WheelDifference(JsonRecord):
    """A wheel that differs from the running version. `there` is the version of the wheel, or "" for a missing wheel."""

    name: str
    there: str
    here: str
    words: str


def factory_wheel_differences(folder: Path) -> list[WheelDifference]:
    """Return the factory's wheels that are missing in a folder or differ from the running version, else their lock."""
    there = _wheels(folder)
    differences = (_difference(name, there.get(name, [])) for name in DISTRIBUTIONS)
    found = [one for one in differences if one is not None]
    if not found and not has_file_content(folder / LOCK, factory_lock(folder).encode()):
        found.append(WheelDifference(LOCK, "", installed_version("mcpfactory"), "is missing or out of date"))
    return found


LOCK: Final = "requirements.lock"


def factory_lock(folder: Path) -> str:
    """Return pip's requirements with the hashes of the factory's wheels in a folder, and of all their dependencies.

    The locked dependencies belong to this version of the factory, so that no package index is needed to write them.
    """
    lines = [
        f"{name}=={parse_wheel_filename(wheel.name)[1]} \\\n    --hash={hash_file(wheel)}\n"
        for name, wheels in _wheels(folder).items()
        for wheel in wheels
    ]
    packaged = files("mcpfactory_pipeline.delivery.ci") / "templates" / LOCK
    return "".join(["# Written by `mcpfactory ci`.\n", *lines, packaged.read_text("utf-8")])


def factory_wheels(folder: Path) -> list[Path]:
    """Return the factory's wheels in a folder."""
    return [wheel for wheels in _wheels(folder).values() for wheel in wheels]


def refresh_factory_wheels(folder: Path) -> list[str]:
    """Replace the factory's wheels in the folder with wheels of the running version. Return the changed file names.

    Raises:
        StageError: a wheel cannot be built or found. The folder stays unchanged.
    """
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(len(DISTRIBUTIONS)) as pool:
        try:
            built = list(pool.map(lambda name: write_factory_wheel(name, Path(place, name)), DISTRIBUTIONS))
        except StageError as error:
            raise StageError(
                f"the wheels of mcpfactory are not available: {error}",
                hint=f"{error.hint}; or use a repository: --factory git+https://…@REF",
            ) from error
        wanted = {wheel.name: wheel.read_bytes() for wheel in built}
    changed = [name for name, data in wanted.items() if write_if_changed(folder / name, data)]
    for wheel in factory_wheels(folder):
        if wheel.name not in wanted:
            wheel.unlink()
            changed.append(wheel.name)
    if write_if_changed(folder / LOCK, factory_lock(folder).encode()):
        changed.append(LOCK)
    return sorted(changed)


def _wheels(folder: Path) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for wheel in sorted(folder.glob("mcpfactory*.whl")):
        try:
            name = str(parse_wheel_filename(wheel.name)[0])
        except InvalidWheelFilename:
            continue
        if name in DISTRIBUTIONS:
            found.setdefault(name, []).append(wheel)
    return found


def _difference(name: str, wheels: list[Path]) -> WheelDifference | None:
    here = installed_version(name)
    if not wheels:
        return WheelDifference(name, "", here, "is missing")
    if len(wheels) > 1:
        return WheelDifference(name, "", here, f"exists {len(wheels)} times")
    version = parse_wheel_filename(wheels[0].name)[1]
    there = str(version)
    if version != Version(here):
        return WheelDifference(name, there, here, "is older" if version < Version(here) else NEWER)
    try:
        same = _same(name, read_wheel(wheels[0]))
    except (OSError, ValueError, KeyError, StopIteration, zipfile.BadZipFile) as error:
        return WheelDifference(name, there, here, f"cannot be read: {error}")
    return None if same else WheelDifference(name, there, here, "has other code")


def _same(name: str, files: Mapping[str, bytes]) -> bool:
    package = name.replace("-", "_")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    root = Path(spec.origin).parent.parent
    code = {path: data for path, data in files.items() if path.startswith(f"{package}/")}
    modules = {file.relative_to(root).as_posix() for file in (root / package).rglob("*.py")}
    if modules - set(code) or not all(has_file_content(root / path, data) for path, data in code.items()):
        return False
    metadata = next(data.decode() for path, data in files.items() if path.endswith(".dist-info/METADATA"))
    return _requirements(metadata) == _requirements(_metadata(name))


def _metadata(name: str) -> str:
    try:
        return distribution(name).read_text("METADATA") or ""
    except PackageNotFoundError:
        return ""


def _requirements(metadata: str) -> list[str]:
    return sorted(line for line in metadata.splitlines() if line.startswith("Requires-"))


INDEX: Final = "index"
GIT: Final = "git"
FOLDER: Final = "folder"
FORMS: Final = "index, git+https://…@REF, or a folder of the workspace with a slash at its end (tools/mcpfactory/)"

# Python distribution → its folder in mcpfactory's repository; dependencies come first.
SUBFOLDERS: Final[Mapping[str, str]] = {
    "mcpfactory-runtime": "factory/runtime",
    "mcpfactory-codegen": "factory/codegen",
    "mcpfactory-pipeline": "pipeline",
    "mcpfactory": "factory/cli",
}
# The values are inserted into shell scripts and patterns, so only characters without special meaning are allowed.
_REPOSITORY: Final = re.compile(r"(?:https?|ssh|file)://[A-Za-z0-9@][A-Za-z0-9@._~:/%+-]*|file:///[A-Za-z0-9._~/%+-]+")
_REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_PLACE: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*/)+")


@dataclass(frozen=True, slots=True)
class FactoryOrigin:
    """An installation source of the factory: `place` is a repository URL or a folder path, `ref` is a Git ref."""

    kind: str
    place: str = ""
    ref: str = ""

    def __str__(self) -> str:
        """Return the text that `parse_origin` reads."""
        return {INDEX: INDEX, GIT: f"git+{self.place}@{self.ref}", FOLDER: self.place}[self.kind]


def describe_origin(origin: FactoryOrigin) -> str:
    """Describe the origin for people."""
    if origin.kind == INDEX:
        return (
            f"the package index, mcpfactory {installed_version('mcpfactory')}: make sure that the index has it, and that "
            "it is your package"
        )
    return str(origin)


def parse_origin(text: str) -> FactoryOrigin:
    """Parse the text form of an origin."""
    if text == INDEX:
        return FactoryOrigin(INDEX)
    if text.startswith("git+"):
        place, _, ref = text.removeprefix("git+").rpartition("@")
        return FactoryOrigin(GIT, _repository(text, place), ref) if _REF.fullmatch(ref) else _no_ref(text)
    if _PLACE.fullmatch(text) and ".." not in text.split("/"):
        return FactoryOrigin(FOLDER, text)
    raise ConfigError(f"workspace.factory: {text!r} is not a valid source of mcpfactory", hint=FORMS)


def _repository(text: str, place: str) -> str:
    if not _REPOSITORY.fullmatch(place):
        raise ConfigError(
            f"workspace.factory: {text!r} is not a valid URL of a repository", hint="write git+https://…@REF"
        )
    if urlsplit(place).password is not None or (urlsplit(place).username and not place.startswith("ssh:")):
        raise ConfigError(
            "the URL in workspace.factory contains a password, but Git tracks mcpfactory.toml",
            hint=(
                "remove the password from the URL, and give jobs another credential; or use 'mcpfactory ci "
                "--factory vendored'"
            ),
        )
    return place


def _no_ref(text: str) -> FactoryOrigin:
    raise ConfigError(
        f"workspace.factory: {text!r} has no commit or tag", hint="add a commit or a tag: git+https://…@REF"
    )


def read_origin(settings: WorkspaceSettings) -> FactoryOrigin | None:
    """Return the origin of mcpfactory in the settings, or None if it is not set."""
    return None if settings.workspace.factory is None else parse_origin(settings.workspace.factory)


def read_ci_settings(settings: WorkspaceSettings) -> CiSettings:
    """Return the settings in `[ci]`. By default, `install` is the command that installs mcpfactory from its origin."""
    line = settings.ci.install or factory_install_command(read_origin(settings) or FactoryOrigin(INDEX))
    return settings.ci.model_copy(update={"install": line})


def factory_install_command(origin: FactoryOrigin) -> str:
    """Return the shell command that installs the factory.

    Only the wheels in a folder have hashes, so `unverified_install_note` reports the other commands. Source
    distributions are excluded, because no hash covers the packages that build them.
    """
    if origin.kind == INDEX:
        return f"python -m pip install mcpfactory=={installed_version('mcpfactory')}"
    if origin.kind == FOLDER:
        return (
            f"python -m pip install {_HASHES} --only-binary :all: --find-links {origin.place} -r {origin.place}{LOCK}"
        )
    parts = (f'"{name} @ {origin}#subdirectory={folder}"' for name, folder in SUBFOLDERS.items())
    return " ".join(["python -m pip install", *parts])


_HASHES: Final = "--require-hashes"


def unverified_install_note(settings: WorkspaceSettings) -> str:
    """Return a note if jobs install packages without hashes; "" if each package has one."""
    line = read_ci_settings(settings).install
    if _HASHES in line:
        return ""
    return (
        f"jobs with write access install packages without hashes ({line}); hint: mcpfactory ci --factory vendored, or "
        f"set ci.install in mcpfactory.toml to a command with {_HASHES}"
    )


def uv_tables(origin: FactoryOrigin) -> str:
    """Return the uv tables for the root `pyproject.toml` that let uv find the runtime.

    The tables contain the path of the wheel, because a stranger could publish a package with the runtime's name.
    """
    if origin.kind == INDEX:
        return ""
    if origin.kind == GIT:
        source = {"git": origin.place, "rev": origin.ref, "subdirectory": SUBFOLDERS["mcpfactory-runtime"]}
    else:
        source = {
            "path": f"{origin.place}mcpfactory_runtime-{installed_version('mcpfactory-runtime')}-py3-none-any.whl"
        }
    inline = ", ".join(f"{key} = {json.dumps(text)}" for key, text in source.items())
    return f"[tool.uv.sources]\nmcpfactory-runtime = {{ {inline} }}\n"


VENDORED: Final = FactoryOrigin(FOLDER, "tools/mcpfactory/")


def choose_origin(text: str) -> FactoryOrigin:
    """Return the origin for a user's text: `git`, `vendored`, "", or a text for `parse_origin`.

    The default is `vendored`, which stores the factory's wheels with their hashes in the workspace.

    Raises:
        NotFoundError: the text is not a valid origin.
        ConfigError: mcpfactory was not installed from a repository.
    """
    if text in {"", "vendored"}:
        return VENDORED
    if text == "git":
        installed = installed_origin()
        if installed is None:
            raise ConfigError(
                "mcpfactory was not installed from a repository", hint="give a repository: git+https://…@REF"
            )
        return installed
    try:
        return parse_origin(text)
    except ConfigError as error:
        if text.startswith("git+"):
            raise ConfigError(str(error).replace("workspace.factory", "the factory"), hint=error.hint) from error
        raise NotFoundError(
            f"{text!r} is not a valid source of mcpfactory", hint=f"use git, vendored, {FORMS}"
        ) from error


def installed_origin() -> FactoryOrigin | None:
    """Return the Git repository and commit of this installation (PEP 610), or None."""
    try:
        found: Any = json.loads(distribution("mcpfactory").read_text("direct_url.json") or "{}")
        url, vcs = found["url"], found["vcs_info"]
        return parse_origin(f"git+{url}@{vcs['commit_id']}") if vcs["vcs"] == "git" else None
    except (PackageNotFoundError, ValueError, KeyError, TypeError, ConfigError):
        return None


_PROJECT: Final = "pyproject.toml"


def record_origin(config: Path, origin: FactoryOrigin) -> bool:
    """Write the origin into a root `mcpfactory.toml`. Return True if the file changed."""
    return write_if_changed(config, with_origin(_read(config), origin).encode())


def write_origin_files(root: Path, origin: FactoryOrigin) -> list[str]:
    """Write the wheels and uv tables of the origin. Return the changed paths."""
    changed = []
    folder = root / origin.place
    if origin.kind == FOLDER and factory_wheel_differences(folder):
        changed += [f"{origin.place}{name}" for name in refresh_factory_wheels(folder)]
    project = root / _PROJECT
    try:
        if project.is_file() and write_if_changed(project, with_uv_tables(_read(project), origin).encode()):
            changed.append(_PROJECT)
    except ConfigError:
        pass  # `unconfigured_uv_error` reports the missing settings later
    return changed


def stale_factory_wheels_error(root: Path, origin: FactoryOrigin) -> ConfigError | None:
    """Return an error if the wheels in the workspace differ from the running version, otherwise None."""
    wheels = factory_wheel_differences(root / origin.place) if origin.kind == FOLDER else []
    if not wheels:
        return None
    found = "; ".join(" ".join(filter(None, (one.name, one.there, one.words))) for one in wheels)
    newer = any(one.words == NEWER for one in wheels)
    remedy = f"python -m pip install {origin.place}mcpfactory*.whl, or mcpfactory ci" if newer else "mcpfactory ci"
    return ConfigError(f"{origin.place} does not match the running mcpfactory {wheels[-1].here}: {found}", hint=remedy)


def unconfigured_uv_error(root: Path, origin: FactoryOrigin) -> ConfigError | None:
    """Return an error if the root's `pyproject.toml` does not let uv find the runtime, otherwise None."""
    project = root / _PROJECT
    try:
        if project.is_file() and with_uv_tables(_read(project), origin) != _read(project):
            return ConfigError(f"{_PROJECT} has no uv source for the runtime", hint="mcpfactory ci")
    except ConfigError as error:
        return error
    return None


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")  # text mode would change the line endings
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint="make the file readable") from error


_BEGIN: Final = "# Where uv finds the runtime of servers. Written by `mcpfactory ci`:"
_END: Final = "# (end)"
_BLOCK: Final = re.compile(rf"\n?^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n", re.MULTILINE | re.DOTALL)
_HEADER: Final = re.compile(r"\s*\[\s*workspace\s*\]\s*(#.*)?")


def with_origin(text: str, origin: FactoryOrigin) -> str:
    """Return the text of a root `mcpfactory.toml` with the origin in table `[workspace]`."""
    line = f"factory = {json.dumps(str(origin))}"
    lines = text.split("\n")
    header = next((number for number, one in enumerate(lines) if _HEADER.fullmatch(one.rstrip("\r"))), None)
    if header is not None:
        end = next((n for n in range(header + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        old = next((n for n in range(header + 1, end) if re.match(r"\s*factory\s*=", lines[n])), None)
        if old is None:
            name = next((n for n in range(header + 1, end) if re.match(r"\s*name\s*=", lines[n])), header)
            lines.insert(name + 1, line)
        else:
            lines[old] = line
    edited, wanted = "\n".join(lines), _toml(text, "mcpfactory.toml")
    if header is None or _toml(edited, "mcpfactory.toml") != {
        **wanted,
        "workspace": {**wanted["workspace"], "factory": str(origin)},
    }:
        raise ConfigError(
            "mcpfactory cannot add 'factory' to mcpfactory.toml automatically", hint=f"write below [workspace]: {line}"
        )
    return edited


def with_uv_tables(text: str, origin: FactoryOrigin) -> str:
    """Return the text of a root `pyproject.toml` with the uv tables of the origin."""
    tables = uv_tables(origin)
    block = f"{_BEGIN}\n{tables}{_END}\n" if tables else ""
    if _BLOCK.search(text):
        edited = _BLOCK.sub(lambda found: (found[0][:1] if found[0][0] == "\n" else "") + block if block else "", text)
    elif not block or RUNTIME in _toml(text, "pyproject.toml").get("tool", {}).get("uv", {}).get("sources", {}):
        return text  # the file already has a source for the runtime
    else:
        edited = f"{text.rstrip()}\n\n{block}" if text.strip() else block
    try:
        changed = _without_runtime(_toml(edited, "pyproject.toml")) != _without_runtime(_toml(text, "pyproject.toml"))
    except ConfigError:
        changed = True
    if changed:
        remedy = (
            f"add to these tables: {'; '.join(filter(None, tables.splitlines()))}"
            if tables
            else f"remove the line of {RUNTIME} from [tool.uv.sources]"
        )
        raise ConfigError("pyproject.toml already has [tool.uv] tables that mcpfactory did not write", hint=remedy)
    return edited


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}", hint=f"correct {name}") from error


def _without_runtime(data: dict[str, Any]) -> dict[str, Any]:
    tool = data.get("tool", {})
    uv = tool.get("uv", {})
    sources = {name: value for name, value in uv.get("sources", {}).items() if name != RUNTIME}
    return {**data, "tool": {**tool, "uv": {**uv, "sources": sources}}}
