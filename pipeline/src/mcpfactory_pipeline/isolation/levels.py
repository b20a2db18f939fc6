"""Isolation levels for a server's code, with their environment variables, paths and sandboxes."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation import container_client, landlock

# Variables that any program needs. Their values contain no tokens or passwords of the user.
PLAIN: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
)


def path_without_mcpfactory() -> str:
    """Return `PATH` without mcpfactory's environment, so that `python` is the system's Python."""
    path = os.environ.get("PATH", os.defpath)
    if sys.prefix == sys.base_prefix:
        return path
    own = Path(sys.prefix).resolve()
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join(part for part in parts if not Path(part).resolve().is_relative_to(own))


def clean_environ(home: Path) -> dict[str, str]:
    """Return the environment variables for untrusted code. The home folder is `home`.

    Temporary files and Python's caches are also below `home`. In a shared folder, a program could write a cache that
    the next program trusts.
    """
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name in PLAIN if (value := os.environ.get(name)) is not None}
    return {
        **kept,
        **dict.fromkeys(("HOME", "USERPROFILE"), str(home)),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
        "PYTHONPYCACHEPREFIX": str(home / "pycache"),
    }


_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/proc", "/sys/devices/system", "/sys/fs/cgroup",
    # Files in /etc that libraries read. They contain no passwords, keys, or settings of package managers.
    *(f"/etc/{name}" for name in (
        "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf",
        "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf",
        "localtime", "machine-id", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki", "protocols",
        "resolv.conf", "services", "ssl", "timezone",
    )),
)  # fmt: skip
_STARTS: Final = ("sitecustomize.py", "usercustomize.py")
# Terminals and shared memory are left out, because other programs of the user also use them.
DEVICES: Final = tuple(f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero"))


def system_paths() -> tuple[str, ...]:
    """Return the system paths that a program can read."""
    return tuple(path for path in _SYSTEM if Path(path).exists())


def interpreter_paths() -> tuple[str, ...]:
    """Return the paths of the base interpreter: programs, standard library and shared libraries."""
    base = Path(sys.base_prefix)
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    places = {str(base), str(base.resolve()), str(Path(sys.base_exec_prefix)), *_start_files()}
    return tuple(sorted(places if program.is_relative_to(base.resolve()) else {*places, str(program)}))


def _start_files() -> set[str]:
    """Return start-up modules of the standard library that are symlinks, such as Debian's sitecustomize."""
    library = Path(sysconfig.get_path("stdlib"))
    return {str(file.resolve()) for name in _STARTS if (file := library / name).is_symlink()}


AUTO: Final = "auto"
REQUIRED: Final = "required"  # like "auto", but raises an error if no isolation is available
_CLIENT: Final = ("HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")
_INSTALL: Final = (
    'install bubblewrap, use a machine with Landlock, or set isolation = "none" if you trust all server code'
)
_PATIENCE: Final = 10.0  # seconds; timeout of an empty program that tests the sandbox


@dataclass(frozen=True, slots=True)
class ContainerRuntime:
    """The program that starts containers, and the container image."""

    program: str = "docker"
    image: str = "debian:stable-slim"


