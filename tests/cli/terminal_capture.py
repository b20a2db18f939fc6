"""Captures of a run in a terminal of 80×24: `python -m tests.cli.terminal_capture`.

Create a workspace of three servers, of which one fails, run all stages, and print the terminal's output. `--page` writes
the captures into docs/how-to/dashboard.md.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cli.recorded_workspaces import make
from tests.timeouts import TIMEOUT

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/dashboard.md"
COLUMNS, ROWS = 80, 24
_LAST = 8  # lines of the capture at the end, from the failed stage on
_PART = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


class Captured(NamedTuple):
    """Unchanged output of a command, and its exit code."""

    text: str
    code: int


def run(command: Sequence[str], folder: Path, *, terminal: bool, typed: str = "", **environ: str) -> Captured:
    """Run `mcpfactory …` with stdout on a terminal of 80×24, or in a pipe. `environ` can enable colors and CI mode.

    `typed` is the input on the terminal.
    """
    clean = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "CI", "COLUMNS", "LINES"}}
    line, env = [sys.executable, "-m", "mcpfactory", *command], {**clean, "TERM": "xterm-256color", **environ}
    if not terminal:
        done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT)
        return Captured(done.stdout, done.returncode)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(line, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        data = b""
        try:
            while part := os.read(ours, 65536):
                data += part
        except OSError:  # on Linux, the other side is closed
            pass
        os.close(ours)
    return Captured(data.decode(), process.returncode)


def screens(text: str) -> list[list[str]]:
    """Return the lines on a terminal before each erasure and at the end. Refuse sequences that rich does not write."""
    lines, row, column, found, erasing = [""], 0, 0, list[list[str]](), False
    for part in _PART.finditer(text):
        number, kind = part[1], part[2]
        if kind == "K" and not erasing:
            found.append([line for line in lines if line])
        erasing = kind in {"K", "A"}
        if part[0] == "\r":
            column = 0
        elif part[0] == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif kind == "K":
            lines[row] = ""
        elif kind == "A":
            row -= int(number or 1)
        elif kind is None:
            lines[row] = lines[row][:column].ljust(column) + part[0] + lines[row][column + len(part[0]) :]
            column += len(part[0])
        elif kind != "m" and number != "?25":
            raise ValueError(f"a code that is not known: {part[0]!r}")
    return [*found, [line.rstrip() for line in lines]]


def _workspace(folder: Path) -> None:
    make(folder)
    for words in (
        ("--from-openapi", str(ROOT / "docs/examples/bookshop/openapi.yaml")),
        ("hello", "--template", "minimal"),
        ("torn", "--template", "minimal"),
    ):
        run(("new", *words), folder, terminal=False)
    (folder / "servers/torn/tests/test_torn.py").write_text("def test_that_fails() -> None:\n    assert 1 + 1 == 3\n")


def main() -> None:
    """Print the captures, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    page = parser.parse_args().page
    with tempfile.TemporaryDirectory(prefix="mcpfactory-capture-") as place:
        folder = Path(place, "shops")
        _workspace(folder)
        seen = screens(run(("pipeline", "run"), folder, terminal=True).text)
        middle = [screen for screen in seen if any(" now " in line for line in screen)]
        end = [line for line in seen[-1] if line]
        start = next(number for number, line in enumerate(end) if line.startswith("  log: "))
        found = {
            "a terminal, on the way": middle[len(middle) * 2 // 3][-5:],
            "a terminal, at the end": ["[…]", *end[start : start + _LAST], "[…]"],
            "alone": run((), folder, terminal=False).text.splitlines(),
        }
    blocks = {
        title: "\n".join(["```text", *(line.rstrip() for line in lines if line), "```"])
        for title, lines in found.items()
    }
    if not page:
        print("\n\n".join(f"{title}:\n{block}" for title, block in blocks.items()))
        return
    text = PAGE.read_text(encoding="utf-8")
    for title, block in blocks.items():
        head, mark, rest = text.partition(f"<!-- captured: {title} -->\n")
        text = head + mark + block + "\n" + rest[rest.index("<!-- end -->") :]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
