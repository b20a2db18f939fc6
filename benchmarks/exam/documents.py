"""The examinations of generated servers, in ../shared/exam: what was tried in small cases, and whole API documents."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.peers.outsiders import environment

from .outcome import Outcome, judged, unavailable
from .places import SHARED, run

__all__ = ["examine"]

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