@dataclass(frozen=True, slots=True)
class SandboxPaths:
    """Resources that a program can use: paths outside the system, and the network.

    `rules` is the rules file of `landlock.py`.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    rules: Path
    container: ContainerRuntime = ContainerRuntime()
    network: bool = True


@dataclass(frozen=True, slots=True)
class IsolationLevel:
    """An isolation level. `lacking` returns the reason why the level is unavailable here; "" if it is available."""

    name: str
    says: str
    lacking: Callable[[], str]
    command: Callable[[SandboxPaths, Sequence[str]], list[str]]


def find_isolation_level(wanted: str) -> IsolationLevel:
    """Return the isolation level `wanted`. For `auto` and `required`, return the first available level.

    `auto` and `required` skip levels that the workspace must request by name.

    Raises:
        StageError: the level is unavailable here, or `wanted` is `required` and no isolation is available.
    """
    if wanted in {AUTO, REQUIRED}:
        found = next(LEVELS[name] for name in _CHOSEN if not LEVELS[name].lacking())
        if found is NONE and wanted == REQUIRED:
            raise StageError(
                f'isolation = "required", but no isolation level is available on this machine: {describe_unavailable_levels()}',
                hint=_INSTALL,
            )
        return found
    level = LEVELS[wanted]
    if lacking := level.lacking():
        raise StageError(
            f'isolation = "{wanted}" is not available on this machine: {lacking}',
            hint='install the missing part, or set isolation = "auto" in [pipeline]',
        )
    return level


def side_effect_free_level() -> IsolationLevel | None:
    """Return the level that prevents all side effects if the network is denied, or None if it is unavailable.

    Older versions of Landlock allow signals to processes outside the sandbox. Bubblewrap does not close Unix sockets.
    """
    if LEVELS["landlock"].lacking() or landlock.landlock_version() < landlock.SCOPED:
        return None
    return LEVELS["landlock"] if landlock.seccomp_program(os.uname().machine, network=False) else None


def describe_unavailable_levels() -> str:
    """Describe why each level that `auto` could choose is unavailable on this machine."""
    return "; ".join(f"{name}: {lacking}" for name in _CHOSEN if (lacking := LEVELS[name].lacking()))


def _landlock(reach: SandboxPaths, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", landlock.__file__, str(reach.rules), "--", *command]


@functools.cache
def _landlock_lacking() -> str:
    if sys.platform != "linux":
        return "Landlock is a part of Linux"
    found = landlock.landlock_version()
    if found >= landlock.OLDEST:
        return ""
    return (
        f"the kernel has version {found} of Landlock, and {landlock.OLDEST} is needed (Linux 6.2 with Landlock "
        "switched on)"
    )


def _bubblewrap(reach: SandboxPaths, command: Sequence[str]) -> list[str]:
    seen = [path for path in (*system_paths(), *reach.read) if path != "/proc"]
    return [
        "bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
        *([] if reach.network else ["--unshare-net"]), "--proc", "/proc", "--dev", "/dev",
        *(word for path in seen for word in ("--ro-bind-try", path, path)),
        *(word for path in reach.write for word in ("--bind", path, path)),
        "--remount-ro", "/", "--", *command,
    ]  # fmt: skip


@functools.cache
def _bubblewrap_lacking() -> str:
    program = shutil.which("bwrap")
    if program is None:
        return "the program bwrap is not installed (package bubblewrap)"
    trial = [program, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        done = subprocess.run(trial, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not run: {error}"
    return "" if done.returncode == 0 else f"the system refuses it: {done.stderr.strip()}"


def _container(reach: SandboxPaths, command: Sequence[str]) -> list[str]:
    def mounts(paths: Sequence[str], how: str) -> list[str]:
        return [word for path in paths for word in ("--mount", f"type=bind,source={path},target={path}{how}")]

    user = ["--user", f"{os.getuid()}:{os.getgid()}"] if hasattr(os, "getuid") else []
    client = [f"{name}={os.environ[name]}" for name in _CLIENT if name in os.environ]
    return [
        sys.executable, "-I", "-S", container_client.__file__, *client, "--",
        reach.container.program, "run", "--rm", "--interactive", "--init", "--network", "host" if reach.network else "none", "--read-only",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp", *user,  # noqa: S108 - inside the container
        *mounts([path for path in reach.read if Path(path).exists()], ",readonly"),
        *mounts(reach.write, ""),
        "--workdir", reach.write[0],
        "--", reach.container.image, *command,
    ]  # fmt: skip


def _container_lacking() -> str:
    return "" if shutil.which("docker") or shutil.which("podman") else "neither docker nor podman is installed"


NONE: Final = IsolationLevel(
    "none",
    "server code gets a copy of the files and an environment without secrets, but is not confined",
    lambda: "",
    lambda _reach, command: list(command),
)
LEVELS: Final[Mapping[str, IsolationLevel]] = {
    level.name: level
    for level in (
        IsolationLevel(
            "landlock",
            "the kernel confines server code to its own folder: it can read the system and installed packages, but "
            "no other process",
            _landlock_lacking,
            _landlock,
        ),
        IsolationLevel(
            "bubblewrap",
            "server code sees its own folder, the system and installed packages, in a separate process namespace",
            _bubblewrap_lacking,
            _bubblewrap,
        ),
        IsolationLevel(
            "container", "server code runs in a container, with its own folder mounted", _container_lacking, _container
        ),
        NONE,
    )
}
_CHOSEN: Final = ("landlock", "bubblewrap", "none")


_RULES: Final = "landlock.json"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox of a server's code.

    The code can write only below `folder`, which contains the home folder, temporary files and working files.

    `reach` has the paths that the code can read and write. `environ` contains no secrets.
    """

    level: IsolationLevel
    folder: Path
    reach: SandboxPaths
    environ: Mapping[str, str]

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs `command` in the sandbox with the caller's environment."""
        return self.level.command(self.reach, command)


def make_sandbox(
    settings: Mapping[str, object],
    work: Path,
    *,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    name: str = "sandbox",
    network: bool = True,
) -> Sandbox:
    """Make a sandbox below a work folder. `settings` are the isolation settings of a stage.

    The code can write its own folder and `writable`, but not the rules of the sandbox.
    """
    level = find_isolation_level(str(settings.get("isolation", "auto")))
    container = settings.get("container")
    folder = work / name
    environ = clean_environ(folder / "home")
    reach = SandboxPaths(
        read=(*interpreter_paths(), *map(str, readable)),
        write=(str(folder), *map(str, writable)),
        rules=work / f"{name}.{_RULES}",
        container=ContainerRuntime(**container) if isinstance(container, Mapping) else ContainerRuntime(),
        network=network,
    )
    rules = {"read": [*system_paths(), *reach.read], "write": [*DEVICES, *reach.write], "network": network}
    reach.rules.write_text(json.dumps(rules), encoding="utf-8")
    return Sandbox(level, folder, reach, environ)
