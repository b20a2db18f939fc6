"""A real Redis or Valkey for tests and trials: a process of its own on a Unix socket in a folder, which keeps nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HINT: Final = "neither redis-server nor valkey-server is installed; hint: apt-get install redis-server"
_PATIENCE: Final = 60.0  # seconds for its start


def find_redis() -> str | None:
    """Return the command of a server that is installed here."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


def install_redis() -> bool:
    """Whether a server is installed; tries to install one where this is a Debian that lets us."""
    apt = shutil.which("apt-get")
    if find_redis() is None and apt is not None and os.geteuid() == 0:
        command = [apt, "install", "--yes", "--no-install-recommends", "redis-server"]
        subprocess.run(
            command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL, check=False
        )
    return find_redis() is not None


@contextmanager
def redis_server() -> Iterator[str]:
    """Start a server, yield its address, and end it.

    Raises:
        FileNotFoundError: none is installed.
        RuntimeError: it did not start.
    """
    command = find_redis()
    if command is None:
        raise FileNotFoundError(HINT)
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:  # short: the name of a socket has at most 107 bytes
        path = Path(folder) / "socket"
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no", "--dir", folder]
        bounds = ["--maxmemory", "256mb", "--loglevel", "warning"]
        process = subprocess.Popen([command, *options, *bounds], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not _accepts(path):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command} did not start")
                time.sleep(0.01)
            yield f"unix://{path}"
        finally:
            process.kill()
            process.wait()


def _accepts(path: Path) -> bool:
    """Whether a server accepts connections; its socket exists a moment before it does."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    install_redis()
