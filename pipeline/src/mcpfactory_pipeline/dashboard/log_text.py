"""A line of a log as text in pieces: colours as names of classes, links to what it names. No byte of a log becomes markup.

The colours are those that a terminal's commands name (SGR): eight and their bright ones, of 256 or of all colours the nearest. Everything else
that a terminal would obey is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.dashboard.log_bytes import plain_text

__all__ = ["Ink", "LogPiece", "ink_behind", "pieces_of"]

_COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_LEVELS: Final = (0, 95, 135, 175, 215, 255)  # of the 6×6×6 colours among the 256
_STRONG: Final = 128  # what a part of a colour is at least, to be seen as one of the eight
_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_TEST: Final = re.compile(r"(?<![\w/.-])[\w./-]*\btest\w*\.py::[\w.:-]*\w(?:\[[^\]\s]{1,80}\])?")
_SIZE: Final = 1_000  # characters of a line that are shown
_PIECES: Final = 40  # of a line that are told apart: what comes after is one piece


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Some of a line. `style` are names of classes; `rule` and `test` are what it names, "" for none."""

    text: str
    style: str = ""
    rule: str = ""
    test: str = ""


@dataclass(frozen=True, slots=True)
class Ink:
    """How text looks from a place on, as a terminal remembers it."""

    colour: str = ""
    ground: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def style(self) -> str:
        """The names of its classes."""
        ground = f"on-{self.ground}" if self.ground else ""
        return " ".join(filter(None, (self.colour, ground, *sorted(self.marks))))

    def after(self, codes: str) -> Ink:
        """Return the ink after a command, whose codes have `;` or `:` between."""
        ink, numbers = self, [int(code[:4] or 0) for code in re.split("[;:]", codes)]
        while numbers:
            code = numbers.pop(0)
            if code in {38, 48}:
                colour = _many(numbers)
                ink = replace(ink, colour=colour) if code == 38 else replace(ink, ground=colour.removeprefix("bright-"))
            else:
                ink = _CODES.get(code, _same)(ink)
        return ink


_Change = Callable[[Ink], Ink]


def _same(ink: Ink) -> Ink:
    return ink


def _many(numbers: list[int]) -> str:
    """Take a colour of 256 (`5;n`) or of all (`2;r;g;b`) off the numbers, and return the nearest of the eight."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 2:
        parts = numbers[:3]
        del numbers[:3]
        return _nearest(*parts) if len(parts) == 3 else ""
    if kind != 5 or not numbers:
        return ""
    number = min(numbers.pop(0), 255)
    if number < 16:
        return ("bright-" if number > 7 else "") + _COLOURS[number % 8]
    if number > 231:
        return _nearest(*[8 + 10 * (number - 232)] * 3)
    number -= 16
    return _nearest(_LEVELS[number // 36], _LEVELS[number // 6 % 6], _LEVELS[number % 6])


def _nearest(red: int, green: int, blue: int) -> str:
    limit = max(_STRONG, max(red, green, blue) // 2 + 1)
    return _COLOURS[(red >= limit) + 2 * (green >= limit) + 4 * (blue >= limit)]


def _coloured(name: str) -> _Change:
    return lambda ink: replace(ink, colour=name)


def _grounded(name: str) -> _Change:
    return lambda ink: replace(ink, ground=name)


def _marked(*names: str) -> _Change:
    return lambda ink: replace(ink, marks=ink.marks | set(names))


def _unmarked(*names: str) -> _Change:
    return lambda ink: replace(ink, marks=ink.marks - set(names))


_CODES: Final[dict[int, _Change]] = {
    0: lambda _ink: Ink(),
    1: _marked("bold"), 2: _marked("faint"), 3: _marked("italic"), 4: _marked("underline"), 7: _marked("reverse"), 9: _marked("strike"),
    21: _marked("underline"), 22: _unmarked("bold", "faint"), 23: _unmarked("italic"), 24: _unmarked("underline"), 27: _unmarked("reverse"),
    29: _unmarked("strike"), 39: _coloured(""), 49: _grounded(""),
    **{30 + number: _coloured(name) for number, name in enumerate(_COLOURS)},
    **{40 + number: _grounded(name) for number, name in enumerate(_COLOURS)},
    **{90 + number: _coloured(f"bright-{name}") for number, name in enumerate(_COLOURS)},
    **{100 + number: _grounded(name) for number, name in enumerate(_COLOURS)},
}  # fmt: skip


def pieces_of(line: bytes, ink: Ink) -> tuple[tuple[LogPiece, ...], Ink]:
    """Return the text of a line in pieces, and the ink after it. A long line is cut, and says so."""
    found: list[LogPiece] = []
    left = _SIZE
    parts = _SGR.split(line.decode("utf-8", errors="replace"))
    for number, part in enumerate(parts):
        if number % 2:
            ink = ink.after(part)
            continue
        text = plain_text(part.encode())
        if text and left >= 0:
            cut = text if len(text) <= left else f"{text[:left]}…"
            left -= len(text)
            found += _linked(cut, ink.style if len(found) < _PIECES else "")
    return tuple(found), ink


def ink_behind(text: bytes, ink: Ink) -> Ink:
    """Return the ink after a text that is not shown."""
    for codes in _SGR.findall(text.decode("utf-8", errors="replace")):
        ink = ink.after(codes)
    return ink


def _linked(text: str, style: str) -> Iterator[LogPiece]:
    """Yield a text in pieces, those that name a rule or a test apart."""
    at = 0
    for named in _named().finditer(text):
        if named.start() > at:
            yield LogPiece(text[at : named.start()], style)
        word = named.group()
        yield LogPiece(word, style, test=word) if "::" in word else LogPiece(word, style, rule=word)
        at = named.end()
    if at < len(text):
        yield LogPiece(text[at:], style)


@cache
def _named() -> re.Pattern[str]:
    rules = "|".join(re.escape(rule.id) for rule in sorted(RULES, key=lambda rule: -len(rule.id)))
    return re.compile(rf"{_TEST.pattern}|(?<![\w./-])(?:{rules})(?![\w-]|\.\w)")
