"""Files below a folder, named by somebody who is not trusted."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from mcpfactory_runtime.server.errors import ToolError

__all__ = ["safe_join"]


def safe_join(root: str | PathLike[str], *parts: str) -> Path:
    """Return the path of `parts` below `root`, with symbolic links resolved; what it names need not exist.

    Raises:
        ToolError: it is not below `root`, or holds a NUL. The model reads it.
    """
    base = Path(root).resolve()
    if not any("\0" in part for part in parts):
        found = base.joinpath(*parts).resolve()
        if found == base or base in found.parents:
            return found
    raise ToolError(f"{'/'.join(parts)!r} is outside of the folder that this server serves")
