"""Relay of requests between processes that share a store.

All messages travel through the mailboxes of the processes, so processes do not need each other's addresses. A
process takes a request before it acts on it. If it dies before that, the process that holds the request serves
it, so no request is executed twice.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.storage.base import ProcessRegistry, StoreError
from mcpfactory_runtime.storage.events import Journal, SharedSessions
from mcpfactory_runtime.transports.http.asgi import Receive, Scope, Send, is_stream, read_body, reject
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.base import SharedStore

App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)

_KEPT: Final = 60.0  # seconds that a mailbox outlives its last message
_TAKEN_WITHIN: Final = 30.0  # seconds in which a living process takes a request
MAX_POLL_SECONDS: Final = 5.0  # seconds that one read of a mailbox waits for a message
_AGAIN: Final = 0.25  # seconds until the mailbox is read again after an error of the store
_UNREAD: Final = 1 << 20  # bytes of a response that are under way at once
_ACK: Final = 1 << 18  # bytes after which the reader says that it has read them


class _Incoming:
    """A request of another process that is served here."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.gone = asyncio.Event()
        self.unread = 0
        self.read = asyncio.Event()

    def lose(self) -> None:
        """Handle the loss of the requesting process."""
        self.gone.set()
        self.read.set()


class _Outgoing:
    """A request that another process serves; `None` in its frames is the end of that process, or of its attempt."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.frames: asyncio.Queue[tuple[Json, bytes] | None] = asyncio.Queue()

    def lose(self) -> None:
        """Handle the death or failure of the serving process."""
        self.frames.put_nowait(None)


class StoreRelay:
    """One process's view of the others that share its store. Event loop only.

    Args:
        sessions: the sessions in the store, and the live processes.
    """

    def __init__(self, sessions: SharedSessions) -> None:
        self._processes = sessions.processes
        self._store = sessions.store
        self._sessions = sessions
        self._relaying = False
        self._ending = False
        self._incoming: dict[str, _Incoming] = {}
        self._outgoing: dict[str, _Outgoing] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._app: App | None = None
        self._server: ServerInterface | None = None

    @property
    def label(self) -> str:
        """Return the prefix of this process's session IDs."""
        return f"{self._processes.id}."

    async def start(self, app: App, server: ServerInterface) -> None:
        """Serve what the others forward, and notify them of changes."""
        self._app, self._server, self._ending = app, server, False
        await self._processes.join()
        loop = asyncio.get_running_loop()
        self._loops = [loop.create_task(self._read()), loop.create_task(self._watch())]
        server.hub.add(self)

    def begin_shutdown(self) -> None:
        """Take no further request: who sent it serves it when this process has ended."""
        self._ending = True

    async def aclose(self, seconds: float) -> None:
        """Wait at most `seconds` for forwarded requests to end, then close."""
        if self._server is not None:
            self._server.hub.discard(self)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        for task in (*self._tasks, *self._loops):
            task.cancel()
        for task in (*self._tasks, *self._loops):
            with suppress(asyncio.CancelledError, OSError):
                await task
        self._loops = []

    # -- from here to another process ----------------------------------------------------------------------------

    async def forward(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Let the process that has a session serve a request; None when it did, else what the request is received from here."""
        try:
            owner = await self._owner(session_id)
            if owner is None:
                return receive
            assert self._server is not None
            body = await read_body(receive, self._server.max_message_size) if scope["method"] == "POST" else b""
            if body is None:
                await reject(send, Rejection(413, None, f"Larger than {self._server.max_message_size} bytes\n"))
                return None
            while owner is not None:
                if await self._forward(owner, scope, body, receive, send):
                    return None
                owner = await self._owner(session_id)
        except StoreError as error:
            log.error("the owner of a session cannot be determined: %s", error)
            text = "It cannot be found out now who has this session. hint: try again later\n"
            await reject(send, Rejection(503, None, text, {"retry-after": "5"}))
            return None
        return _received(body, receive)

    async def _owner(self, session_id: str) -> str | None:
        """Return another living process that owns a session; None if this one owns it or it is unowned."""
        journal = Journal(self._sessions, session_id)
        owner = await journal.claim()
        if owner is None:  # perhaps a session that is a connection, of HTTP with SSE: it is its first process's
            label, dot, _ = session_id.partition(".")
            known = dot and label != self._processes.id and not await journal.exists()
            owner = label if known and await self._processes.alive(label) else None
        return owner

    async def _forward(self, owner: str, scope: Scope, body: bytes, receive: Receive, send: Send) -> bool:
        """Return True if the other process served the request, False if it ended before it accepted it."""
        name = secrets.token_hex(8)
        exchange = self._outgoing[name] = _Outgoing(owner)
        leaving = asyncio.ensure_future(_gone(receive))
        answering = asyncio.ensure_future(self._answer(exchange, name, _head(scope), body, send))
        try:
            await asyncio.wait((leaving, answering), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            await self._tell_surely(owner, "gone", name)
            return True
        finally:
            del self._outgoing[name]
            leaving.cancel()
            answering.cancel()
            await asyncio.wait((leaving, answering))

    async def _answer(self, exchange: _Outgoing, name: str, head: Json, body: bytes, send: Send) -> bool:
        try:
            await self._tell(exchange.peer, "request", name, {"from": self._processes.id, **head}, body)
        except StoreError as error:  # which may have it all the same
            log.error("a request could not be sent to another process: %s", error)
            await reject(send, _unavailable("cannot be reached now"))
            return True
        try:
            async with asyncio.timeout(_TAKEN_WITHIN):
                taken = await exchange.frames.get()
        except TimeoutError:
            await reject(send, _unavailable("does not answer"))
            return True
        if taken is None:
            return False
        # The start of a stream is sent at once, any other with the body: clients may send the next request after it.
        start: Any = None
        started, read = False, 0
        while (frame := await exchange.frames.get()) is not None:
            event, data = frame
            if event["kind"] == "start":
                headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in event["headers"]]
                start = {"type": "http.response.start", "status": event["status"], "headers": headers}
                if is_stream(headers):
                    await send(start)
                    started = True
                continue
            if not started:
                await send(start)
                started = True
            await send({"type": "http.response.body", "body": data, "more_body": event["kind"] == "part"})
            if event["kind"] == "end":
                return True
            read += len(data)
            if read >= _ACK:
                await self._tell_surely(exchange.peer, "read", name, {"bytes": read})
                read = 0
        if not started:  # otherwise the response breaks off, which the client sees
            await reject(send, _unavailable("has ended, or failed"))
        return True

    def publish(self, method: str, params: Json) -> None:
        """Forward a change to the other processes: some of their clients may listen for it."""
        if not self._relaying:
            in_background(self._tasks, self._publish(method, params))

    async def _publish(self, method: str, params: Json) -> None:
        try:
            for process in await self._processes.others():
                await self._tell(process, "change", "", {"method": method, "params": params})
        except StoreError as error:
            log.warning("other processes were not notified of %s: %s", method, error)

    async def _tell(self, process: str, kind: str, name: str, more: Json | None = None, data: bytes = b"") -> None:
        head = jsonrpc.encode({"kind": kind, "exchange": name, **(more or {})})
        await self._store.send(process, head + b"\n" + data, seconds=_KEPT)

    async def _tell_surely(self, process: str, kind: str, name: str, more: Json | None = None) -> None:
        """`_tell`, again and again while the store does not answer: without it, the other process waits for ever."""
        while True:
            with suppress(StoreError):
                return await self._tell(process, kind, name, more)
            if self._ending:  # who waits sees this process die
                return None
            await asyncio.sleep(_AGAIN)

    # -- from another process to here ----------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                for data in await self._store.receive(self._processes.id, MAX_POLL_SECONDS):
                    self._take_any(data)
            except StoreError as error:
                log.warning("messages from other processes cannot be read: %s", error)
                await asyncio.sleep(_AGAIN)

    def _take_any(self, message: bytes) -> None:
        """Do what a message says; one that cannot be read, of another version say, is left out."""
        head, _, data = message.partition(b"\n")
        try:
            self._take(jsonrpc.decode(head), data)
        except Exception:
            log.exception("a message of another process was left out")

    def _take(self, head: Json, data: bytes) -> None:
        kind, name = head["kind"], head["exchange"]
        if kind == "change":
            assert self._server is not None
            self._relaying = True  # not back to where it came from
            try:
                self._server.hub.publish(head["method"], head["params"])
            finally:
                self._relaying = False
        elif kind == "request":
            if not self._ending:
                in_background(self._tasks, self._serve(name, head, data))
        elif kind == "gone" and name in self._incoming:
            self._incoming[name].lose()
        elif kind == "read" and name in self._incoming:
            self._incoming[name].unread -= head["bytes"]
            self._incoming[name].read.set()
        elif kind == "failed" and name in self._outgoing:
            self._outgoing[name].lose()
        elif name in self._outgoing:
            self._outgoing[name].frames.put_nowait((head, data))

    async def _serve(self, name: str, head: Json, body: bytes) -> None:
        exchange = self._incoming[name] = _Incoming(head["from"])
        scope = {"type": "http", **{key: head[key] for key in ("method", "path", "root_path", "client")}}
        scope["query_string"] = head["query"].encode("latin-1")
        scope["headers"] = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in head["headers"]]

        async def gone() -> Json:
            await exchange.gone.wait()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            if exchange.gone.is_set():
                return
            if event["type"] == "http.response.start":
                headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in event["headers"]]
                await self._tell(exchange.peer, "start", name, {"status": event["status"], "headers": headers})
                return
            data = event.get("body", b"")
            exchange.unread += len(data)
            await self._tell(exchange.peer, "part" if event.get("more_body") else "end", name, data=data)
            while exchange.unread > _UNREAD and not exchange.gone.is_set():
                exchange.read.clear()
                await exchange.read.wait()

        try:
            await self._tell(exchange.peer, "taken", name)  # before anything is done with it
            assert self._app is not None
            await self._app(scope, _received(body, gone), send)
        except Exception as error:
            if isinstance(error, StoreError):
                log.warning("another process did not get a response: %s", error)
            else:
                log.exception("a request of another process failed")
            await self._tell_surely(exchange.peer, "failed", name)
        finally:
            del self._incoming[name]

    async def _watch(self) -> None:
        """Find out which of the processes that something is under way with have died."""
        while True:
            await asyncio.sleep(self._processes.lease / 4)
            exchanges: list[_Incoming | _Outgoing] = [*self._incoming.values(), *self._outgoing.values()]
            for peer in {exchange.peer for exchange in exchanges}:
                try:
                    dead = not await self._processes.alive(peer)
                except StoreError:
                    continue  # who cannot be asked for is not dead
                for exchange in exchanges:
                    if dead and exchange.peer == peer:
                        exchange.lose()


def _head(scope: Scope) -> Json:
    return {
        "method": scope["method"],
        "path": scope["path"],
        "root_path": scope.get("root_path", ""),
        "query": scope.get("query_string", b"").decode("latin-1"),
        "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
        "client": scope.get("client"),
    }


def _received(body: bytes, then: Receive) -> Receive:
    """Return a receiver that yields a body that was already read, then the other messages."""
    given = False

    async def receive() -> Any:
        nonlocal given
        if given:
            return await then()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unavailable(why: str) -> Rejection:
    text = f"The process that has this session {why}. hint: the request may have been carried out\n"
    return Rejection(503, None, text, {"retry-after": "1"})


class Sharing:
    """One process's part of a store.

    Attributes:
        sessions: keeps sessions and their events.
        relay: forwards requests for sessions that other processes have.
    """

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._processes = ProcessRegistry(store)
        self.sessions = SharedSessions(store, self._processes)
        self.relay = StoreRelay(self.sessions)

    @asynccontextmanager
    async def entered(self, server: ServerInterface) -> AsyncIterator[None]:
        """Open the store, join the others, and let the server keep its tasks and used states there.

        Raises:
            StoreError: the store cannot be used.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._store.aclose)
            await self._store.open()
            stack.push_async_callback(self._processes.leave)
            stack.push_async_callback(self.sessions.aclose)
            await self.sessions.open()
            server.extensions.share(self._store, self._processes)
            await server.sealer.share(self._store)
            yield
