"""The levels of isolation, as a table: which there are, where each is to be had, and the command that it makes of a command."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation import confine, contain
from mcpfactory_pipeline.isolation.paths import DEVICES, system_paths

__all__ = ["AUTO", "LEVELS", "NONE", "REQUIRED", "Container", "Level", "Reach", "describe_lacking", "find_level"]

AUTO: Final = "auto"
REQUIRED: Final = "required"  # as auto, and never none
_CLIENT: Final = ("HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")
_INSTALL: Final = (
    'install bubblewrap, take a machine with Landlock, or run for people whom you trust with isolation = "none"'
)
_PATIENCE: Final = 10.0  # seconds for a program that does nothing


@dataclass(frozen=True, slots=True)
class Container:
    """The program that starts containers, and the image whose C library the interpreter fits."""

    program: str = "docker"
    image: str = "debian:stable-slim"


@dataclass(frozen=True, slots=True)
class Reach:
    """What a program may read and write besides the system; `rules` is the file that says so to `confine.py`."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    rules: Path
    container: Container = Container()

    def for_landlock(self) -> dict[str, list[str]]:
        """Return the content of the file of rules."""
        return {"read": [*system_paths(), *self.read], "write": [*DEVICES, *self.write]}


@dataclass(frozen=True, slots=True)
class Level:
    """A way to keep a program apart. `lacking` says in words why it is not to be had here; "" where it is."""

    name: str
    says: str
    lacking: Callable[[], str]
    command: Callable[[Reach, Sequence[str]], list[str]]


def find_level(wanted: str) -> Level:
    """Return the level of a name; for `auto` and `required` the first of the table that is to be had here without being asked for by name.

    Raises:
        StageError: when that level is not to be had here; for `required` when there is none but `none`.
    """
    if wanted in {AUTO, REQUIRED}:
        found = next(LEVELS[name] for name in _CHOSEN if not LEVELS[name].lacking())
        if found is NONE and wanted == REQUIRED:
            raise StageError(f'isolation = "required", and there is no level here: {describe_lacking()}', hint=_INSTALL)
        return found
    level = LEVELS[wanted]
    if lacking := level.lacking():
        raise StageError(
            f'isolation = "{wanted}" is not to be had here: {lacking}',
            hint='install what is missing, or take isolation = "auto" in [pipeline]',
        )
    return level


def describe_lacking() -> str:
    """Return why each level that is chosen by itself is not to be had here, in words."""
    return "; ".join(f"{name}: {lacking}" for name in _CHOSEN if (lacking := LEVELS[name].lacking()))


def _landlock(reach: Reach, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", confine.__file__, str(reach.rules), "--", *command]


@functools.cache
def _landlock_lacking() -> str:
    if sys.platform != "linux":
        return "Landlock is a part of Linux"
    found = confine.landlock_version()
    if found >= confine.OLDEST:
        return ""
    return f"the kernel has version {found} of Landlock, and {confine.OLDEST} is needed (Linux 6.2 with Landlock switched on)"


def _bubblewrap(reach: Reach, command: Sequence[str]) -> list[str]:
    seen = [path for path in (*system_paths(), *reach.read) if path != "/proc"]
    return [
        "bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
        "--proc", "/proc", "--dev", "/dev",
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


def _container(reach: Reach, command: Sequence[str]) -> list[str]:
    def mounts(paths: Sequence[str], how: str) -> list[str]:
        return [word for path in paths for word in ("--mount", f"type=bind,source={path},target={path}{how}")]

    user = ["--user", f"{os.getuid()}:{os.getgid()}"] if hasattr(os, "getuid") else []
    client = [f"{name}={os.environ[name]}" for name in _CLIENT if name in os.environ]
    return [
        sys.executable, "-I", "-S", contain.__file__, *client, "--",
        reach.container.program, "run", "--rm", "--interactive", "--init", "--network", "host", "--read-only",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--tmpfs", "/tmp", *user,  # noqa: S108 - a place inside the container
        *mounts([path for path in reach.read if Path(path).exists()], ",readonly"),
        *mounts(reach.write, ""),
        "--workdir", reach.write[0],
        "--", reach.container.image, *command,
    ]  # fmt: skip


def _container_lacking() -> str:
    return "" if shutil.which("docker") or shutil.which("podman") else "neither docker nor podman is installed"


NONE: Final = Level(
    "none",
    "a copy of the files and an environment without secrets, and nothing that keeps code to them",
    lambda: "",
    lambda _reach, command: list(command),
)
LEVELS: Final[Mapping[str, Level]] = {
    level.name: level
    for level in (
        Level(
            "landlock",
            "the kernel keeps server code to its own folder: it reads the system and what was installed, and no other process",
            _landlock_lacking,
            _landlock,
        ),
        Level(
            "bubblewrap",
            "server code sees its own folder, the system and what was installed, in a namespace of processes of its own",
            _bubblewrap_lacking,
            _bubblewrap,
        ),
        Level(
            "container", "server code runs in a container, with its own folder mounted", _container_lacking, _container
        ),
        NONE,
    )
}
_CHOSEN: Final = ("landlock", "bubblewrap", "none")
