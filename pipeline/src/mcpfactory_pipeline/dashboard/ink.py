"""What a step printed, as text in pieces with the colours that a terminal would give them. Pure: text in, pieces out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from mcpfactory_pipeline.dashboard.log_text import Ink, LogPiece, pieces_of

__all__ = ["ink_after", "inked"]

_COLOURED: Final = 300  # pieces of a text that keep their colours, the last: more of them would make a page large


def inked(text: bytes, ink: Ink | None = None) -> tuple[LogPiece, ...]:
    """Return a text of many lines in pieces, each of another colour than the one before; `ink` is that of its beginning.

    Where it has very many the first are without colours.
    """
    pieces, ink = list[LogPiece](), ink or Ink()
    for number, line in enumerate(text.split(b"\n")):
        if number:
            pieces.append(LogPiece("\n"))
        found, ink = pieces_of(line, ink)
        pieces += found
    return tuple(_joined(pieces))


def ink_after(text: bytes) -> Ink:
    """Return how text looks that comes after this one."""
    ink = Ink()
    for line in text.split(b"\n"):
        _, ink = pieces_of(line, ink)
    return ink


def _joined(pieces: Iterable[LogPiece]) -> Iterator[LogPiece]:
    joined = [
        LogPiece("".join(piece.text for piece in some), style) for style, some in groupby(pieces, lambda one: one.style)
    ]
    coloured = sum(bool(piece.style) for piece in joined)
    for piece in joined:
        yield piece if coloured <= _COLOURED else LogPiece(piece.text)
        coloured -= bool(piece.style)
