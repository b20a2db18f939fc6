"""What every program may read: the system's libraries and programs, and the interpreter. Homes, keys and settings are not among it."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Final

__all__ = ["DEVICES", "interpreter_paths", "system_paths"]

_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/proc", "/sys/devices/system", "/sys/fs/cgroup",
    # of /etc what libraries read; not passwords, keys, or the settings of package managers
    *(f"/etc/{name}" for name in (
        "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts", "gai.conf",
        "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf",
        "localtime", "machine-id", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki", "protocols",
        "resolv.conf", "services", "ssl", "timezone",
    )),
)  # fmt: skip
_STARTS: Final = ("sitecustomize.py", "usercustomize.py")
# Neither terminals nor shared memory: those of other programs of the user stand in the same folders.
DEVICES: Final = tuple(f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero"))


def system_paths() -> tuple[str, ...]:
    """Return what of the system a program may read."""
    return tuple(path for path in _SYSTEM if Path(path).exists())


def interpreter_paths() -> tuple[str, ...]:
    """Return where the interpreter is that environments are made with: programs, standard library, shared libraries."""
    base = Path(sys.base_prefix)
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    places = {str(base), str(base.resolve()), str(Path(sys.base_exec_prefix)), *_start_files()}
    return tuple(sorted(places if program.is_relative_to(base.resolve()) else {*places, str(program)}))


def _start_files() -> set[str]:
    """Return the modules that every start imports, where the standard library links to them: Debian has one in /etc."""
    library = Path(sysconfig.get_path("stdlib"))
    return {str(file.resolve()) for name in _STARTS if (file := library / name).is_symlink()}
