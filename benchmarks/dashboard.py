"""How soon the board of many servers answers: `python -m benchmarks.dashboard FOLDER`, a folder of `benchmarks.workspace`.

Over a real socket, by the clock of the one who asks: the first request, which reads everything; those after it, which look for what
changed; and those within a second, as while somebody types into the filter.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import statistics
import threading
import time
from pathlib import Path

import uvicorn

from mcpfactory_pipeline.dashboard.app import create_app

__all__ = ["first_byte"]

_TIMES = 7


def first_byte(port: int, path: str) -> tuple[float, float, int]:
    """Milliseconds to the first byte and to the last, and the bytes of the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    started = time.perf_counter()
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    first = time.perf_counter() - started
    size = len(answer.read())
    whole = time.perf_counter() - started
    connection.close()
    return first * 1000, whole * 1000, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for age in (0.0, 60.0):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(uvicorn.Config(create_app(folder, age=age), log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        port = listener.getsockname()[1]
        print(f"looked at {'again at every request' if not age else 'a moment ago'}:")
        for path in ("/board/", "/board/?q=1&sort=-score", "/"):
            cold = first_byte(port, path)
            warm = [first_byte(port, path) for _ in range(_TIMES)]
            print(
                f"  {path:<24} first request {cold[0]:7.0f} ms, then {statistics.median(one[0] for one in warm):6.0f} ms "
                f"to the first byte, {warm[-1][2] / 1000:.0f} kB"
            )
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
