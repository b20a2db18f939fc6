"""How soon the dashboard answers about 1,000 servers: `python -m benchmarks dashboard`, or with a folder of `benchmarks.workspace`.

Ends in exit code 1 when a page is over 100 kB.

The real command in a process of its own, over a real socket, by the clock of the one who asks, to the last byte, in milliseconds. Cold is the
first time that a page is asked for once the process has read the workspace; warm at once after that, when nothing is looked at again for a
second; quiet when nobody asked for longer than that; changed when a file of one server has changed meanwhile. A key press takes what its
answer takes, and 80 ms besides in which the page waits for the next one. Last, all of it as files, twice.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import uvicorn

from benchmarks.followers import follow
from benchmarks.workspace import prepared
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.export import export

__all__ = ["Answer", "ask", "served"]

_SERVERS = 1000
_TIMES = 7
_PAGES = ("/board/", "/board/?sort=-score&group=prefix", "/", "/runs/", "/trends/", "/rules/")
_QUIET = 1.5  # seconds in which nobody asks: longer than what was looked at is good for
_SELDOM = 3  # times that each page is asked for after a pause
_LIMIT = 100_000  # bytes of a page


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


@contextmanager
def served(folder: Path, *, age: float, ahead: bool = True) -> Iterator[int]:
    """A dashboard on a free port, which it gives; without `ahead` nothing is read before the first request."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        create_app(folder, age=age), log_level="warning", ws="none", lifespan="on" if ahead else "off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a workspace; by default one of 1,000 servers is made")
    parser.add_argument("--export", action="store_true", help="also write all of it as files, which takes minutes")
    asked = parser.parse_args(arguments)
    with nullcontext(asked.folder) if asked.folder else prepared(_SERVERS) as place:
        worst = _measure(place)
        if asked.export:
            _export(place)
    print("live:")
    for browsers in (1, 50):
        print(follow(browsers).row())
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


def _measure(folder: Path) -> int:
    """Print the table; return the bytes of the largest page."""
    servers = sorted(file.parent.name for file in (folder / "servers").glob("*/mcpfactory.toml"))
    name = servers[len(servers) // 2]
    file = folder / "servers" / name / "README.md"
    pages = (*_PAGES, *(f"/servers/{name}/{part}" for part in ("", "tools/", "trends/")))
    print(f"{len(servers)} servers; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    started = time.perf_counter()
    with _command(folder) as port:
        announced = time.perf_counter() - started
        size = ask(port, "/board/").size
        print(f"  address after {announced:.1f} s, the first page after {time.perf_counter() - started:.1f} s")
        time.sleep(_QUIET)  # what it reads ahead is read
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
            cells = "".join(
                f"{statistics.median(one.whole for one in some):8.0f}" for some in ([cold], warm, quiet, changed)
            )
            print(f"  {path:<40}{cells}  {cold.size / 1000:.0f} kB", flush=True)
        keys = [ask(port, f"/board/?q={name[:end]}") for end in range(1, len(name) + 1)]
        print(
            f"  a key typed into the filter: median {statistics.median(one.whole for one in keys):.0f} ms, worst {max(one.whole for one in keys):.0f} ms"
        )
    return size


def _export(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as out:
        for which in ("first", "second"):
            started = time.perf_counter()
            files = export(folder, Path(out))
            print(f"  export, the {which} time: {time.perf_counter() - started:.1f} s, {len(files)} files", flush=True)


if __name__ == "__main__":
    sys.exit(main())
