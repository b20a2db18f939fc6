"""Tables as lines of text: as wide as their cells, or folded into the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcpfactory_pipeline.base.printable import cell_width, wrap

__all__ = ["table_lines"]

_GAP: Final = 2
_WORD: Final = 20  # columns up to which a word is not broken as long as there is room


def table_lines(rows: Sequence[Sequence[str]], width: int | None = None) -> list[list[str]]:
    """Return the lines of each row, whose cells stand below each other. All rows have as many cells.

    With a `width`, columns that are too much give way, the widest first, and their cells fold. Without one (a pipe), a row
    is one line, however long.
    """
    if not rows:
        return []
    widths = [max(map(cell_width, cells)) for cells in zip(*rows, strict=True)]
    if width is None or sum(widths) + _GAP * (len(widths) - 1) <= width:
        return [[_line(row, widths)] for row in rows]
    space = width - _GAP * (len(widths) - 1)
    words = [
        max(min(_WORD, cell_width(word)) for cell in cells for word in (cell.split() or [""]))
        for cells in zip(*rows, strict=True)
    ]
    widths = _shrunk(_shrunk(widths, words, space), [1] * len(widths), space)
    return [_folded(row, widths) for row in rows]


def _shrunk(widths: Sequence[int], least: Sequence[int], space: int) -> list[int]:
    """Return the widths with the widest made narrower, one column of the terminal at a time, until they fit or are the least."""
    found = list(widths)
    while sum(found) > space:
        free = [index for index, width in enumerate(found) if width > least[index]]
        if not free:
            break
        found[max(free, key=lambda index: found[index])] -= 1
    return found


def _folded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, cells))
    return [_line([cell[i] if i < len(cell) else "" for cell in cells], widths) for i in range(height)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        (" " * _GAP)
        .join(cell + " " * (width - cell_width(cell)) for cell, width in zip(cells, widths, strict=True))
        .rstrip()
    )
