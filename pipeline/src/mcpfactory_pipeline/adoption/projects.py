"""Projects whose sources stand in the workspace: Python, built into a wheel, and Node.js, packed into a tarball."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.npm import QUIET_NPM, run_npm
from mcpfactory_pipeline.adoption.pinned import SHRINKWRAP, check_node_lock, check_python_lock
from mcpfactory_pipeline.adoption.sources import LOCKS, Collected, Sources
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.build.frontend import copy_files
from mcpfactory_pipeline.build.leaks import find_leaks, find_leaks_among, without_ignored
from mcpfactory_pipeline.build.programs import ProgramRefusedError, last_lines, run_captured
from mcpfactory_pipeline.build.wheels import backend_of, build_packages, wheel_name, wheel_version
from mcpfactory_pipeline.isolation.sandbox import Sandbox, make_sandbox

__all__ = ["check_project_lock", "collect_node", "collect_python", "make_package", "own_files", "package_program"]

_UNPACKED: Final = "package"  # the folder that every tarball of npm has its files in
_LARGEST: Final = 512 * 1024 * 1024  # bytes of a tarball when it is unpacked


def own_files(sources: Sources) -> tuple[Path, list[str]]:
    """Return the folder of a project and its files; what git ignores is of this machine alone."""
    folder = sources.own()
    return folder, without_ignored(folder, sources.adopted.own_files(sources.root))


def collect_python(sources: Sources) -> Collected:
    """Build the wheel of a project in a copy of its sources; its dependencies are those of the lock beside `mcpfactory.toml`."""
    lock = sources.lock("python")
    check_python_lock(lock, addresses=True, where=f"servers/{sources.server}/{LOCKS['python']}")
    folder, files = own_files(sources)
    wheel, sdist = build_packages(folder, files, sources.work / "python", settings=sources.settings, log=sources.log)
    _refuse_leaks(find_leaks((wheel, sdist)))
    name, version = wheel_name(wheel.name), wheel_version(wheel.name)
    made = {wheel.name: wheel.read_bytes(), LOCKS["python"]: lock}
    return Collected(name, version, made, {"backend": backend_of(wheel)})


def collect_node(sources: Sources) -> Collected:
    """Build and pack a project of Node.js in a copy of its sources.

    What it is built with is installed by its lock, without scripts; its own build runs in a sandbox.

    Raises as `run_npm` does, and ConfigError where its lock does not pin each package.
    """
    folder, files = own_files(sources)
    sandbox = make_sandbox(sources.settings, sources.work, name="builder")
    bench = sandbox.folder / "source"
    copy_files(folder, files, bench)
    about: dict[str, Any] = json.loads((bench / "package.json").read_bytes())
    locked = (bench / LOCKS["node"]).is_file()
    if about.get("dependencies") and not locked:
        raise ProgramRefusedError(
            f"{sources.adopted.path} has dependencies and no {LOCKS['node']}: npm install --package-lock-only there, and keep the file"
        )
    check_project_lock(bench, called=sources.adopted.path)
    if sources.adopted.build:
        run_npm("ci" if locked else "install", cwd=bench, log=sources.log)
        _run_build(sources.adopted.build, bench, sandbox, log=sources.log)
    # Scripts of the project (prepare, prepack) are not run by this: npm gets --ignore-scripts.
    said = json.loads(run_npm("pack", "--json", "--pack-destination", str(sources.work), cwd=bench, log=sources.log))
    row = said[0] if isinstance(said, list) else next(iter(said.values()))
    tarball = sources.work / Path(str(row["filename"])).name
    with tarfile.open(tarball) as archive:
        _refuse_leaks(
            find_leaks_among(
                (tarball.name, member.name, stream.read())
                for member in archive.getmembers()
                if member.isfile() and (stream := archive.extractfile(member)) is not None
            )
        )
    made = {"package.tgz": tarball.read_bytes()}
    if locked:
        made[LOCKS["node"]] = (folder / LOCKS["node"]).read_bytes()
    return Collected(str(about.get("name") or sources.server), str(about.get("version") or "0"), made)


def check_project_lock(folder: Path, *, called: str = "") -> None:
    """Look whether the lock of a project, where it has one, pins each package by its integrity.

    Raises:
        ConfigError: it does not, or there is another file that npm would take before it.
    """
    if (folder / SHRINKWRAP).exists():
        raise ConfigError(
            f"{SHRINKWRAP} of {called or 'the package'} is what npm would take before {LOCKS['node']}",
            hint=f"rename it to {LOCKS['node']}, which is looked at and kept with the candidate",
        )
    if (folder / LOCKS["node"]).is_file():
        where = f"{called}/{LOCKS['node']}" if called else LOCKS["node"]
        check_node_lock((folder / LOCKS["node"]).read_bytes(), addresses=True, where=where)


def _run_build(command: Sequence[str], bench: Path, sandbox: Sandbox, *, log: bool) -> None:
    code, said = run_captured(command, bench, {**sandbox.environ, **QUIET_NPM}, sandbox, log=log)
    if code:
        raise ProgramRefusedError(f"{' '.join(command)} ended with exit {code}: {last_lines(said)}")


def _refuse_leaks(found: Any) -> None:
    if leaks := list(found):
        raise ProgramRefusedError(f"its packages would publish secrets: {'; '.join(leaks[:5])}")


def make_package(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Unpack a tarball that was packed here, and install what its lock names beside it.

    Raises:
        ProgramRefusedError: it is no tarball of npm, or what the lock names is not to be had.
        ConfigError: the lock does not pin each package.
        StageError: the registry does not answer.
    """
    with tarfile.open(fileobj=io.BytesIO((files / "package.tgz").read_bytes())) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        if sum(member.size for member in members) > _LARGEST:
            raise ProgramRefusedError(f"package.tgz has more than {_LARGEST} bytes")
        if hasattr(tarfile, "data_filter"):
            archive.extractall(place, members, filter="data")
        else:  # Python 3.11.0 to 3.11.3
            archive.extractall(place, members)  # noqa: S202 - it was packed here
    if LOCKS["node"] in names:
        shutil.copyfile(files / LOCKS["node"], place / _UNPACKED / LOCKS["node"])
        check_project_lock(place / _UNPACKED)
        run_npm("ci", "--omit=dev", cwd=place / _UNPACKED, log=log)


def package_program(place: Path, start: Sequence[str]) -> tuple[str, ...]:
    """Return the command line in an unpacked package: words that are files of it become their places."""
    inside = place / _UNPACKED
    return tuple(str(inside / word) if (inside / word).is_file() else word for word in start)
