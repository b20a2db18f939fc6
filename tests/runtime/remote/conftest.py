"""The remote server as a process: on stdio, or over HTTP with a URL that is known after its start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.system import free_port
from tests.timeouts import TIMEOUT, wait_until

HERE = Path(__file__).parent
ELSEWHERE = [sys.executable, str(HERE / "remote_server.py")]
SDK = [sys.executable, str(HERE / "sdk_remote_server.py")]


@pytest.fixture
def remote_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that reads the log of the remote server, as words."""
    file = tmp_path / "happened"
    file.touch()
    monkeypatch.setenv("HAPPENED", str(file))
    return lambda: file.read_text().split()


@contextmanager
def process(command: list[str], log: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server process; yield it when it serves HTTP, and fail if it ended."""
    with log.open("wb") as stderr, subprocess.Popen(command, stdout=stderr, stderr=stderr, env=dict(os.environ)) as one:
        try:
            wait_until(lambda: _serves(port) or one.poll() is not None, lambda: log.read_text("utf-8"))
            assert one.poll() is None, log.read_text("utf-8")
            yield one
        finally:
            one.kill()
            one.wait(TIMEOUT)


def _serves(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


Elsewhere = Callable[..., str]


@pytest.fixture
def start_remote_server(remote_log: object, tmp_path: Path) -> Iterator[Elsewhere]:
    """Return a function that starts the remote server over HTTP and returns its URL."""
    with ExitStack() as stack:

        def start(command: list[str] | None = None) -> str:
            port = free_port()
            given = [*ELSEWHERE, "--http", "--port", str(port)] if command is None else [*command, str(port)]
            stack.enter_context(process(given, tmp_path / f"log-{port}", port))
            return f"http://127.0.0.1:{port}/mcp"

        yield start
