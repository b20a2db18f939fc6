"""What a step printed, as text in pieces with the colours that a terminal would give them. Pure: text in, pieces out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from mcpfactory_pipeline.base.text import escape_invisible
from mcpfactory_pipeline.dashboard.log_bytes import RawLine, plain_text
from mcpfactory_pipeline.dashboard.log_text import Ink, LogPiece, ink_behind, pieces_of

__all__ = ["ink_after", "inked"]

_COLOURED: Final = 300  # pieces of a text that keep their colours, the last: more of them would make a page large


def inked(text: bytes, ink: Ink | None = None) -> tuple[LogPiece, ...]:
    """Return a text of many lines in pieces, each of another colour than the one before; `ink` is that of its beginning.

    Where it has very many the first are without colours. States of a line over which others were written are left out, but for those
    that were not covered, and those that speak of something wrong: these have lines of their own. What reorders a line, or is not seen, is written out.
    """
    pieces, ink = list[LogPiece](), ink or Ink()
    for number, line in enumerate(text.split(b"\n")):
        if number:
            pieces.append(LogPiece("\n"))
        begun = False
        for state, seen in _states(line):
            if not seen:
                ink = ink_behind(state, ink)
                continue
            found, ink = pieces_of(state, ink)
            pieces += [LogPiece("\n"), *found] if begun else found
            begun = True
    return tuple(_joined(pieces))


def _states(line: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the states of a line in their order, each with whether it is shown."""
    states, seen, cover = line.split(b"\r"), list[bool](), 0
    for state in reversed(states):
        width = len(plain_text(state).rstrip())
        seen.append(len(states) == 1 or width > cover or (width > 0 and RawLine(0, state, 0).wrong))
        cover = width or cover
    yield from zip(states, reversed(seen), strict=True)


def ink_after(text: bytes) -> Ink:
    """Return how text looks that comes after this one."""
    return ink_behind(text, Ink())


def _joined(pieces: Iterable[LogPiece]) -> Iterator[LogPiece]:
    joined = [
        LogPiece(escape_invisible("".join(piece.text for piece in some)), style)
        for style, some in groupby(pieces, lambda one: one.style)
    ]
    coloured = sum(bool(piece.style) for piece in joined)
    for piece in joined:
        yield piece if coloured <= _COLOURED else LogPiece(piece.text)
        coloured -= bool(piece.style)
