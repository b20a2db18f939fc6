"""The machine of one job: an empty home, an interpreter, a PATH with what every machine has, and a clone."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import uv

_BASE = "/usr/local/bin:/usr/bin:/bin"
_FETCHING = re.compile(
    r"(PIP|UV)_.*|SSL_CERT_(FILE|DIR)|(HTTPS?|ALL|NO)_PROXY", re.IGNORECASE
)  # how packages are got here


@dataclass
class JobResult:
    """One job: its result (success, failure, skipped), what its steps printed, its summary, and what it hands on."""

    name: str
    result: str
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True)
class Runner:
    """Where jobs run; what they fetched of packages is fetched once.

    With `shared` they have one interpreter, so that what the first installed is there for the others. `given` are variables that
    are in each job beside its own, `home` the files of its home by their names.
    """

    folder: Path
    origin: Path
    shared: bool = False
    given: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)

    def place(self, job: str) -> Path:
        """An empty folder for one job."""
        place = self.folder / "jobs" / job
        shutil.rmtree(place, ignore_errors=True)
        (place / "home").mkdir(parents=True)
        for name, text in self.home.items():
            (place / "home" / name).write_text(text)
        return place

    def clone(self, place: Path, ref: str, *, whole: bool = True) -> Path:
        """A fresh clone of a branch or tag, only its newest commit unless the whole history is wanted."""
        depth = [] if whole else ["--depth", "1"]
        command = ["git", "clone", "--quiet", *depth, "--branch", ref, self.origin.as_uri(), str(place / "work")]
        subprocess.run(command, check=True, capture_output=True)
        return place / "work"

    def python(self, place: Path, version: str) -> Path:
        """The folder of programs of a fresh environment with that Python, as `actions/setup-python` gives one."""
        folder = (self.folder if self.shared else place) / f"python-{version}"
        if not folder.exists():
            command = [uv.find_uv_bin(), "venv", "--quiet", "--seed", "--python", _interpreter(version), str(folder)]
            subprocess.run(command, check=True, capture_output=True)
        return folder / "bin"

    def environ(self, place: Path, programs: Path | None) -> dict[str, str]:
        """What a process of the job sees."""
        kept = {name: value for name, value in os.environ.items() if _FETCHING.fullmatch(name)}
        path = f"{programs}:{_BASE}" if programs else _BASE
        caches = {f"{tool}_CACHE_DIR": str(self.folder / "caches" / tool.lower()) for tool in ("PIP", "UV")}
        return {
            **caches,
            **kept,
            "PATH": path,
            "HOME": str(place / "home"),
            "LANG": "C.UTF-8",
            "CI": "true",
            **self.given,
        }

    def shell(
        self, script: str, *, cwd: Path, environ: Mapping[str, str], options: tuple[str, ...] = ("-e",)
    ) -> tuple[int, str]:
        """Runs a script as it is written; gives its exit code and all that it printed."""
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", *options, "-c", script], cwd=cwd, env=dict(environ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, f"$ {script.rstrip()}\n{done.stdout}"


@functools.cache
def _interpreter(version: str) -> str:
    """A Python of that version on this machine; raises `LookupError` when there is none."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    names = [sys.executable] if version == here else []
    for name in [*names, f"/usr/bin/python{version}", f"python{version}"]:
        try:
            done = subprocess.run([name, "--version"], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return name
    raise LookupError(f"this machine has no Python {version}")
