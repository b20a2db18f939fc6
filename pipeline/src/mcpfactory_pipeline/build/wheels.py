"""Build wheels, make them canonical, and read their metadata.

The same files always give the same wheel. Files that installers added are omitted, and `RECORD` is rewritten in path
order (PEP 427, PEP 376). Entries are uncompressed, because the compression differs between Python builds.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from email.message import Message
from email.parser import HeaderParser
from glob import escape
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.hashing import zip_bytes
from mcpfactory_pipeline.build.pep517 import build_in_sandbox


def build_wheel(source: Path, files: Iterable[str], work: Path, *, log: bool = True) -> Path:
    """Build the wheel of the package in `source`.

    The build uses a copy of `files` in `work`, so the sources stay unchanged.

    Raises:
        ToolRejectedInputError: the package does not build.
    """
    return build_in_sandbox(source, files, work, ("wheel",), settings={}, log=log)[0]


def build_packages(
    source: Path,
    files: Iterable[str],
    work: Path,
    *,
    backend: str = "",
    settings: Mapping[str, object] | None = None,
    log: bool = True,
) -> tuple[Path, Path]:
    """Build the source distribution of the package in `source`, and the wheel from it; return (wheel, sdist).

    `backend` is the required build backend, such as `hatchling 1.30.1`; "" selects the newest version that the package
    allows. `settings` are the isolation settings for the backend.
    """
    pinned = re.fullmatch(r"([\w.-]+) \(?([\w.+!-]+)\)?", backend)
    constraints = f"{pinned[1]}=={pinned[2]}" if pinned else ""
    sdist, wheel = build_in_sandbox(
        source, files, work, ("sdist", "wheel"), constraints=constraints, settings=settings or {}, log=log
    )
    return wheel, sdist


def wheel_build_backend(wheel: Path) -> str:
    """Return the build backend and version that a wheel names, such as `hatchling 1.30.1`; "" if missing."""
    return str(read_dist_info(wheel, "WHEEL").get("Generator", "")).strip()


def read_dist_info(wheel: Path, name: str) -> Message:
    """Return the headers of a metadata file in a wheel; empty if it is missing."""
    with zipfile.ZipFile(wheel) as archive:
        names = [one for one in archive.namelist() if one.endswith(f".dist-info/{name}")]
        return HeaderParser().parsestr(archive.read(names[0]).decode(errors="replace") if names else "")


def foreign_wheel_entries(wheel: Path, package: str, server: str) -> list[str]:
    """Return the wheel entries outside the package and its metadata, except expected scripts.

    Expected scripts have the name of the server or distribution. An entry is a path, or an entry point as `group:name`.
    """
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    with zipfile.ZipFile(wheel) as archive:
        paths = [path for path in archive.namelist() if not path.endswith("/")]
        points = PathDistribution(zipfile.Path(archive, f"{info}/")).entry_points
    found = [path for path in paths if not _is_below(path, (package.split("."), [info]))]
    found += [f"{one.group}:{one.name}" for one in points if not _is_own_script(one.group, one.name, wheel, server)]
    return sorted(found)


def wheel_entry_pattern(entry: str, wheel: str) -> str:
    """Return an `fnmatch` pattern that matches a wheel entry in every version of the wheel."""
    name, version = wheel.split("-")[:2]
    data = f"{name}-{version}.data/"
    return f"{name}-*.data/{escape(entry.removeprefix(data))}" if entry.startswith(data) else escape(entry)


def _is_below(path: str, folders: Iterable[list[str]]) -> bool:
    parts = path.replace("\\", "/").split("/")
    return ".." not in parts and any(parts[: len(folder)] == folder for folder in folders)


def _is_own_script(group: str, name: str, wheel: Path, server: str) -> bool:
    names = (canonicalize_name(server), wheel_name(wheel.name))
    return group == "console_scripts" and f"{canonicalize_name(name)}-".startswith(tuple(f"{one}-" for one in names))


def wheel_name(wheel: str) -> str:
    """Return the normalized distribution name in a wheel's file name (PEP 427, PEP 503)."""
    return wheel.split("-", maxsplit=1)[0].replace("_", "-").replace(".", "-").lower()


def wheel_version(wheel: str) -> str:
    """Return the version in a wheel's file name."""
    return wheel.split("-")[1]


# Metadata files that a build backend writes. Installers add INSTALLER, REQUESTED, direct_url.json and others.
_BUILT: Final = re.compile(r"METADATA|WHEEL|entry_points\.txt|(licenses|license_files|sboms)/.+")


def is_wheel_file(path: str) -> bool:
    """Return True if a path in `RECORD` belongs to the wheel; False if the installer added the file."""
    top, _, rest = path.partition("/")
    if top.endswith(".dist-info"):
        return _BUILT.fullmatch(rest) is not None
    return top.startswith("mcpfactory") and "__pycache__/" not in rest


def digest(data: bytes) -> str:
    """Return the hash of a file in `RECORD` format."""
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()}"


def canonical_wheel(files: Mapping[str, bytes]) -> bytes:
    """Return a wheel with the files of a package and of its `.dist-info`, without their `RECORD`."""
    record = f"{_info(files)}/RECORD"
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows((path, digest(files[path]), len(files[path])) for path in sorted(files))
    rows.writerow((record, "", ""))
    return zip_bytes({**files, record: text.getvalue().encode()})


def canonical_wheel_name(files: Mapping[str, bytes]) -> str:
    """Return the file name of a wheel, which contains distribution, version and tag."""
    info = _info(files)
    tag = next(line[5:] for line in files[f"{info}/WHEEL"].decode().splitlines() if line.startswith("Tag: "))
    return f"{info.removesuffix('.dist-info')}-{tag}.whl"


def read_wheel(wheel: Path) -> dict[str, bytes]:
    """Return the files that `canonical_wheel` needs to rebuild the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if is_wheel_file(name)}


def _info(files: Mapping[str, bytes]) -> str:
    return next(path.partition("/")[0] for path in files if path.endswith(".dist-info/WHEEL"))


_PROJECT: Final = re.compile(r"^\[project\][^\n]*\n(?P<table>(?:(?!^\[).*\n?)*)", re.MULTILINE)
_STATIC: Final = re.compile(r"""^(?P<key>version\s*=\s*)(?P<quote>["'])[^"'\n]*(?P=quote)""", re.MULTILINE)
_DYNAMIC: Final = re.compile(r"""^(?P<key>__version__\s*=\s*)(?P<quote>["'])[^"'\n]*(?P=quote)""", re.MULTILINE)


def replace_source_version(folder: Path, package: str, version: str) -> tuple[str, str]:
    """Return the path and the changed text of the file that contains the server's version."""
    path = "pyproject.toml"
    text = _text(folder / path)
    if (table := _PROJECT.search(text)) and _STATIC.search(table["table"]):
        start, end = table.span("table")
        return path, text[:start] + _replace(_STATIC, table["table"], version) + text[end:]
    path = f"src/{package.replace('.', '/')}/__init__.py"
    text = _text(folder / path)
    if _DYNAMIC.search(text):
        return path, _replace(_DYNAMIC, text, version)
    raise ReleaseError(
        "version",
        f"neither pyproject.toml nor {path} states the version",
        hint='write version = "0.1.0" below [project] of pyproject.toml',
    )


def _replace(pattern: re.Pattern[str], text: str, version: str) -> str:
    return pattern.sub(lambda found: f"{found['key']}{found['quote']}{version}{found['quote']}", text, count=1)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return ""
