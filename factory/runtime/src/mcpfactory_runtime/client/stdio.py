"""Client channels over byte streams, to a child process (basic/transports, stdio) or to a server in this process."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from mcpfactory_runtime.client.channel import ClientChannel, ConnectionLostError, ProtocolError, Receiver
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.jsonrpc import LineReader, decode, encode

_STDERR_KEPT: Final = 256 * 1024  # maximum bytes of stderr to keep; older bytes are dropped
_READ: Final = 64 * 1024  # maximum bytes per read


class _LineChannel(ClientChannel):
    """Channel with one JSON text per line (basic/transports, stdio)."""

    _pump_task: asyncio.Task[None] | None = None
    _receiver: Receiver
    _lines: LineReader

    @abstractmethod
    async def _read(self) -> bytes:
        """Return the next bytes, or b"" at the end."""

    @abstractmethod
    async def _write(self, data: bytes) -> None:
        """Write all bytes, or raise ConnectionLostError."""

    async def _ended(self) -> Exception:
        return ConnectionLostError("the server closed its output")

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        await self._write(encode(message) + b"\n")

    async def send_raw(self, data: bytes) -> None:
        await self._write(data + b"\n")

    def _deliver_to(self, receiver: Receiver) -> None:
        self._receiver, self._lines = receiver, LineReader()

    def _start(self) -> None:
        self._pump_task = asyncio.create_task(self._pump())

    async def _stop(self) -> None:
        if self._pump_task is not None:
            self._pump_task.cancel()
            await asyncio.gather(self._pump_task, return_exceptions=True)

    async def _pump(self) -> None:
        while data := await self._read():
            for line in self._lines.feed(data):
                _deliver(line, self._receiver)
        rest = self._lines.rest()
        if rest:
            _deliver(rest, self._receiver)
        self._receiver.lost(await self._ended())


def _deliver(line: Any, receiver: Receiver) -> None:
    if not isinstance(line, bytes):
        receiver.lost(ProtocolError("the server sent a message that is too long"))
        return
    try:
        message = decode(line)
    except McpError:
        message = line.decode("utf-8", "replace")
    receiver.received(message)


class MemoryConnectionEnd(Protocol):
    """One end of a connection in memory."""

    async def send(self, data: bytes) -> None:
        """Send bytes to the other end."""

    async def receive(self) -> bytes:
        """Return the next bytes from the other end, or b"" after the other end has closed."""

    async def aclose(self) -> None:
        """Close this end, so that the other end receives b""."""


class MemoryChannel(_LineChannel):
    """Channel over a `MemoryConnectionEnd`."""

    def __init__(self, stream: MemoryConnectionEnd) -> None:
        self._stream = stream

    async def open(self, receiver: Receiver) -> None:
        """Start to read the stream."""
        self._deliver_to(receiver)
        self._start()

    async def aclose(self) -> None:
        """Close this end."""
        await self._stream.aclose()
        await self._stop()

    async def _read(self) -> bytes:
        return await self._stream.receive()

    async def _write(self, data: bytes) -> None:
        await self._stream.send(data)


class StdioChannel(_LineChannel):
    """Channel to a child process over its pipes.

    The process has `grace` seconds to exit after its input is closed, and again after SIGTERM.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        grace: float = 3.0,
        *,
        inherit: bool = True,
        start_new_session: bool = False,
    ) -> None:
        self._command = [os.fspath(part) for part in command]
        self._env = {**(os.environ if inherit else {}), **(env or {})}
        self._cwd = Path(cwd) if cwd is not None else None
        self._grace = grace
        self._new_session = start_new_session
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = bytearray()
        self._stderr_task: asyncio.Task[None] | None = None

    @property
    def returncode(self) -> int | None:
        """Return the exit code of the process, or None if the process is still running."""
        return self._process.returncode if self._process else None

    @property
    def diagnostics(self) -> str:
        """Return the end of the process's stderr output."""
        return self._stderr.decode("utf-8", "replace")

    async def open(self, receiver: Receiver) -> None:
        """Start the process."""
        pipe = asyncio.subprocess.PIPE
        self._deliver_to(receiver)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=self._env,
                cwd=self._cwd,
                start_new_session=self._new_session,
            )
        except OSError as error:
            raise ConnectionLostError(
                f"cannot start {self._command[0]!r}: {error.strerror}\nhint: start the command with a program on PATH"
            ) from None
        self._stderr_task = asyncio.create_task(self._read_stderr(self._process))
        self._start()

    async def aclose(self) -> None:
        """Close the process's input, and terminate or kill a process that does not exit (basic/lifecycle, Shutdown)."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
            await process.stdin.wait_closed()
        for end in (None, process.terminate, process.kill):
            if end is not None:
                with suppress(ProcessLookupError):
                    end()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._grace)
                break
        await self._stop()
        if self._stderr_task is not None:
            with suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._stderr_task, self._grace)  # read the rest of stderr

    async def _read(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        return await self._process.stdout.read(_READ)

    async def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except (OSError, RuntimeError):
            raise await self._ended() from None

    async def _ended(self) -> ConnectionLostError:
        assert self._process is not None
        code: int | None = None
        with suppress(TimeoutError):
            code = await asyncio.wait_for(self._process.wait(), self._grace)
            if self._stderr_task is not None:
                await asyncio.wait_for(asyncio.shield(self._stderr_task), self._grace)
        ended = "the server closed its output" if code is None else f"the server ended with exit code {code}"
        last = "\n".join(self.diagnostics.strip().splitlines()[-8:])
        return ConnectionLostError(ended + (f"; it last wrote to stderr:\n{last}" if last else ""))

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(_READ):
            self._stderr += data
            del self._stderr[:-_STDERR_KEPT]
