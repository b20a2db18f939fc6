"""Output of commands: data on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TextIO

import typer

from mcpfactory_runtime.errors import Exit

_COLORS: Final = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1"}


def supports_styling(stream: TextIO) -> bool:
    """Return True if the stream is a terminal that allows colors and cursor movement."""
    environ = os.environ
    return (
        stream.isatty()
        and not environ.get("NO_COLOR")  # https://no-color.org
        and environ.get("TERM") != "dumb"
        and environ.get("CI", "").lower() in {"", "0", "false"}
    )


def styled(text: str, style: str, *, err: bool = False) -> str:
    """Color the text on a terminal."""
    from mcpfactory_pipeline.base.text import printable

    text = printable(text)
    return f"\x1b[{_COLORS[style]}m{text}\x1b[0m" if supports_styling(sys.stderr if err else sys.stdout) else text


def data(value: Any) -> None:
    """Print one JSON document on stdout."""
    from mcpfactory_pipeline.base.text import printable_json

    sys.stdout.write(printable_json(json.dumps(value, indent=2, ensure_ascii=False, default=str)) + "\n")


def line(text: str = "") -> None:
    """Print one line of output."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """Print a note on stderr, after all pending stdout output."""
    sys.stdout.flush()
    _write(sys.stderr, text)


def print_untrusted_text(text: str) -> None:
    """Print third-party text, such as a log, and escape CI commands and all terminal commands except colors."""
    from mcpfactory_pipeline.base.text import printable

    sys.stdout.write(printable(text, color=supports_styling(sys.stdout)))


def print_document(text: str) -> None:
    """Print a machine-readable document unchanged, because it is already escaped."""
    sys.stdout.write(text)


def _write(stream: TextIO, text: str) -> None:
    """Write a line without control sequences, because the text may come from untrusted documents."""
    from mcpfactory_pipeline.base.text import printable

    stream.write(printable(text, color=supports_styling(stream)) + "\n")


def fail(message: str, hint_text: str = "", code: Exit = Exit.BAD_INPUT) -> NoReturn:
    """End the command with an error message, a hint and a documented exit code."""
    error(message, hint_text)
    raise typer.Exit(code)


def usage_error(message: str, hint_text: str) -> NoReturn:
    """End the command because its options or arguments are invalid."""
    fail(message, hint_text, Exit.USAGE)


def error(message: str, hint_text: str = "") -> None:
    """Print an error message and its hint on stderr."""
    note(f"{styled('error:', 'bad', err=True)} {message}")
    if hint_text:
        hint(hint_text)


def hint(text: str) -> None:
    """Print a hint on stderr."""
    note(f"{styled('hint:', 'strong', err=True)} {text}")


def warning(text: str) -> None:
    """Print a warning on stderr."""
    note(f"{styled('warning:', 'warn', err=True)} {text}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: wrapped on a terminal, one line per row in a pipe."""
    from mcpfactory_pipeline.base.text import printable_line, table_lines

    cells = [tuple(map(printable_line, row)) for row in (header, *rows)]
    for number, lines in enumerate(table_lines(cells, width())):
        for text in lines:
            line(styled(text, "dim") if number == 0 else text)


def width() -> int | None:
    """Return the number of terminal columns, or None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_PATIENCE: Final = 1.0  # seconds before the first progress line on a terminal
_LONG: Final = 3.0  # seconds before the first progress line in a pipe or log
_TICK: Final = 0.25
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a new step of a long operation."""
    if quiet:
        yield lambda _step: None
    elif supports_styling(sys.stderr):
        with _Live() as live:
            yield live.step
    else:
        began = time.monotonic()

        def step(text: str) -> None:
            if text and time.monotonic() - began >= _LONG:
                note(f"{text} …")

        yield step


