"""A virtual environment on disk: its interpreter, and the mark that it is whole."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

READY: Final = "ready.json"  # written last
_MARKED: Final = 86_400  # seconds; how exactly it is known when an environment was last used


def venv_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_ready(folder: Path) -> bool:
    """Return True if an environment is complete, and record its use in a file's modification time."""
    mark = folder / READY
    try:
        used = mark.stat().st_mtime
    except OSError:
        return False
    if time.time() - used > _MARKED:
        with suppress(OSError):
            mark.touch()
    return venv_python(folder).exists()  # the link may point to a deleted interpreter
