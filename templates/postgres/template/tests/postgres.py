"""PostgreSQL server for the tests: a temporary cluster on loopback with its own passwords."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Final

import psycopg

__all__ = ["Postgres", "missing"]

_PLACES: Final = "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"
_READY: Final = "ready to accept connections"


def _programs() -> Path | None:
    """Return the folder of the newest initdb and postgres."""
    if (found := shutil.which("initdb")) and (place := Path(found).resolve().parent / "postgres").exists():
        return place.parent
    folders = [Path(place) for pattern in _PLACES for place in Path("/").glob(pattern.lstrip("/"))]
    return max((one for one in folders if (one / "postgres").exists()), key=_version, default=None)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(folder)))


def _as_nobody() -> list[str]:
    """Return a command prefix for root: PostgreSQL refuses to run as root, so it gets its own user namespace."""
    return ["unshare", "--user", "--"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def missing() -> str:
    """Return why no server can start here, or ""."""
    folder = _programs()
    if folder is None:
        return "no PostgreSQL server is installed here (apt-get install postgresql)"
    try:
        done = subprocess.run([*_as_nobody(), str(folder / "postgres"), "--version"], capture_output=True, check=False, timeout=30)
    except OSError as error:
        return f"the tests run as root, and {error.filename} is not installed"
    return "" if done.returncode == 0 else f"PostgreSQL does not run as root, and unshare failed: {done.stderr.decode()[:200]}"


class Postgres:
    """A server with a superuser `owner` and the roles `reader` and `writer`. Call `close` to stop it."""

    def __init__(self, folder: Path) -> None:
        programs = _programs()
        assert programs is not None
        self._password = secrets.token_hex(16)
        secret, data = folder / "password", folder / "data"
        secret.write_text(self._password, "utf-8")
        options = ["-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync", "-E", "UTF8", "--locale=C"]
        made = subprocess.run([*_as_nobody(), str(programs / "initdb"), "-D", str(data), *options], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        self._log: list[str] = []
        for _ in range(3):  # another process may take the port
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port: int = probe.getsockname()[1]
            settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off"}
            command = [*_as_nobody(), str(programs / "postgres"), "-D", str(data)]
            command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
            self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_MESSAGES": "C"})
            if self._is_ready():
                break
        else:
            raise AssertionError("\n".join(self._log))
        self._reader = threading.Thread(target=self._drain)
        self._reader.start()

    def url(self, role: str = "reader", database: str = "postgres") -> str:
        """Return the connection string for a role."""
        return f"postgresql://{role}:{self._password}@127.0.0.1:{self.port}/{database}"

    def run(self, *statements: str, role: str = "owner") -> list[tuple[object, ...]]:
        """Run statements, and return the rows of the last one."""
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.replace("PASSWORD", f"PASSWORD '{self._password}'").encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Stop the server with a fast shutdown."""
        self._process.send_signal(2)
        self._process.wait(60)
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _is_ready(self) -> bool:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
            if _READY in line:
                return True
        self._process.wait(60)
        self._process.stderr.close()
        return False

    def _drain(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
