"""Packages of an npm registry: verified tarballs, and locks of dependency trees.

Scripts of packages never run, because each npm command has the option `--ignore-scripts`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionSources, CollectedFiles, check_node_lock
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, last_lines, npm_environ

_QUIET: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
QUIET_NPM: Final = {"npm_config_update_notifier": "false"}  # disables npm's check for updates
_LOCKED: Final = ("--package-lock-only", "--omit-lockfile-registry-resolved", "--omit=dev")
_PATIENCE: Final = 300  # seconds; timeout of an npm command
_MACHINERY_BROKE: Final = re.compile(
    r"\b(E?NOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENOSPC|ENETUNREACH|ERR_SOCKET_TIMEOUT|FETCH_ERROR|E50\d|E429)\b|network"
)
_TARBALL: Final = "package.tgz"  # name of the tarball in a candidate and in its lock


def find_npm() -> str:
    """Return the path of npm."""
    found = shutil.which("npm")
    if found is None:
        raise StageError("npm is not installed: mcpfactory needs npm to fetch Node.js servers", hint="install Node.js")
    return found


def run_npm(*arguments: str, cwd: Path, log: bool = True) -> str:
    """Run npm without package scripts, and return its stdout. If `log` is True, also print all output.

    Raises:
        ToolRejectedInputError: npm rejected its input.
        StageError: npm is not installed, or failed for another reason, such as a network error.
    """
    command = [find_npm(), *arguments, *_QUIET]
    if log:
        print(f"$ {shlex.join(command)}", flush=True)  # noqa: T201 - the stdout of a job is the log of its stage
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=npm_environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StageError(
            f"npm {arguments[0]} did not finish: {error}", hint="run the command again when the registry answers"
        ) from error
    if log:
        print(done.stdout + done.stderr, end="", flush=True)  # noqa: T201 - the stdout of a job is the log of its stage
    if done.returncode == 0:
        return done.stdout
    said = last_lines(
        re.sub(r"(?m)^npm error (A complete log of|code ).*$|^npm (error|warn) ?|https?://\S+", "", done.stderr)
    )
    if _MACHINERY_BROKE.search(done.stderr) and not re.search(r"\bE40\d\b", done.stderr):
        raise StageError(f"npm {arguments[0]} failed: {said}", hint="correct the cause, then run the command again")
    raise ToolRejectedInputError(said or f"npm {arguments[0]} ended with exit {done.returncode}")


def npm_integrity(data: bytes) -> str:
    """Return npm's integrity hash of a tarball."""
    return f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"


def fetch_tarball(spec: str, work: Path, *, log: bool = True) -> tuple[dict[str, Any], bytes]:
    """Return npm's metadata of a package, and the tarball, whose integrity hash npm verified."""
    said = json.loads(run_npm("pack", spec, "--json", "--pack-destination", str(work), cwd=work, log=log))
    about: dict[str, Any] = said[0] if isinstance(said, list) else next(iter(said.values()))
    data = (work / Path(str(about["filename"])).name).read_bytes()
    return about, data


def newest_npm_version(package: str, work: Path) -> str:
    """Return the latest version in the registry."""
    return str(json.loads(run_npm("view", package, "version", "--json", cwd=work, log=False)))


def make_package_json(package: str) -> str:
    """Return a `package.json` whose only dependency is the tarball of a candidate."""
    return json.dumps({"private": True, "dependencies": {package: f"file:{_TARBALL}"}}, indent=2) + "\n"


def lock_dependency_tree(package: str, tarball: bytes, work: Path) -> str:
    """Return a lock of a tarball's dependency tree for all platforms, with integrity hashes and without URLs."""
    tree = work / "tree"
    tree.mkdir()
    (tree / _TARBALL).write_bytes(tarball)
    (tree / "package.json").write_text(make_package_json(package), encoding="utf-8")
    run_npm("install", *_LOCKED, cwd=tree, log=False)
    lock = (tree / LOCKS["node"]).read_bytes()
    check_node_lock(lock, own=package, where=f"the lock of {package}")
    return lock.decode()


def packages_with_install_scripts(lock: str | bytes) -> list[str]:
    """Return the locked packages with install scripts. These scripts are never run."""
    rows = json.loads(lock)["packages"]
    return sorted(path.removeprefix("node_modules/") for path, row in rows.items() if row.get("hasInstallScript"))


def collect(sources: AdoptionSources) -> CollectedFiles:
    """Return the tarball of the adopted version, and the lock."""
    adopted, lock = sources.adopted, sources.lock("node")
    check_node_lock(lock, own=adopted.package, where=f"servers/{sources.server}/{LOCKS['node']}")
    _, data = fetch_tarball(f"{adopted.package}@{adopted.version}", sources.work, log=sources.log)
    if npm_integrity(data) != adopted.hash:
        raise ToolRejectedInputError(
            f"the registry has replaced {adopted.package} {adopted.version}: the integrity hash is {npm_integrity(data)}, but {adopted.hash} was adopted"
        )
    rows = json.loads(lock)["packages"]
    if rows.get(f"node_modules/{adopted.package}", {}).get("integrity") != adopted.hash:
        raise ToolRejectedInputError(
            f"{LOCKS['node']} is not the lock of {adopted.package} {adopted.version}: renew the lock with "
            f"'mcpfactory adopt npm:{adopted.package}@{adopted.version}'"
        )
    files = {_TARBALL: data, "package.json": make_package_json(adopted.package).encode(), LOCKS["node"]: lock}
    return CollectedFiles(adopted.package, adopted.version, files, {"pinned": adopted.hash})


def install_dependency_tree(files: Path, names: Sequence[str], place: Path, *, log: bool) -> None:
    """Install a candidate's dependency tree in `place`. npm verifies the integrity hashes in the lock."""
    about = json.loads((files / "package.json").read_bytes())
    check_node_lock((files / LOCKS["node"]).read_bytes(), own=next(iter(about["dependencies"])))
    for name in names:
        shutil.copyfile(files / name, place / name)
    run_npm("ci", "--omit=dev", cwd=place, log=log)


def resolve_node_command(place: Path, start: Sequence[str]) -> tuple[str, ...]:
    """Return the start command for an installation. The program belongs to the package or to this machine (`node`)."""
    program = place / "node_modules" / ".bin" / start[0]
    if program.exists():
        return ("node", str(program.resolve()), *start[1:]) if _is_script(program) else (str(program), *start[1:])
    return tuple(start)


def _is_script(program: Path) -> bool:
    with program.open("rb") as stream:
        first = stream.readline(200)
    return first.startswith(b"#!") and b"node" in first


def node_sandbox_paths() -> tuple[Path, ...]:
    """Return the paths of Node.js that a sandbox must be able to read."""
    found = shutil.which("node")
    return (Path(found).resolve().parents[1],) if found else ()
