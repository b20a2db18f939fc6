"""Servers at the other end of byte streams: a child process (basic/transports, stdio), or one in the same process."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from mcpfactory_runtime.client.channel import ClientChannel, ConnectionLostError, ProtocolError, Receiver
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.jsonrpc import LineReader, decode, encode

_STDERR_KEPT: Final = 256 * 1024  # bytes; the latest
_LIMIT: Final = 64 * 1024  # bytes of stderr that wait to be read


class _LineChannel(ClientChannel):
    """One JSON text per line (basic/transports, stdio)."""

    _pump_task: asyncio.Task[None] | None = None
    _receiver: Receiver
    _lines: LineReader

    @abstractmethod
    async def _read(self) -> bytes:
        """Return the next bytes; b"" at the end."""

    @abstractmethod
    async def _write(self, data: bytes) -> None:
        """Write all of it. Raises ConnectionLostError."""

    async def _ended(self) -> Exception:
        """Return why the server's output ended."""
        return ConnectionLostError("the server closed its output")

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Send a message as one line."""
        await self._write(encode(message) + b"\n")

    async def send_raw(self, data: bytes) -> None:
        """Send bytes as one line."""
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
            self._take(data)
        rest = self._lines.rest()
        if rest:
            _deliver(rest, self._receiver)
        self._receiver.lost(await self._ended())

    def _take(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            _deliver(line, self._receiver)


def _deliver(line: Any, receiver: Receiver) -> None:
    """Deliver a message; a line that is no JSON as text: stdout may carry nothing but messages, and checks want to see it."""
    if not isinstance(line, bytes):
        receiver.lost(ProtocolError("the server sent a message that is too long"))
        return
    try:
        message = decode(line)
    except McpError:
        message = line.decode("utf-8", "replace")
    receiver.received(message)


class ByteStream(Protocol):
    """One end of a connection in memory."""

    async def send(self, data: bytes) -> None:
        """Give bytes to the other end."""

    async def receive(self) -> bytes:
        """Return the next bytes from the other end; b"" when it closed."""

    async def aclose(self) -> None:
        """Tell the other end that nothing more comes."""


class MemoryChannel(_LineChannel):
    """Messages as lines over a `ByteStream`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._deliver_to(receiver)
        self._start()

    async def aclose(self) -> None:
        """Close our end."""
        await self._stream.aclose()
        await self._stop()

    async def _read(self) -> bytes:
        return await self._stream.receive()

    async def _write(self, data: bytes) -> None:
        await self._stream.send(data)


class StdioChannel(_LineChannel):
    """A channel that starts the command and communicates over its pipes.

    Args:
        command: program and arguments; no shell.
        env: variables added to this process's environment.
        cwd: working directory of the process.
        grace: seconds for the process to exit after its input closes, and again after it is asked to terminate.
        inherit: True if the process inherits this process's environment; otherwise it gets only `env`.
        start_new_session: True if the process leads its own system session (setsid), which shields it from input at
            our terminal: Ctrl-C ends us, and we end the process.
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
        self._held: list[bytes] | None = None  # messages sent in this event loop iteration

    @property
    def returncode(self) -> int | None:
        """Return the process's exit code, or None if it is still running."""
        return self._process.returncode if self._process else None

    @property
    def diagnostics(self) -> str:
        """The latest of what the process wrote to stderr."""
        return self._stderr.decode("utf-8", "replace")

    async def open(self, receiver: Receiver) -> None:
        """Start the process."""
        pipe, loop = asyncio.subprocess.PIPE, asyncio.get_running_loop()
        self._deliver_to(receiver)
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: _ProcessStreams(self._take, loop),
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
        self._process = asyncio.subprocess.Process(transport, protocol, loop)
        output = transport.get_pipe_transport(1)
        if output is not None and not output.is_closing():
            output.set_protocol(_Output(self._take, output.get_protocol()))
        self._stderr_task = asyncio.create_task(self._read_stderr(self._process))
        self._start()

    async def aclose(self) -> None:
        """End its input; if it stays, terminate it; if it still stays, kill it (basic/lifecycle, Shutdown)."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):
            self._flush()
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
                await asyncio.wait_for(self._stderr_task, self._grace)  # its last words

    async def _read(self) -> bytes:
        """Wait for the end of the output: what comes before it was delivered as it came."""
        assert self._process is not None
        assert self._process.stdout is not None
        return await self._process.stdout.read()

    async def _write(self, data: bytes) -> None:
        """Write the first message of a round of the event loop at once, and the others of that round together after it."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._put(data)
            await self._process.stdin.drain()
        except (OSError, RuntimeError):
            raise await self._ended() from None

    def _put(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        if self._held is None:
            self._process.stdin.write(data)
            self._held = []
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._held.append(data)

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held and self._process is not None and self._process.stdin is not None:
            with suppress(OSError, RuntimeError):  # the server is gone, which the end of its output tells
                self._process.stdin.write(b"".join(held))

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
        while data := await process.stderr.read(65536):
            self._stderr += data
            del self._stderr[:-_STDERR_KEPT]


class _Output(asyncio.Protocol):
    """A process's output, delivered in the event loop iteration that reads it; asyncio's own protocol needs one more.

    Args:
        take: called with bytes.
        own: asyncio's protocol, which is notified of the end.
    """

    def __init__(self, take: Callable[[bytes], None], own: asyncio.BaseProtocol) -> None:
        self._take, self._own = take, own

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._own.connection_lost(exc)


class _ProcessStreams(asyncio.subprocess.SubprocessStreamProtocol):
    """The streams of a process, whose output is taken as it comes: a `StreamReader` would be another round of the event loop.

    Args:
        take: called with bytes of its output.
        loop: the running one.
    """

    def __init__(self, take: Callable[[bytes], None], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(_LIMIT, loop)
        self._take = take

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 1 and isinstance(data, bytes):
            self._take(data)
        else:
            super().pipe_data_received(fd, data)
