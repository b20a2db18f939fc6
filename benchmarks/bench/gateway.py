"""Workloads of a gateway: twenty one-tool servers behind one endpoint, against direct connections to the same servers."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import stdio
from benchmarks.bench.messages import Pipe, call
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup

COUNT = 20
ONE_TOOL = Path(__file__).resolve().parent / "peers/servers/ours.py"
Note = Callable[[str, str, float], None]


def measure(note: Note, ours: str, direct: str, floor: str, *, count: int = COUNT, calls: int = 4000) -> None:
    """Notes start, first call, memory and calls a second, of a gateway to `count` servers and of direct connections.

    `floor` is a direct connection that passes through two processes that do nothing but copy: as many wake-ups as a gateway.
    """
    with _servers(count) as root:
        serve = [sys.executable, "-m", "mcpfactory", "serve", "--all", "--workspace", str(root)]
        _listed(serve).close()  # the first gateway asks every server once what it offers, and keeps it
        begin = time.perf_counter()
        pipe = _listed(serve)
        note("gate-start", ours, (time.perf_counter() - begin) * 1000)
        note("gate-asleep", ours, pipe.resident() / 1024)
        begin = time.perf_counter()
        _called(pipe, "s0_add", 1)
        note("gate-first", ours, (time.perf_counter() - begin) * 1000)
        for number in range(count):
            _called(pipe, f"s{number}_add", 2 + number)
        note("gate-awake", ours, pipe.resident() / 1024)
        pipe.close()
        straight = {"PYTHONPATH": str(root / "servers/s0/src")}
        command = [sys.executable, "-m", "s0"]
        begin = time.perf_counter()
        pipes = [_listed(command, straight) for _ in range(count)]
        note("gate-start", direct, (time.perf_counter() - begin) * 1000)
        note("gate-awake", direct, sum(pipe.resident() for pipe in pipes) / 1024)
        for pipe in pipes:
            pipe.close()
        between = ["sh", "-c", f"cat | {shlex.join(command)} | cat"]
        for who, way, tool in ((ours, serve, "s0_add"), (direct, command, "add"), (floor, between, "add")):
            environ = {} if who == ours else straight
            for one_core in (True, False):
                rate = stdio.one_at_a_time(way, calls, tool=tool, environ=environ, one_core=one_core)[0]
                note("gate-serial-core" if one_core else "gate-serial", who, rate)
            note("gate-flight", who, stdio.in_flight(way, 5 * calls, before=calls // 10, tool=tool, environ=environ))


@contextmanager
def _servers(count: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gateway-") as folder:
        root = apply_setup(plan_workspace_setup(Path(folder)), git=False).root
        for number in range(count):
            name = f"s{number}"
            package = root / "servers" / name / "src" / name
            package.mkdir(parents=True)
            (root / "servers" / name / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "{name}"\n')
            (package / "__init__.py").write_text("")
            shutil.copy(ONE_TOOL, package / "__main__.py")
        yield root


def _listed(command: list[str], environ: dict[str, str] | None = None) -> Pipe:
    """A connection over which the tools were listed."""
    pipe = Pipe(command, environ={**os.environ, **(environ or {})})
    pipe.handshake()
    pipe.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
    found: Any = pipe.answer("list")
    assert found["result"]["tools"], found
    return pipe


def _called(pipe: Pipe, tool: str, number: int) -> None:
    pipe.send(call(number, tool, stdio.ADD))
    answer = pipe.answer(number)
    assert answer["result"]["content"][0]["text"] == "3", answer
