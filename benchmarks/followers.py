"""What it costs when many browsers follow one run: `python -m benchmarks.followers [NUMBER]`, also part of `python -m benchmarks.dashboard`.

The dashboard is a process of its own, the run is played by this one as a run does it: notes, events and a log that grows. Each
browser is a connection that reads events; latency is from the write to the arrival at each of them.
"""

from __future__ import annotations

import os
import re
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import register_run, run_lock
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.state.store import Store

__all__ = ["Measured", "follow"]

_LINES = 20  # lines that are written, one after the other
_PATIENCE = 20.0  # seconds for a line to arrive


@dataclass(frozen=True)
class Measured:
    """What following cost: memory of the dashboard before and with all browsers, and milliseconds until each had a line."""

    browsers: int
    before: int  # KiB
    during: int  # KiB
    milliseconds: tuple[float, ...]  # of every line at every browser
    cpu: float  # seconds of the dashboard, per second

    def row(self) -> str:
        """One line of the table."""
        ordered = sorted(self.milliseconds)
        return (
            f"  {self.browsers:3} browsers follow one run: {self.before / 1024:.1f} MiB before, {self.during / 1024:.1f} MiB with them, "
            f"{(self.during - self.before) / max(self.browsers, 1):.0f} KiB each; from write to browser median "
            f"{statistics.median(ordered):.0f} ms, 95 % {ordered[len(ordered) * 95 // 100]:.0f} ms, worst {ordered[-1]:.0f} ms; "
            f"{100 * self.cpu:.0f} % of one core"
        )


def follow(browsers: int, lines: int = _LINES) -> Measured:
    """Plays a run that so many browsers follow."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        workspace = init_workspace(Path(place) / "w", "followers", git=False)
        folder = workspace.root / "servers" / "bookshop"
        folder.mkdir(parents=True)
        (folder / "mcpfactory.toml").write_text('[server]\nname = "bookshop"\npackage = "b"\ntemplate = "minimal"\n')
        process, port = stack.enter_context(_dashboard(workspace.root))
        store, run = Store(workspace), new_id()
        log = workspace.artifacts / "bookshop" / "logs" / "test.log"
        log.parent.mkdir(parents=True)
        stack.enter_context(register_run(store.locks, run))
        announce = stack.enter_context(run_lock(store.locks, "bookshop", run, waiting=print, stopped=lambda: False))
        announce(["test"])
        with store.transaction("bookshop") as transaction:
            transaction.append("stage.started", stage="test", run=run, pid=os.getpid(), reasons=["never run"])
        stream = stack.enter_context(log.open("w", buffering=1))
        _answered(stack.enter_context(_browser(port, f"/runs/{run}/")))  # everything that is loaded once is loaded
        before = _resident(process.pid)
        crowd = [stack.enter_context(_browser(port, f"/live/runs/{run}/")) for _ in range(browsers)]
        for one in crowd:
            _answered(one)
        started, spent, times = time.perf_counter(), _spent(process.pid), []
        for number in range(lines):
            stream.write(f"line {number} of the log\n")
            times += _arrivals(crowd, f"line {number} of".encode())
        cpu = (_spent(process.pid) - spent) / (time.perf_counter() - started)
        return Measured(browsers, before, _resident(process.pid), tuple(times), cpu)


@contextmanager
def _dashboard(root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "mcpfactory", "dashboard", "--port", "0"]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://[^/]*:(\d+)/", process.stderr.readline())
            assert found is not None, "the dashboard says where it is"
            yield process, int(found[1])
        finally:
            process.terminate()


@contextmanager
def _browser(port: int, path: str) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        yield connection


def _answered(connection: socket.socket) -> None:
    """Reads until the first event is there, or the end of the page."""
    got = b""
    while b"event: log" not in got and b"</html>" not in got:
        got += connection.recv(65536)


def _arrivals(crowd: list[socket.socket], wanted: bytes) -> list[float]:
    """Milliseconds until each of the crowd has read the text, from now."""
    started = time.perf_counter()
    waiting = dict.fromkeys(crowd, b"")
    times = []
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], _PATIENCE)
        assert ready, f"{len(waiting)} of {len(crowd)} were not told within {_PATIENCE:g} s"
        for one in ready:
            waiting[one] += one.recv(65536)
            if wanted in waiting[one]:
                del waiting[one]
                times.append((time.perf_counter() - started) * 1000)
    return times


def _resident(pid: int) -> int:
    """KiB of memory that a process has."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def _spent(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    for number in map(int, sys.argv[1:] or ["1", "50"]):
        print(follow(number).row())


if __name__ == "__main__":
    main()
