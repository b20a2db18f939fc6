"""How soon the dashboard answers about 1,000 servers: `python -m benchmarks dashboard`, or with a folder of `benchmarks.bench.workspace`.

Ends in exit code 1 when a page is over 100 kB.

The real command in a process of its own, over a real socket, by the clock of the one who asks, to the last byte, in milliseconds. Cold is the
first time that a page is asked for once the process has read the workspace; warm at once after that, when nothing is looked at again for a
second; quiet when nobody asked for longer than that; changed when a file of one server has changed meanwhile. A key press takes what its
answer takes, and 80 ms besides in which the page waits for the next one. How long the first page takes from the start of the command is measured
without and with snapshots of the histories. Last, with `--export`, all of it as files,
and the same again after one server changed. `--page` writes the table into docs/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench import report
from benchmarks.bench.workspace import prepared
from mcpfactory_pipeline.dashboard.export import export

_SERVERS = 1000
_TIMES = 7
_PAGES = ("/board/", "/board/?sort=-score&group=prefix", "/", "/runs/")
_QUIET = 1.5  # seconds in which nobody asks: longer than what was looked at is good for
_SELDOM = 3  # times that each page is asked for after a pause
_LIMIT = 100_000  # bytes of a page
_AHEAD = 4.0  # seconds in which a dashboard reads ahead

_Row = tuple[str, ...]


class Answer(NamedTuple):
    """Milliseconds to the first byte and to the last, and the bytes of the body."""

    first: float
    whole: float
    size: int


def ask(port: int, path: str) -> Answer:
    """Asks for one page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    started = time.perf_counter()
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    first = time.perf_counter() - started
    size = len(answer.read())
    whole = time.perf_counter() - started
    connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{path}: {answer.status}")
    return Answer(first * 1000, whole * 1000, size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a workspace; by default one of 1,000 servers is made")
    parser.add_argument("--export", action="store_true", help="also write all of it as files, which takes minutes")
    parser.add_argument("--page", action="store_true", help="write docs/explanation/performance.md, with the export")
    asked = parser.parse_args(arguments)
    with nullcontext(asked.folder) if asked.folder else prepared(_SERVERS) as place:
        starts = list(_starts(place))
        worst, rows = _measure(place)
        rows = [*starts, *rows, *(_export(place) if asked.export or asked.page else ())]
        if asked.page:
            _fill(_servers(place), rows)
    return int(worst >= _LIMIT)


@contextmanager
def _command(folder: Path) -> Iterator[int]:
    """The dashboard as people start it: its port."""
    line = [sys.executable, "-m", "mcpfactory", "dashboard", "--port", "0", "--json"]
    with subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        try:
            yield int(json.loads(text)["url"].rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


def _servers(folder: Path) -> list[str]:
    return sorted(file.parent.name for file in (folder / "servers").glob("*/mcpfactory.toml"))


def _starts(folder: Path) -> Iterator[_Row]:
    """Yield how long the first page takes after a start without snapshots of the histories, and after a start with them."""
    print(f"{len(_servers(folder))} servers; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for snapshot in (folder / "pipeline" / "locks").glob("*.snapshot"):
        snapshot.unlink()
    for what in ("the first start", "a later start"):
        started = time.perf_counter()
        with _command(folder) as port:
            announced = time.perf_counter() - started
            ask(port, "/board/")
            shown = time.perf_counter() - started
        print(f"  {what}: address after {announced:.1f} s, the first page after {shown:.1f} s")
        yield f"the first page after {what} of the dashboard", f"{shown:.1f} s", "", "", ""


def _measure(folder: Path) -> tuple[int, list[_Row]]:
    """Print the table; return the bytes of the largest page, and its rows."""
    servers = _servers(folder)
    name = servers[len(servers) // 2]
    file = folder / "servers" / name / "README.md"
    pages = (*_PAGES, *(f"/servers/{name}/{part}" for part in ("", "tools/")))
    rows = list[_Row]()
    with _command(folder) as port:
        size = ask(port, "/board/").size
        time.sleep(_AHEAD)  # what it reads ahead is read
        print(f"  {'page':<40}{'cold':>8}{'warm':>8}{'quiet':>8}{'changed':>8}  ms")
        for path in pages:
            cold = ask(port, path)
            warm = [ask(port, path) for _ in range(_TIMES)]
            quiet, changed = list[Answer](), list[Answer]()
            for times in (quiet, changed):
                for _ in range(_SELDOM):
                    if times is changed:
                        file.write_text(file.read_text("utf-8") + "\n", "utf-8")
                    time.sleep(_QUIET)
                    times.append(ask(port, path))
            size = max(size, cold.size)
            cells = [f"{statistics.median(one.whole for one in some):.0f}" for some in ([cold], warm, quiet, changed)]
            print(f"  {path:<40}{''.join(f'{cell:>8}' for cell in cells)}  {cold.size / 1000:.0f} kB", flush=True)
            rows.append((f"`{path.replace(name, '…')}`", *(f"{cell} ms" for cell in cells)))
        keys = [ask(port, f"/board/?q={name[:end]}").whole for end in range(1, len(name) + 1)]
        print(f"  a key typed into the filter: median {statistics.median(keys):.0f} ms, worst {max(keys):.0f} ms")
        rows.append(("the board after each key typed into its filter", "", f"{statistics.median(keys):.0f} ms", "", ""))
    return size, rows


def _export(folder: Path) -> Iterator[_Row]:
    """Yield how long an export takes: into an empty folder, again, and again after one server changed."""
    file = folder / "servers" / _servers(folder)[0] / ".mcpfactory" / "report.json"
    with tempfile.TemporaryDirectory() as out:
        for which in ("into an empty folder", "again", "again, when one server has changed"):
            if which.endswith("changed"):
                report = json.loads(file.read_bytes())
                file.write_text(json.dumps({**report, "tokens": int(report.get("tokens") or 0) + 1}), "utf-8")
            started = time.perf_counter()
            numbers = f"{len(export(folder, Path(out)))} files"
            took = time.perf_counter() - started
            print(f"  export {which}: {took:.1f} s, {numbers}", flush=True)
            yield f"export of {numbers} {which}", f"{took:.1f} s", "", "", ""


def _fill(servers: list[str], rows: list[_Row]) -> None:
    """Write the rows between the marks of docs/explanation/performance.md, whatever was there."""
    facts = report.facts()
    head = ["| page or action | first time | again | after a pause | after a change |", "|---|---|---|---|---|"]
    lines = [*head, *(f"| {' | '.join(row)} |" for row in rows), ""]
    lines += [
        f"{len(servers)} servers. Machine: {facts['cores']} cores of {facts['processor']}, {facts['system']}, Python {facts['python']}."
    ]
    before, begin, rest = report.PAGE.read_text("utf-8").partition("<!-- dashboard -->\n")
    _, end, after = rest.partition("<!-- /dashboard -->")
    report.PAGE.write_text("".join((before, begin, "\n".join(lines), "\n", end, after)), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
