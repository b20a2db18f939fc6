"""Environment variables of programs that run code of a server: a list of what passes, so that no secret does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["PLAIN", "clean_environ", "foreign_path"]

# What a program needs from the caller's environment to work at all. Tokens and passwords of the caller are not among it.
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


def foreign_path() -> str:
    """Return `PATH` without the environment that mcpfactory itself runs in: `python` is then that of the machine, with its packages, and not ours."""
    path = os.environ.get("PATH", os.defpath)
    if sys.prefix == sys.base_prefix:
        return path
    own = Path(sys.prefix).resolve()
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join(part for part in parts if not Path(part).resolve().is_relative_to(own))


def clean_environ(home: Path) -> dict[str, str]:
    """Return the environment for untrusted code: nothing of the caller's but what programs need, and a home of its own.

    Temporary files and Python's caches go below that home: a cache beside the code could be written by one program and believed
    by the next.
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
