"""What people and programs get to see: data on stdout, everything else on stderr, colour only where a person reads."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import typer

from mcpfactory.exits import Exit

__all__ = ["data", "fail", "line", "note", "problems", "styled", "table"]

_COLOURS = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1"}


def styled(text: str, style: str, *, err: bool = False) -> str:
    """The text in the named style when a person reads it on a terminal, else as it is (https://no-color.org)."""
    stream = sys.stderr if err else sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"


def data(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def line(text: str = "") -> None:
    """One line of the answer."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """One line about the answer: not part of the data."""
    sys.stderr.write(text + "\n")


def fail(message: str, hint: str = "", code: Exit = Exit.BAD_INPUT) -> NoReturn:
    """Ends the command with an error message, a hint and a documented exit code."""
    note(f"{styled('error:', 'bad', err=True)} {message}")
    if hint:
        note(f"{styled('hint:', 'strong', err=True)} {hint}")
    raise typer.Exit(code)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their longest cell; readable in a pipe, no frames."""
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        line(styled(text, "dim") if number == 0 else text)


def problems(found: Sequence[Any], limit: int = 12) -> None:
    """The problems of an API document, worst first, on stderr."""
    ordered = sorted(found, key=lambda problem: problem.level != "error")
    for problem in ordered[:limit]:
        note(
            f"{styled(problem.level, 'bad' if problem.level == 'error' else 'warn', err=True)} {problem.code}: {problem.message}"
        )
        place = f"{problem.pointer or '/'} (line {problem.line})" if problem.line else problem.pointer or "/"
        note(f"  at {place}" + (f"\n  hint: {problem.hint}" if problem.hint else ""))
    if len(ordered) > limit:
        note(f"… and {len(ordered) - limit} more; hint: --json prints all of them")
