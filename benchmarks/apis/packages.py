"""Files out of packages, as the registries' own clients give them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bench.peers.installations import node

_PATIENCE = 600  # seconds for one package
_PARTS = (".json", ".yaml", ".yml")  # endings of files that a document may consist of
_TOLD = 4  # lines of what a client says when it fails


class PackageError(Exception):
    """A package, or a file in it, cannot be had: what, and what to do."""


def _npm(package: str, version: str) -> list[str]:
    return [*node().npm, "pack", "--loglevel=error", f"{package}@{version}"]


def _pip(package: str, version: str) -> list[str]:
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [
        sys.executable,
        "-m",
        "pip",
        "download",
        *quiet,
        "--no-deps",
        "--only-binary=:all:",
        f"{package}=={version}",
    ]


CLIENTS = {"npm": _npm, "pypi": _pip}


def files(registry: str, package: str, version: str, paths: Collection[str]) -> dict[str, bytes]:
    """Files of one version of a package, by their paths in it.

    Args:
        registry: a key of `CLIENTS`.
        package: its name.
        version: its version.
        paths: of the files; one that ends in `/` stands for every JSON and YAML file below it.

    Raises:
        PackageError: the client cannot get it, or a file is not in it.
    """
    if registry not in CLIENTS:
        raise PackageError(f"there is no client for {registry}\nhint: it is one of {', '.join(CLIENTS)}")
    print(f"fetching {package} {version} from {registry} …", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="mcpfactory-package-") as folder:
        archive = _download(registry, package, version, Path(folder))
        found = dict(_read(archive, paths))
    if missing := sorted(path for path in paths if not any(path in (name, _folder(name, path)) for name in found)):
        raise PackageError(f"{package} {version} has no {', '.join(missing)}\nhint: correct the path in the list")
    return found


def _download(registry: str, package: str, version: str, folder: Path) -> Path:
    hint = (
        f"hint: is the registry in reach, and does it have {package} {version}? Where it is, the client's settings say"
    )
    try:
        command = CLIENTS[registry](package, version)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        raise PackageError(f"{package} {version} cannot be fetched: {error}\n{hint}") from None
    got = list(folder.iterdir())
    if done.returncode or not got:
        told = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise PackageError("\n".join([f"{package} {version} cannot be fetched:", *told[-_TOLD:], hint]))
    return got[0]


def _read(archive: Path, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The wanted files, in one pass: a tarball has to be unpacked up to each of them."""
    folders = [path for path in paths if path.endswith("/")]

    def wanted(name: str) -> bool:
        return name in paths or any(_folder(name, folder) for folder in folders)

    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if wanted(name))
        return
    with tarfile.open(archive) as tarball:
        for member in tarball:
            name = member.name.partition("/")[2]
            if wanted(name) and member.isfile() and (file := tarball.extractfile(member)) is not None:
                yield name, file.read()


def _folder(name: str, folder: str) -> str:
    """`folder` when a file is below it and may be a part of a document, else ""."""
    return folder if folder.endswith("/") and name.startswith(folder) and name.endswith(_PARTS) else ""
