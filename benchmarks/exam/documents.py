"""The examinations of generated servers, in ../shared/exam: what was tried in small cases, and whole API documents.

`python -m benchmarks.exam documents` prints, after the examination's own table, what making each server cost: seconds by the clock
and of the processor, and the peak of memory.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers.outsiders import environment

from .making import MOST_MEGABYTES, MOST_SECONDS, Making, make
from .outcome import Outcome, judged, unavailable
from .places import SHARED, run

__all__ = ["documents", "examine"]

EXAMINERS = ("mcp>=2.3", "psutil", "jsonschema-rs")


def examine(script: str, only: str) -> Outcome:
    """Run a script of ../shared/exam; its last line is the figure.

    Args:
        script: its file name.
        only: the cases or documents, separated by commas; all when empty.
    """
    if not (SHARED / "exam" / script).exists():
        return unavailable("the folder ../shared/exam is not here")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [environment("examiner", EXAMINERS), str(SHARED / "exam" / script), *(["--only", only] if only else [])]
    code, lines = run(command, {**os.environ, "PATH": path})
    return judged(lines[-1] if lines else f"exit code {code}", good=code == 0)


def documents(only: str) -> Outcome:
    """The examination of whole documents, and what making their servers costs."""
    outcome = examine("run_documents.py", only)
    if outcome.verdict == "not run":
        return outcome
    with (SHARED / "specs" / "INDEX.tsv").open(encoding="utf-8") as file:
        files = {row["name"]: row["file"] for row in csv.DictReader(file, delimiter="\t")}
    wanted = [name for name in files if not only or name in only.split(",")]
    print(f"{'made':22} {'MB':>6} {'seconds':>8} {'processor':>9} {'peak MB':>8}", flush=True)
    makings = [_cost(name, SHARED / "specs" / files[name]) for name in wanted]
    good = sum(making.within and not making.errors for making in makings)
    worst = f"at most {max(one.seconds for one in makings):.1f} s and {max(one.megabytes for one in makings):.0f} MB"
    figure = f"{good} of {len(makings)} made within {MOST_SECONDS} s and {MOST_MEGABYTES} MB ({worst})"
    print(figure, flush=True)
    return judged(f"{outcome.figure}; {figure}", good=outcome.verdict == "ok" and good == len(makings))


def _cost(name: str, document: Path) -> Making:
    with TemporaryDirectory(prefix="mcpfactory-documents-") as folder:
        one = make(Path(folder), document)
    size = document.stat().st_size / 1e6
    cells = f"{size:6.1f} {one.seconds:8.1f} {one.processor:9.1f} {one.megabytes:8.0f}"
    print(f"{name:22} {cells} {one.errors}".rstrip(), flush=True)
    return one
