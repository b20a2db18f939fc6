"""Worker processes behind one port: a request that belongs to another worker's session is forwarded to it.

A session's id begins with the number of the worker that has it. Whoever accepts a request for another worker's session
passes it on over that worker's Unix socket, and its response back; change notifications are passed on to all. What travels
is frames: a letter, a length, and so many bytes.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.transports.http.wire import Receive, Scope, Send, is_stream, reject

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host

__all__ = ["WorkerRelay"]

Json = dict[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("mcpfactory_runtime")

_OWNER: Final = re.compile(r"(\d{1,4})\.")

# letters of frames
_REQUEST: Final = b"R"  # method, path and headers of a request, as JSON
_CHANGE: Final = b"C"  # a change notification, as JSON
_START: Final = b"S"  # status and headers of a response, as JSON
_PART: Final = b"P"  # of a body
_END: Final = b"E"  # of a body: its last part


class WorkerRelay:
    """What one worker knows of the others. Event loop only.

    Args:
        number: this worker's.
        listener: its Unix socket.
        paths: the Unix sockets of all workers, by number.
    """

    def __init__(self, number: int, listener: socket.socket, paths: Sequence[str]) -> None:
        self._number = number
        self._listener = listener
        self._paths = paths
        self._server: asyncio.Server | None = None
        self._relaying = False
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def label(self) -> str:
        """What the ids of this worker's sessions begin with."""
        return f"{self._number}."

    def owner(self, session_id: str) -> int | None:
        """Return the other worker that has a session; None when it is not another's."""
        found = _OWNER.match(session_id)
        number = int(found[1]) if found else self._number
        return number if number != self._number and number < len(self._paths) else None

    async def start(self, app: App, server: Host) -> None:
        """Serve what the others forward, and notify them of changes."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            try:
                await self._accept(reader, writer, app, server)
            except (OSError, EOFError):
                pass  # the other worker has gone, and with it who asked
            finally:
                writer.close()

        self._server = await asyncio.start_unix_server(accept, sock=self._listener)
        server.hub.add(self)

    def begin_shutdown(self) -> None:
        """Do nothing: workers of one port end together."""

    async def aclose(self, seconds: float) -> None:
        """Let what was forwarded end, for so many seconds at most."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        for task in list(self._tasks):
            task.cancel()

    # -- from here to another worker -----------------------------------------------------------------------------

    async def forward(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Let the worker that has a session serve a request; None when it did, else what the request is received from here."""
        owner = self.owner(session_id)
        if owner is None:
            return receive
        await self._forward(owner, scope, receive, send)
        return None

    async def _forward(self, owner: int, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(self._paths[owner])
        except OSError:
            await _unavailable(send)
            return
        asking = asyncio.ensure_future(_send_request(scope, receive, writer))
        answering = asyncio.ensure_future(_relay_response(reader, send))
        try:
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
        finally:
            writer.close()
            for task in (asking, answering):
                task.cancel()
            await asyncio.wait((asking, answering))

    def publish(self, method: str, params: Json) -> None:
        """Forward a change to the other workers: some of their clients may listen for it."""
        if self._relaying:
            return
        for number, path in enumerate(self._paths):
            if number != self._number:
                task = asyncio.ensure_future(_notify_worker(path, {"method": method, "params": params}))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    # -- from another worker to here -----------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, app: App, server: Host) -> None:
        kind, data = await _read(reader)
        message = jsonrpc.decode(data)
        if kind == _CHANGE:
            self._relaying = True  # not back to where it came from
            try:
                server.hub.publish(message["method"], message["params"])
            finally:
                self._relaying = False
            return
        head = {name: message[name] for name in ("method", "path", "root_path")}
        scope = {"type": "http", **head, "query_string": message["query"].encode("latin-1")}
        scope["headers"] = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in message["headers"]]
        whole = False

        async def receive() -> Json:
            nonlocal whole
            if whole:
                await reader.read(1)  # nothing comes but the end
                return {"type": "http.disconnect"}
            try:
                kind, body = await _read(reader)
            except EOFError:
                return {"type": "http.disconnect"}
            whole = kind == _END
            return {"type": "http.request", "body": body, "more_body": not whole}

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event["headers"]]
                _write(writer, _START, jsonrpc.encode({"status": event["status"], "headers": headers}))
                return
            _write(writer, _PART if event.get("more_body") else _END, event.get("body", b""))
            await writer.drain()

        await app(scope, receive, send)
        # A Unix socket that is closed before everything was read takes back what was written to it.
        while await reader.read(1 << 16):
            pass


async def _send_request(scope: Scope, receive: Receive, writer: asyncio.StreamWriter) -> None:
    """Send a request; returns when who asked has gone."""
    head = {
        "method": scope["method"],
        "path": scope["path"],
        "root_path": scope.get("root_path", ""),
        "query": scope.get("query_string", b"").decode("latin-1"),
        "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
    }
    _write(writer, _REQUEST, jsonrpc.encode(head))
    while (message := await receive())["type"] == "http.request":
        with suppress(OSError):
            _write(writer, _PART if message.get("more_body") else _END, message.get("body", b""))
            await writer.drain()


async def _relay_response(reader: asyncio.StreamReader, send: Send) -> None:
    start: Any = (
        None  # that of a stream is sent at once; after one without a body clients would send their next request
    )
    started = False
    try:
        kind = _PART
        while kind != _END:
            kind, data = await _read(reader)
            if kind == _START:
                head = jsonrpc.decode(data)
                headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
                start = {"type": "http.response.start", "status": head["status"], "headers": headers}
                if is_stream(headers):
                    await send(start)
                    started = True
                continue
            if not started:
                await send(start)
                started = True
            await send({"type": "http.response.body", "body": data, "more_body": kind != _END})
    except (OSError, EOFError):
        if not started:  # otherwise the response breaks off, which the client sees
            await _unavailable(send)


async def _unavailable(send: Send) -> None:
    text = "The worker that has this session has ended. hint: try again; a new session may be needed\n"
    await reject(send, Rejection(503, None, text, {"retry-after": "1"}))


async def _notify_worker(path: str, change: Json) -> None:
    try:
        _, writer = await asyncio.open_unix_connection(path)
        _write(writer, _CHANGE, jsonrpc.encode(change))
        await writer.drain()
        writer.close()
    except OSError as error:
        log.warning("a worker was not told of %s: %s", change["method"], error)


def _write(writer: asyncio.StreamWriter, kind: bytes, data: bytes) -> None:
    writer.write(kind + len(data).to_bytes(8, "big") + data)


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return one frame.

    Raises:
        IncompleteReadError: an EOFError, at the end.
    """
    head = await reader.readexactly(9)
    return head[:1], await reader.readexactly(int.from_bytes(head[1:], "big"))
