"""Packages of a Python index: versions, verified wheels, and locks.

Only wheels are accepted, because the build of a source distribution would run its code.
"""

from __future__ import annotations

import re
import sys
import tomllib
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionSources, CollectedFiles, check_python_lock
from mcpfactory_pipeline.base.errors import ConfigError, RefusedError, StageError
from mcpfactory_pipeline.base.files import venv_python
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, run_uv

_LARGEST: Final = 512 * 1024 * 1024  # maximum size of a wheel in bytes
_PATIENCE: Final = 120  # seconds; timeout of each socket operation of a download
ONLY_WHEELS: Final = ("--only-binary", ":all:")
# Messages of uv about packages without a usable wheel.
_NO_WHEEL: Final = re.compile(
    r"Wheels are required for `([^`]+)`|Failed to (?:download and )?build `([^`]+)`|([\w.-]+(?:==[\w.!+-]+)?) "
    r"(?:has|have) no usable wheels"
)
# A text with line breaks or variables could contain several requirements.
_MORE_THAN_A_REQUIREMENT: Final = re.compile(r"[\r\n]|\$\{")


class WheelHashMismatchError(ToolRejectedInputError):
    """Error if an index lacks the wanted file. `hashes` are the hashes of the files on the index."""

    def __init__(self, message: str, hashes: Sequence[str]) -> None:
        super().__init__(message)
        self.hashes = tuple(hashes)


class IndexWheel(NamedTuple):
    """A wheel on an index."""

    version: str
    file: str
    url: str
    hash: str


def find_wheel(requirement: str, work: Path, *, wanted: str = "") -> IndexWheel:
    """Return the wheel for a requirement. Wheels for all platforms are preferred to wheels for this machine.

    With `wanted`, return the wheel with this hash.

    Raises:
        ToolRejectedInputError: the version or a wheel is missing. The error is a `WheelHashMismatchError` if no file
            has the wanted hash.
    """
    asked, answer = work / "asked.in", work / "pylock.toml"
    asked.write_text(f"{requirement}\n", encoding="utf-8")
    answer.unlink(missing_ok=True)  # uv would keep the version in an existing file
    options = ("--quiet", "--no-deps", "--no-header", "--format", "pylock.toml", "--output-file")
    run_uv("pip", "compile", *options, str(answer), str(asked), cwd=work, log=False)
    package: Mapping[str, Any] = tomllib.loads(answer.read_text(encoding="utf-8"))["packages"][0]
    rows = [_row(str(package["version"]), wheel) for wheel in package.get("wheels", ())]
    if wanted:
        found = next((row for row in rows if row.hash == wanted), None)
        if found is None:
            raise WheelHashMismatchError(
                f"the index has no file of {requirement} with the hash {wanted}: the adopted file was removed "
                "or replaced",
                sorted(row.hash for row in rows),
            )
        return found
    order = {str(tag): place for place, tag in enumerate(sys_tags())}
    usable = sorted((place, row) for row in rows if (place := _place(row.file, order)) is not None)
    if not usable:
        raise ToolRejectedInputError(
            f"the index has no wheel of {requirement} for this machine, and mcpfactory cannot adopt source distributions"
        )
    return usable[0][1]


def _row(version: str, wheel: Mapping[str, Any]) -> IndexWheel:
    url = str(wheel.get("url") or Path(str(wheel.get("path", ""))).as_uri())
    name = str(wheel.get("name") or unquote(urlsplit(url).path).rpartition("/")[2])
    return IndexWheel(version, name, url, f"sha256:{wheel['hashes']['sha256']}")


def _place(file: str, order: Mapping[str, int]) -> int | None:
    """Return the rank of a wheel. A lower rank is better. For another platform, return None."""
    try:
        tags = {str(tag) for tag in parse_wheel_filename(file)[3]}
    except InvalidWheelFilename:
        return None
    if any(tag.endswith("-none-any") for tag in tags & order.keys()):
        return -1
    return min((order[tag] for tag in tags & order.keys()), default=None)


def fetch_wheel(row: IndexWheel) -> bytes:
    """Return the content of a wheel, after a check of its hash."""
    try:
        with urllib.request.urlopen(row.url, timeout=_PATIENCE) as answer:  # noqa: S310 - the URL comes from the configured index
            data: bytes = answer.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        raise StageError(
            f"{row.file} cannot be downloaded from the index: {error}",
            hint="run the command again when the index answers",
        ) from error
    if len(data) > _LARGEST:
        raise ToolRejectedInputError(f"{row.file} is larger than {_LARGEST} bytes")
    if hash_bytes(data) != row.hash:
        raise ToolRejectedInputError(
            f"the hash of {row.file} is {hash_bytes(data)}, but the adopted file has {row.hash}"
        )
    return data


