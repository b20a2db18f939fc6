"""One examination: `mcpfactory validate --command` as a process, what came of it, and where that is kept."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import home
from benchmarks.public_servers.installed import Start
from benchmarks.public_servers.table import Server
from benchmarks.staging.results import code_digest

__all__ = ["WRONG", "Examined", "examine", "keep", "kept", "loaded"]

WRONG = 3  # the severity from which a finding says that something is wrong


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of one server.

    Attributes:
        code: the exit code of validate; -1 when it did not end by itself.
        seconds: how long it took.
        report: that it wrote.
        crash: what went wrong with the examination itself; "" when nothing did.
    """

    code: int
    seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)
    crash: str = ""

    @property
    def verdict(self) -> str:
        """`passed`, `not shown`, `refused` or `crashed`."""
        return "crashed" if self.crash else str(self.report["verdict"])

    def rules(self, least: int = 1) -> tuple[str, ...]:
        """The rules with findings of at least a severity, in the order of the report."""
        return tuple(dict.fromkeys(one["rule"] for one in self.findings(least)))

    def findings(self, least: int = 1) -> list[Mapping[str, Any]]:
        """The findings of at least a severity."""
        return [one for one in self.report.get("findings", ()) if one["severity"] >= least]

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The rules that could not be judged."""
        return tuple(one["rule"] for one in self.report.get("not_checked", ()))


def examine(start: Start, limit: float) -> Examined:
    """Examine one server.

    Args:
        start: its command and variables.
        limit: seconds after which the examination is given up.
    """
    program = [sys.executable, "-m", "mcpfactory", "validate", "--command", shlex.join(start.command), "--json"]
    environ = [word for one in start.environ for word in ("--env", one)]
    began = time.monotonic()
    process = subprocess.Popen(
        [*program, *environ, "--timeout", str(max(1, limit - 20))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Examined(-1, round(time.monotonic() - began, 1), crash=f"not over after {limit:.0f} s")
    seconds = round(time.monotonic() - began, 1)
    try:
        return Examined(process.returncode, seconds, json.loads(out))
    except ValueError:
        told = err.decode("utf-8", "replace").strip()[-300:]
        return Examined(process.returncode, seconds, crash=f"exit {process.returncode}: {told}")


@contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile: each takes all of one core that it can get."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def kept(server: Server, load: int) -> Examined | None:
    """What came of this row of the table with this code under this load, if it was examined before."""
    try:
        return Examined(**json.loads(_file(server, load).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def keep(server: Server, load: int, examined: Examined) -> None:
    """Keep what came of a server."""
    file = _file(server, load)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".new")
    aside.write_text(json.dumps(asdict(examined)), encoding="utf-8")
    aside.replace(file)


def _file(server: Server, load: int) -> Path:
    row = hashlib.sha256(repr(server).encode()).hexdigest()[:16]
    return home() / "public-servers" / code_digest()[:16] / f"{server.name}-{row}-{load}.json"
