"""What people and programs get to see: data on stdout, everything else on stderr, colour only where a person reads."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn, TextIO

import typer

from mcpfactory.exits import Exit

__all__ = [
    "data",
    "document",
    "error",
    "fail",
    "hint",
    "line",
    "note",
    "raw",
    "read_by_person",
    "styled",
    "table",
    "warning",
    "width",
]

_COLOURS: Final = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1"}


def read_by_person(stream: TextIO) -> bool:
    """Whether a stream is a terminal that may be coloured and moved about in: no pipe, no CI, not NO_COLOR, not TERM=dumb."""
    environ = os.environ
    return (
        stream.isatty()
        and not environ.get("NO_COLOR")  # https://no-color.org
        and environ.get("TERM") != "dumb"
        and environ.get("CI", "").lower() in {"", "0", "false"}
    )


def styled(text: str, style: str, *, err: bool = False) -> str:
    """Return the text in the named style when a person reads it on a terminal, else as it is."""
    from mcpfactory_pipeline.base.text import printable

    text = printable(text)
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if read_by_person(sys.stderr if err else sys.stdout) else text


def data(value: Any) -> None:
    """Print one JSON document on stdout."""
    from mcpfactory_pipeline.base.text import printable_json

    sys.stdout.write(printable_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)) + "\n")


def line(text: str = "") -> None:
    """Print one line of the answer."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """Print one line about the answer: not part of the data. Where both go to one place, it stands behind what was printed before."""
    sys.stdout.flush()
    _write(sys.stderr, text)


def raw(text: str) -> None:
    """Print text of somebody else, a log or a report: on a terminal it may colour, and nothing of it acts on terminal or CI."""
    from mcpfactory_pipeline.base.text import printable

    sys.stdout.write(printable(text, colour=read_by_person(sys.stdout)))


def document(text: str) -> None:
    """Print a document for a program, which its writer has made safe to show, as it is."""
    sys.stdout.write(text)


def _write(stream: TextIO, text: str) -> None:
    """Write a line without what would move the cursor: names and messages come from documents that nobody vouches for."""
    from mcpfactory_pipeline.base.text import printable

    stream.write(printable(text, colour=read_by_person(stream)) + "\n")


def fail(message: str, hint_text: str = "", code: Exit = Exit.BAD_INPUT) -> NoReturn:
    """End the command with an error message, a hint and a documented exit code."""
    error(message, hint_text)
    raise typer.Exit(code)


def error(message: str, hint_text: str = "") -> None:
    """Print an error message and its hint on stderr, about the answer or in place of one."""
    note(f"{styled('error:', 'bad', err=True)} {message}")
    if hint_text:
        hint(hint_text)


def hint(text: str) -> None:
    """Print on stderr what to do."""
    note(f"{styled('hint:', 'strong', err=True)} {text}")


def warning(text: str) -> None:
    """Print a warning on stderr."""
    note(f"{styled('warning:', 'warn', err=True)} {text}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without frames: folded into the width of a terminal, a line for each row in a pipe."""
    from mcpfactory_pipeline.base.text import printable_line, table_lines

    cells = [tuple(map(printable_line, row)) for row in (header, *rows)]
    for number, lines in enumerate(table_lines(cells, width())):
        for text in lines:
            line(styled(text, "dim") if number == 0 else text)


def width() -> int | None:
    """How many columns stdout has; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
