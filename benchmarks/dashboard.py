"""How soon the dashboard answers about 1,000 servers: `python -m benchmarks.dashboard`, or with a folder of `benchmarks.workspace`.

Ends in exit code 1 when a page is over 100 kB.

Over a real socket, by the clock of the one who asks, to the first byte and to the last. The first request reads everything; those
after it look at every file for what changed; within a second, as while somebody types into the filter, nothing is looked at
again. A key press takes what its answer takes, and 80 ms besides in which the page waits for the next one.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import statistics
import sys
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

__all__ = ["Answer", "ask", "served"]

_SERVERS = 1000
_TIMES = 7
_PAGES = ("/board/", "/board/?sort=-score&group=prefix", "/", "/runs/", "/trends/", "/rules/")
_TYPED = "shop-0421"
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


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a workspace; by default one of 1,000 servers is made")
    folder = parser.parse_args().folder
    with nullcontext(folder) if folder else prepared(_SERVERS) as place:
        sys.exit(_measure(place))


def _measure(folder: Path) -> int:
    servers = sum(1 for _ in (folder / "servers").glob("*/mcpfactory.toml"))
    print(f"{servers} servers; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with served(folder, age=0, ahead=False) as port:
        sizes = [_line("board, the first request", [ask(port, "/board/")])]
        for path in _PAGES:
            ask(port, path)
            sizes.append(_line(f"{path}, every file looked at", [ask(port, path) for _ in range(_TIMES)]))
    with served(folder, age=60) as port:
        for path in _PAGES:
            ask(port, path)
            _line(f"{path}, looked at a moment ago", [ask(port, path) for _ in range(_TIMES)])
        keys = [ask(port, f"/board/?q={_TYPED[:end]}") for end in range(1, len(_TYPED) + 1)]
        sizes.append(_line(f"{len(keys)} keys typed into the filter, each", keys))
    print("live:")
    for browsers in (1, 50):
        print(follow(browsers).row())
    return int(max(sizes) >= _LIMIT)


def _line(what: str, answers: Sequence[Answer]) -> int:
    first, whole = (statistics.median(one[part] for one in answers) for part in (0, 1))
    worst, size = max(one.whole for one in answers), max(one.size for one in answers)
    over = "" if size < _LIMIT else ", OVER THE LIMIT"
    print(
        f"  {what:<56} first byte {first:5.0f} ms, whole {whole:5.0f} ms, worst {worst:5.0f} ms, {size / 1000:3.0f} kB{over}"
    )
    return size


if __name__ == "__main__":
    main()
