"""Calls a second by 1, 2 and 4 processes that share Redis: `python -m benchmarks.trials.two_processes.throughput [SECONDS]`.

Thirty-two clients each keep a connection to one process and call a tool that does nothing: without a session, in a session that this
process has, and in one that the next process has. Clients, processes and Redis run on this machine, so its cores bound it all.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.trials.redis_server import redis_server
from benchmarks.trials.two_processes.fleet import Fleet
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY

COUNTS: Final = (1, 2, 4)
ELSEWHERE: Final = "in a session of another process"
WAYS: Final[dict[str, int | None]] = {
    "without a session": None,
    "in a session of the receiving process": 0,
    ELSEWHERE: 1,
}
"""How clients call → how many processes away their sessions are."""
_CLIENTS: Final = 32
_TOOL: Final[dict[str, Any]] = {"name": "nothing", "arguments": {}}
_META: Final = {META_VERSION: LATEST.name, META_CAPABILITIES: {}}


def _post(message: dict[str, Any], **headers: str) -> bytes:
    body = encode({"jsonrpc": "2.0", "id": 1, **message})
    fixed = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(body))}
    lines = {**fixed, "accept": "application/json, text/event-stream", **headers}
    return "".join(["POST /mcp HTTP/1.1\r\n", *(f"{k}: {v}\r\n" for k, v in lines.items()), "\r\n"]).encode() + body


class _Connection:
    """A connection to one process."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> _Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def ask(self, request: bytes) -> dict[str, str]:
        """Return the headers of the answer, which must be 200."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        if " 200 " not in head[0]:
            raise RuntimeError(head[0])
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        await self._reader.readexactly(int(headers["content-length"]))
        return {
            **headers,
            "id": next((line.split(": ", 1)[1] for line in head if line.lower().startswith("mcp-session-id")), ""),
        }


async def _client(here: int, session_at: int | None, until: float) -> int:
    """Return how many calls a client made: without a session, or in one that began at a process."""
    request = _post(
        {"method": "tools/call", "params": {**_TOOL, "_meta": _META}},
        **{"mcp-protocol-version": LATEST.name, "mcp-method": "tools/call", "mcp-name": "nothing"},
    )
    if session_at is not None:
        info = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        began = await (await _Connection(session_at).open()).ask(_post({"method": "initialize", "params": info}))
        names = {"mcp-session-id": began["id"], "mcp-protocol-version": LATEST_LEGACY.name}
        request = _post({"method": "tools/call", "params": _TOOL}, **names)
    connection, calls = await _Connection(here).open(), 0
    while time.monotonic() < until:
        await connection.ask(request)
        calls += 1
    return calls


async def _measure(address: str, count: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with Fleet(Path(folder), address, count) as fleet:
            ports, figures = fleet.ports, {}
            for how, shift in WAYS.items():
                if how == ELSEWHERE and count == 1:
                    continue
                until = time.monotonic() + seconds
                places = [
                    (ports[n % count], None if shift is None else ports[(n + shift) % count]) for n in range(_CLIENTS)
                ]
                figures[how] = sum(await asyncio.gather(*(_client(here, at, until) for here, at in places))) / seconds
            return figures


def measured(count: int, seconds: float) -> dict[str, float]:
    """Return calls a second by so many processes and a Redis of their own: way (of `WAYS`) → figure."""
    with redis_server() as address:
        return asyncio.run(_measure(address, count, seconds))
