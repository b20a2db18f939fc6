"""The lowest layers of an image without a base image: a Python interpreter of this machine and its dependencies.

They contain the interpreter, its standard library and the linked shared libraries, in the loader's search paths; two
users; a folder for temporary files. They contain no shell, no package manager, and nothing that writes.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import ArchiveEntry

USER: Final = 65532  # the number that images without a shell give their unprivileged user
ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

_ASK: Final = """
import json, os, platform, sys, sysconfig
base = {"base": sys.base_prefix, "installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
print(json.dumps({
    "version": platform.python_version(), "prefix": sys.base_prefix, "program": os.path.realpath(sys._base_executable),
    "folders": sorted({sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")}), "libc": platform.libc_ver()[0],
}))
"""
# Parts of the standard library that no server needs: tests, graphical tools, and what builds other programs.
_LEFT_OUT: Final = re.compile(
    r"(.*/)?__pycache__/.*|(site|dist)-packages/.*|(test|idlelib|tkinter|turtledemo|lib2to3|ensurepip|distutils)/.*|config-[^/]+/.*"
    r"|(unittest|ctypes|sqlite3)/tests?/.*|.*\.(a|o|exe|pyc)|(turtle|pydoc)\.py|pydoc_data/.*|lib-dynload/_(test|xx|tkinter).*"
)
# Libraries that wheels can expect from the system (the manylinux policies), in addition to those that Python links
# to.
_EXPECTED: Final = (
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2",
    "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libnss_dns.so.2", "libnss_files.so.2",
)  # fmt: skip
_LINKED: Final = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_PASSWD: Final = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin\n"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine: its full version, program, prefix, and the folders of its standard library."""

    version: str
    program: Path
    prefix: Path
    folders: tuple[Path, ...]

    @property
    def minor(self) -> str:
        """`3.12`."""
        return ".".join(self.version.split(".")[:2])


def find_interpreter(python: str = "") -> Interpreter:
    """Return the data of an interpreter, by default of the one that runs this process.

    Raises:
        StageError: it does not start, or cannot be the base of an image: not Linux, or another C library than glibc.
    """
    if sys.platform != "linux" or platform.machine().lower() not in ARCHITECTURES:
        raise StageError(
            f"no image can be made from the Python of this machine ({sys.platform}, {platform.machine()})",
            hint='name a base image: base = "docker.io/library/python:3.13-slim@sha256:…" in [publish.oci]',
        )
    try:
        done = subprocess.run(
            [python or sys.executable, "-I", "-c", _ASK], capture_output=True, text=True, check=True, timeout=60
        )
        facts = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StageError(f"{python} does not say what it is: {error}", hint="name a Python interpreter") from error
    if facts["libc"] != "glibc":
        raise StageError(f"{facts['program']} is not linked to glibc", hint="name a Python that is, or a base image")
    return Interpreter(
        facts["version"], Path(facts["program"]), Path(facts["prefix"]), tuple(map(Path, facts["folders"]))
    )


def interpreter_entries(python: Interpreter) -> list[ArchiveEntry]:
    """Return the file system of the interpreter: `/usr/local/bin/python3`, its standard library, its libraries, its users."""
    program = f"usr/local/bin/python{python.minor}"
    entries = {
        program: ArchiveEntry(program, python.program.read_bytes(), 0o755),
        **{f"usr/local/bin/{name}": ArchiveEntry(f"usr/local/bin/{name}", link=f"python{python.minor}") for name in ("python3", "python")},
        "etc/passwd": ArchiveEntry("etc/passwd", _PASSWD.encode()),
        "etc/group": ArchiveEntry("etc/group", f"root:x:0:\nnonroot:x:{USER}:\n".encode()),
        "etc/nsswitch.conf": ArchiveEntry("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n"),
        "tmp": ArchiveEntry("tmp", mode=0o1777, folder=True),
    }  # fmt: skip
    linked = [python.program]
    for folder in python.folders:
        below = folder.relative_to(python.prefix).as_posix()
        for file in sorted(folder.rglob("*")):
            path = file.relative_to(folder).as_posix()
            if file.is_file() and not _LEFT_OUT.fullmatch(path):
                place = f"usr/local/{below}/{path}"
                entries[place] = ArchiveEntry(place, file.read_bytes(), 0o644)
                linked += [file] if ".so" in file.suffixes else []
    for library in _libraries(linked, python.prefix):
        entries.setdefault(library.path, library)
    return list(entries.values())


def _libraries(programs: Iterable[Path], prefix: Path) -> Iterator[ArchiveEntry]:
    """Yield the shared libraries of programs, each where the loader of this system finds it without being told."""
    try:
        done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise StageError(f"ldd cannot be started: {error.strerror}", hint="name a base image instead") from error
    found: dict[str, Path] = {}
    for name, path in _LINKED.findall(done.stdout):
        found.setdefault(name or path, Path(path))
    try:
        system = found["libc.so.6"].parent
    except KeyError:
        raise StageError("ldd does not say what Python is linked to", hint="name a base image instead") from None
    for name in _EXPECTED:
        if (system / name).exists():
            found.setdefault(name, system / name)
    for name, path in found.items():
        # Libraries that came with the interpreter move to the system's: only there does the loader look without being told.
        own = not name.startswith("/") and (path.is_relative_to(prefix) or not _of_system(path))
        place = system / name if own else path
        yield ArchiveEntry(place.as_posix().lstrip("/"), path.read_bytes(), 0o755)


def _of_system(path: Path) -> bool:
    return path.parts[1] in {"lib", "lib64"} or path.parts[1:3] in {("usr", "lib"), ("usr", "lib64")}
