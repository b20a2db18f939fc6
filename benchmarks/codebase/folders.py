"""The page `docs/reference/folders.md`: the first paragraph of each package docstring of the four wheels."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from benchmarks.codebase.measure import ROOT
from benchmarks.codebase.modules import WHEELS

_HEAD: Final = """\
# What the folders hold

The first paragraph of each package docstring, from the wheel that imports the others to the one that imports none. How they import each
other is drawn in [architecture](../architecture.md).
"""


def folders_page(root: Path = ROOT) -> str:
    """Return the page for the tree below a folder that has the layout of this repository."""
    parts = [_HEAD]
    for folder, wheel in reversed(WHEELS.items()):
        top = root / folder / wheel
        rows = [
            f"| `{file.parent.relative_to(top).as_posix()}/` | {_first_paragraph(file)} |"
            for file in sorted(top.rglob("__init__.py"))
            if file.parent != top and "_templates" not in file.parts
        ]
        parts.append(
            "\n".join(
                [
                    f"## `{wheel}`\n\n{_first_paragraph(top / '__init__.py')}\n",
                    "| folder | holds |",
                    "|---|---|",
                    *rows,
                    "",
                ]
            )
        )
    return "\n".join(parts)


def _first_paragraph(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
