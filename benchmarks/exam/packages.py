"""Ten documents as packages: each is made, and has to pass ruff, strict type checking and its own tests.

`python -m benchmarks.exam packages` prints a row for each, with the seconds of each step and the peak memory of the making.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.apis import DocumentError, path, select
from benchmarks.exam.making import MOST_MEGABYTES, MOST_SECONDS, make
from benchmarks.exam.outcome import Outcome, judged, unavailable

__all__ = ["packages"]

TEN = "github,stripe,petstore,train-travel,spotify,slack,figma,asana,netlify,airflow"
_STEPS = {
    "ruff": ["ruff", "check", "--no-cache", "."],
    "format": ["ruff", "format", "--no-cache", "--check", "."],
    "mypy": ["mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", "src", "tests"],
    "tests": ["pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist"],
}
_SECONDS = 900


def packages(only: str) -> Outcome:
    """Print the table, for the documents that `only` names or for the ten."""
    try:
        wanted = [(one.name, path(one)) for one in select(only or TEN)]
    except DocumentError as error:
        return unavailable(str(error))
    print(f"{'document':16} {'make':>17}  " + "  ".join(f"{step:>15}" for step in _STEPS), flush=True)
    good = sum(_one(name, file) for name, file in wanted)
    figure = f"{good} of {len(wanted)} packages made within {MOST_SECONDS} s and {MOST_MEGABYTES} MB pass all four"
    return judged(figure, good=good == len(wanted))


def _one(name: str, document: Path) -> bool:
    with TemporaryDirectory(prefix="mcpfactory-packages-") as folder:
        making = make(Path(folder), document)
        told = making.errors
        cells = [f"{making.seconds:8.1f} s {making.megabytes:4.0f} MB"]
        for step, command in _STEPS.items() if not told else ():
            began = time.perf_counter()
            ran = _run(Path(folder) / "exam", command)
            cells.append(f"{'ok' if ran.returncode == 0 else 'FAILED'} {time.perf_counter() - began:8.1f} s")
            if ran.returncode:
                told += f"\n  {step}: {(ran.stdout + ran.stderr).strip()[-600:]}"
    print(f"{name:16} {cells[0]:>17}  " + "  ".join(f"{cell:>15}" for cell in cells[1:]) + told, flush=True)
    return not told and making.within


def _run(package: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=package,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end within {_SECONDS} seconds")
