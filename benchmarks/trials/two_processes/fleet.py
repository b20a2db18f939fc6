"""Processes of the trial's server behind a proxy that gives each connection to the next one; killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_LEDGER: Final = "TRIAL_LEDGER"
_PATIENCE: Final = 60.0  # seconds for the start of a process


class Fleet:
    """So many processes, and a port in front of them.

    Args:
        folder: for the ledger and what the processes print.
        store: the address of the store that they share.
        count: how many.

    Attributes:
        ledger: where handlers write what they did.
        port: the proxy's.
        ports: the processes' own.
        kills: processes killed so far.
    """

    def __init__(self, folder: Path, store: str, count: int = 2) -> None:
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.port = 0
        self.kills = 0
        self._log = folder / "stderr"
        self._store = store
        self.ports = _free_ports(count)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._next = 0
        self._proxy: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where clients call."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def __aenter__(self) -> Fleet:
        """Start everything."""
        self._processes = [self._start(number) for number in range(len(self.ports))]
        for number in range(len(self.ports)):
            await self._listens(number)
        self._proxy = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._proxy.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """End everything."""
        if self._proxy is not None:
            self._proxy.close()
        for process in self._processes:
            process.kill()
            process.wait()

    async def kill(self, number: int) -> None:
        """Kill (-9) a process and start it again; returns when it listens."""
        self._processes[number].send_signal(signal.SIGKILL)
        self._processes[number].wait()
        self.kills += 1
        self._processes[number] = self._start(number)
        await self._listens(number)

    def alive(self, pid: int) -> bool:
        """Whether a process of the fleet was not killed."""
        return any(process.pid == pid for process in self._processes)

    def told(self) -> str:
        """What the processes printed."""
        return self._log.read_text("utf-8", "replace")

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        server = [sys.executable, "-m", "benchmarks.trials.two_processes.server"]
        options = ["--http", "--port", str(self.ports[number]), "--store", self._store]
        with self._log.open("ab") as log:
            return subprocess.Popen([*server, *options], stderr=log, env={**os.environ, _LEDGER: str(self.ledger)})

    async def _listens(self, number: int) -> None:
        async with asyncio.timeout(_PATIENCE):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.ports[number])
                    writer.close()
                    return
                if self._processes[number].poll() is not None:
                    raise RuntimeError(f"the server did not start: {self.told()[-2000:]}")
                await asyncio.sleep(0.02)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Give a connection to the next process that takes it, whoever the client is."""
        self._next = first = (self._next + 1) % len(self.ports)
        for port in (*self.ports[first:], *self.ports[:first]):
            with suppress(OSError):
                answers, asking = await asyncio.open_connection("127.0.0.1", port)
                ways = [asyncio.ensure_future(_pump(reader, asking)), asyncio.ensure_future(_pump(answers, writer))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                asking.close()
                break
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