@contextmanager
def server_progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that prints progress every few seconds.

    Call the function before each server with (number, total).
    """
    with progress(quiet=False) as step:
        reported = time.monotonic()

        def count(done: int, servers: int) -> None:
            nonlocal reported
            if time.monotonic() - reported >= _LONG:
                reported = time.monotonic()
                step(
                    f"{done} of {servers} servers read; the first time in a clone, all events of each history are read"
                )

        yield count


class _Live:
    """Temporary status line with the current step and the elapsed time."""

    def __init__(self) -> None:
        self._text, self._began = "", time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> _Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()

    def step(self, text: str) -> None:
        """Show the current step, or clear the line if `text` is ""."""
        self._text = text
        if not text:
            sys.stderr.write(_CLEAR)

    def _tick(self) -> None:
        from mcpfactory_pipeline.base.text import printable, truncate

        while not self._done.wait(_TICK):
            seconds = time.monotonic() - self._began
            if self._text and seconds >= _PATIENCE:
                line = truncate(printable(f"{self._text} … {seconds:.0f} s"), shutil.get_terminal_size().columns - 1)
                sys.stderr.write(f"{_CLEAR}{line}")
                sys.stderr.flush()


_STYLES: Final = {"breaking": "bad", "additive": "good", "cosmetic": "dim"}
_MAX_COSMETIC: Final = 8
_MAX_PROBLEMS: Final = 12


def print_address_warnings(
    server: str, address: Mapping[str, Any], environ: Mapping[str, str] | None = None, setting: str = "export"
) -> None:
    """Print on stderr each API address with a problem, and each private address.

    `environ` is the server's environment, by default `os.environ`. `setting` is the shell command in hints that sets a
    variable.
    """
    from mcpfactory_pipeline.workspace.api_addresses import api_addresses

    if not address:
        return
    for one in api_addresses(address, os.environ if environ is None else environ, server=server, setting=setting):
        if one.hint:
            warning(one.message)
            note(f"  hint: {one.hint}")
        elif one.private_kind:
            note(f"note: {one.message}")


def print_contract_changes(changes: Any) -> None:
    """Print contract changes, breaking changes first, with a truncated list of cosmetic changes."""
    if not changes:
        line("no changes for callers")
        return
    for kind, style in _STYLES.items():
        found = [change for change in changes if change.kind == kind]
        shown = found[:_MAX_COSMETIC] if kind == "cosmetic" else found
        if found:
            line(styled(f"{kind}: {len(found)}", style))
        for change in shown:
            line(f"  {change.code}  {change.message}")
        if len(shown) < len(found):
            line(f"  … and {len(found) - len(shown)} more; --json prints all of them")


def print_tool_groups(groups: Sequence[dict[str, Any]], tokens: int, search: str) -> None:
    """Print tool groups with their token cost, their flags and a hint about search mode."""
    if not groups:
        return
    line()
    line(f"{tokens:,} tokens are a lot for a model to read before it starts. Select groups for `mcpfactory new`:")
    line()
    rows = [(group["name"], str(group["tools"]), str(group["tokens"]), group["flag"]) for group in groups]
    table(("GROUP", "TOOLS", "TOKENS", "TO SELECT IT"), rows)
    note(f"hint: to keep all tools within about 500 tokens, {search}")


def print_server_overview(view: Any) -> None:
    """Print a server's overview: contents, tools that are hard for models, and open decisions."""
    from mcpfactory_codegen.servers.overview import overview_lines

    for text in overview_lines(view) if view is not None else ():
        line(text)


def print_document_problems(found: Sequence[Any]) -> None:
    """Print the problems of an API document on stderr, errors first."""
    ordered = sorted(found, key=lambda problem: problem.level != "error")
    for problem in ordered[:_MAX_PROBLEMS]:
        level = styled(problem.level, "bad" if problem.level == "error" else "warn", err=True)
        note(f"{level} {problem.code}: {problem.message}")
        at = f"{problem.pointer or '/'} (line {problem.line})" if problem.line else problem.pointer or "/"
        note(f"  at {at}" + (f"\n  hint: {problem.hint}" if problem.hint else ""))
    if len(ordered) > _MAX_PROBLEMS:
        note(f"… and {len(ordered) - _MAX_PROBLEMS} more; hint: --json prints all of them")


_LEVELS: Final = ("debug", "info", "warning", "error")
_log: Final = logging.getLogger(__name__)


def log_to_stderr(level: str) -> None:
    """Print log records of this level and above. At `info`, also print each started process."""
    if level.lower() not in _LEVELS:
        usage_error(f"MCPFACTORY_LOG: unknown level {level!r}", f"use one of {', '.join(_LEVELS)}")
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level.upper(), format=form, datefmt="%H:%M:%S", stream=sys.stderr)
    sys.addaudithook(_log_process)


def _log_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        words = arguments[1] if isinstance(arguments[1], list | tuple) else [arguments[1]]
        _log.info("start %s", shlex.join(str(word) for word in words))