def compile_lock(requirements: Sequence[str], constraints: Sequence[str], work: Path) -> str:
    """Return a lock of requirements and all dependencies for all platforms. No code of the packages is run.

    Raises:
        ConfigError: a requirement is an option of uv, a folder or several lines.
        RefusedError: a requirement or a dependency has no wheel.
    """
    for one in (*requirements, *constraints):
        refuse_unsafe_requirement(one)
    asked, bounds, answer = work / "asked.in", work / "bounds.txt", work / LOCKS["python"]
    asked.write_text("".join(f"{one}\n" for one in requirements), encoding="utf-8")
    bounds.write_text("".join(f"{one}\n" for one in constraints), encoding="utf-8")
    options = ("--quiet", *ONLY_WHEELS, "--generate-hashes", "--universal", "--no-header", "--no-annotate")
    nowhere = ("--no-emit-index-url", "--no-emit-find-links")
    python = ("--python-version", f"{sys.version_info[0]}.{sys.version_info[1]}")
    files = ("--constraints", str(bounds), "--output-file", str(answer), str(asked))
    try:
        run_uv("pip", "compile", *options, *nowhere, *python, *files, cwd=work, log=False)
    except ToolRejectedInputError as error:
        if named := _NO_WHEEL.search(str(error)):
            raise _without_wheel(next(filter(None, named.groups()))) from error
        raise
    return answer.read_text(encoding="utf-8")


def refuse_unsafe_requirement(text: str) -> None:
    """Refuse text that is more than one requirement, or that uv would have to build.

    For example, uv builds the folder in `-e FOLDER`, even if only wheels are permitted.
    """
    try:
        found = None if _MORE_THAN_A_REQUIREMENT.search(text) else Requirement(text)
    except InvalidRequirement:
        found = None
    if found is None:
        raise ConfigError(
            f"{text!r} is not a valid package requirement",
            hint="write a requirement such as 'mcp>=1.20,<2', or NAME @ URL with the URL of a wheel",
        )
    if found.url and not urlsplit(found.url).path.endswith(".whl"):
        raise _without_wheel(text)


def _without_wheel(name: str) -> RefusedError:
    return RefusedError(
        f"there is no wheel of {name}: other distributions are built by their own code, which is not run here",
        hint=(
            "depend on a version that has a wheel, or build one and depend on it: 'NAME @ "
            "file:///…/NAME-VERSION-py3-none-any.whl'; or adopt the server as a program: mcpfactory adopt --command "
            "'PROGRAM …'"
        ),
    )


def collect(sources: AdoptionSources) -> CollectedFiles:
    """Return the wheel of the adopted version, and the lock."""
    adopted = sources.adopted
    requirement = f"{adopted.package}=={adopted.version}"
    lock = sources.lock("python")
    check_python_lock(lock, where=f"servers/{sources.server}/{LOCKS['python']}")
    if not re.search(
        rf"^{re.escape(canonicalize_name(adopted.package))}=={re.escape(adopted.version)}\b", lock.decode(), re.M
    ):
        raise ToolRejectedInputError(
            f"{LOCKS['python']} does not contain {requirement}: renew the lock with 'mcpfactory adopt pypi:{requirement}'"
        )
    row = find_wheel(requirement, sources.work, wanted=adopted.hash)
    return CollectedFiles(
        adopted.package, adopted.version, {row.file: fetch_wheel(row), LOCKS["python"]: lock}, {"pinned": adopted.hash}
    )


def create_locked_environment(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Create a candidate's environment in `place/venv`.

    The environment contains the locked packages and the candidate's wheels.
    """
    venv, lock = place / "venv", files / LOCKS["python"]
    check_python_lock(lock.read_bytes(), addresses=True)
    run_uv("venv", "--quiet", str(venv), cwd=place, log=log)
    python = programs(place) / "python"
    if re.search(r"^[a-z0-9]", lock.read_text(encoding="utf-8"), re.M):
        sources = ("--require-hashes", "--find-links", str(files), "-r", str(lock))
        run_uv("pip", "install", "--quiet", *ONLY_WHEELS, *sources, cwd=place, python=python, log=log)
    wheels = [str(files / name) for name in names if name.endswith(".whl")]
    run_uv("pip", "install", "--quiet", "--no-deps", *ONLY_WHEELS, *wheels, cwd=place, python=python, log=log)


def resolve_python_command(place: Path, start: Sequence[str]) -> tuple[str, ...]:
    """Return the command line in an environment."""
    return (str(programs(place) / start[0]), *start[1:])


def venv_sandbox_paths(program: Path) -> tuple[Path, ...]:
    """Return the paths that a sandbox must read to start a program of a virtual environment."""
    place = program.parent.parent
    if not (place / "pyvenv.cfg").is_file():
        return ()
    base = program.resolve().parent.parent
    return (place, base) if base != place else (place,)


def programs(place: Path) -> Path:
    """Return the program folder of an environment from `create_locked_environment`."""
    return venv_python(place / "venv").parent
