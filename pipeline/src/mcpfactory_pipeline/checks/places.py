"""Where in a workspace the tools of a server are written: file and line, for reports that show findings beside the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["tool_locations"]

_MANIFEST: Final = re.compile(r'^\{"name": ?"([^"]{1,200})"')  # one tool a line
_FUNCTION: Final = re.compile(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(")
_LARGEST: Final = 2_000_000  # bytes of a hand-written module that is looked at


def tool_locations(root: Path, folder: Path, tools: Iterable[str]) -> dict[str, tuple[str, int]]:
    """(file, line) of each tool of the server in `folder`, with the file below `root`; "" is the server's `mcpfactory.toml`.

    A tool of a manifest is on its line there, a written one at the function of its name; one that is in neither is left out.
    """
    wanted, found = set(tools), {"": ((folder / "mcpfactory.toml").relative_to(root).as_posix(), 1)}
    for file in sorted((folder / "src").rglob("*.py")):
        if "_generated" not in file.parts:
            _look(file, root, _FUNCTION, wanted, found)
    for file in sorted((folder / "src").rglob("manifest.json")):
        _look(file, root, _MANIFEST, wanted, found)
    return found


def _look(file: Path, root: Path, mark: re.Pattern[str], wanted: set[str], found: dict[str, tuple[str, int]]) -> None:
    if mark is _FUNCTION and file.stat().st_size > _LARGEST:
        return
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        name = mark.match(line)
        if name and name[1] in wanted:
            found.setdefault(name[1], (file.relative_to(root).as_posix(), number))
