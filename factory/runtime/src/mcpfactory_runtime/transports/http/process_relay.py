"""Relay of requests between processes that share a store.

Messages go through the processes' mailboxes in the store, so the processes need no addresses. A process acknowledges a
request before executing the request. If the process dies before the acknowledgment, the sender serves the request, so
that no request is executed twice.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.auth.tokens import principal_from_dict, principal_to_dict
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.server.threads import in_background
from mcpfactory_runtime.storage.base import ProcessRegistry, StoreError
from mcpfactory_runtime.storage.events import SessionJournal, SharedSessions
from mcpfactory_runtime.transports.http.asgi import (
    Receive,
    Scope,
    Send,
    is_event_stream,
    read_body,
    send_rejection,
    wait_for_disconnect,
)
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.storage.base import SharedStore

App = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""Application that also takes the principal of the request."""

log = logging.getLogger(__name__)

_KEPT: Final = 60.0  # seconds that a mailbox is kept after its last message
_ACCEPT_TIMEOUT: Final = 30.0  # maximum seconds until a live process acknowledges a request
MAX_POLL_SECONDS: Final = 5.0  # maximum seconds that one read of a mailbox waits
_RETRY_DELAY: Final = 0.25  # seconds between two attempts to use the store after an error
_MAX_UNREAD: Final = 1 << 20  # maximum bytes of a response that the reader has not acknowledged
_ACK: Final = 1 << 18  # received bytes after which the reader sends an acknowledgment


class _Incoming:
    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.gone = asyncio.Event()
        self.unread = 0
        self.read = asyncio.Event()

    def lose(self) -> None:
        self.gone.set()
        self.read.set()


class _Outgoing:
    """A request that another process serves. `None` in `frames` means that the process died or failed."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.frames: asyncio.Queue[tuple[Json, bytes] | None] = asyncio.Queue()

    def lose(self) -> None:
        self.frames.put_nowait(None)


class ProcessRelay:
    """Forwards requests to other processes that share the store, and serves their requests, in the event loop."""

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
        """Serve the requests of other processes, and notify other processes of changes."""
        self._app, self._server, self._ending = app, server, False
        await self._processes.join()
        loop = asyncio.get_running_loop()
        self._loops = [loop.create_task(self._read()), loop.create_task(self._watch())]
        server.hub.add(self)

    def begin_shutdown(self) -> None:
        """Stop acknowledging requests. The senders serve unacknowledged requests after the end of this process."""
        self._ending = True

    async def aclose(self, seconds: float) -> None:
        """Wait at most `seconds` for requests of other processes, and then close."""
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

    # -- requests that other processes serve ---------------------------------------------------------------------

    async def forward(
        self, session_id: str, principal: str, scope: Scope, receive: Receive, send: Send
    ) -> Receive | None:
        """Forward a request to the process that has the session. Return None if that process answered the request.

        The other process receives the principal, but not the access token.

        Otherwise, return a `receive` that yields the body again, so that this process can serve the request.
        """
        try:
            owner = await self._owner(session_id)
            if owner is None:
                return receive
            assert self._server is not None
            body = await read_body(receive, self._server.max_message_size) if scope["method"] == "POST" else b""
            if body is None:
                await send_rejection(send, Rejection(413, None, f"Larger than {self._server.max_message_size} bytes\n"))
                return None
            while owner is not None:
                if await self._forward(owner, _head(scope, principal), body, receive, send):
                    return None
                owner = await self._owner(session_id)
        except StoreError as error:
            log.error("the owner of a session cannot be determined: %s", error)
            text = "The process of this session cannot be determined. hint: try again later\n"
            await send_rejection(send, Rejection(503, None, text, {"retry-after": "5"}))
            return None
        return _received(body, receive)

    async def _owner(self, session_id: str) -> str | None:
        """Return the other live process that owns a session, if any."""
        journal = SessionJournal(self._sessions, session_id)
        owner = await journal.claim()
        if owner is None:  # an HTTP+SSE session has no journal, but its ID begins with the label of the process
            label, dot, _ = session_id.partition(".")
            known = dot and label != self._processes.id and not await journal.exists()
            owner = label if known and await self._processes.alive(label) else None
        return owner

    async def _forward(self, owner: str, head: Json, body: bytes, receive: Receive, send: Send) -> bool:
        """Forward a request, or return False if `owner` died before it acknowledged the request."""
        name = secrets.token_hex(8)
        exchange = self._outgoing[name] = _Outgoing(owner)
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        answering = asyncio.ensure_future(self._answer(exchange, name, head, body, send))
        try:
            await asyncio.wait((leaving, answering), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            await self._send_with_retries(owner, "gone", name)
            return True
        finally:
            del self._outgoing[name]
            leaving.cancel()
            answering.cancel()
            await asyncio.wait((leaving, answering))

    async def _answer(self, exchange: _Outgoing, name: str, head: Json, body: bytes, send: Send) -> bool:
        try:
            await self._send_message(exchange.peer, "request", name, {"from": self._processes.id, **head}, body)
        except StoreError as error:  # the other process may have received the request nevertheless
            log.error("a request could not be sent to another process: %s", error)
            await send_rejection(send, _unavailable("cannot be reached now"))
            return True
        try:
            async with asyncio.timeout(_ACCEPT_TIMEOUT):
                taken = await exchange.frames.get()
        except TimeoutError:
            await send_rejection(send, _unavailable("does not answer"))
            return True
        if taken is None:
            return False
        # The start of an event stream is sent at once. The start of any other response is sent with its body.
        start: Any = None
        started, read = False, 0
        while (frame := await exchange.frames.get()) is not None:
            event, data = frame
            if event["kind"] == "start":
                headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in event["headers"]]
                start = {"type": "http.response.start", "status": event["status"], "headers": headers}
                if is_event_stream(headers):
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
                await self._send_with_retries(exchange.peer, "read", name, {"bytes": read})
                read = 0
        if not started:  # an error can be sent only before the start of the response
            await send_rejection(send, _unavailable("has ended, or failed"))
        return True

    def publish(self, method: str, params: Json) -> None:
        """Notify the other processes of a change, because their clients may have subscribed to it."""
        if not self._relaying:
            in_background(self._tasks, self._publish(method, params))

    async def _publish(self, method: str, params: Json) -> None:
        try:
            for process in await self._processes.others():
                await self._send_message(process, "change", "", {"method": method, "params": params})
        except StoreError as error:
            log.warning("other processes were not notified of %s: %s", method, error)

    async def _send_message(
        self, process: str, kind: str, name: str, more: Json | None = None, data: bytes = b""
    ) -> None:
        head = jsonrpc.encode({"kind": kind, "exchange": name, **(more or {})})
        await self._store.send(process, head + b"\n" + data, seconds=_KEPT)

    async def _send_with_retries(self, process: str, kind: str, name: str, more: Json | None = None) -> None:
        """Send a message for which the other process waits."""
        while True:
            with suppress(StoreError):
                return await self._send_message(process, kind, name, more)
            if self._ending:  # the other process notices the end of this process
                return None
            await asyncio.sleep(_RETRY_DELAY)

    # -- requests of other processes -----------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                for data in await self._store.receive(self._processes.id, MAX_POLL_SECONDS):
                    self._receive(data)
            except StoreError as error:
                log.warning("messages from other processes cannot be read: %s", error)
                await asyncio.sleep(_RETRY_DELAY)

    def _receive(self, message: bytes) -> None:
        """Handle a message, or log an invalid message, for example from another version."""
        head, _, data = message.partition(b"\n")
        try:
            self._dispatch(jsonrpc.decode(head), data)
        except Exception:
            log.exception("a message of another process was skipped")

    def _dispatch(self, head: Json, data: bytes) -> None:
        kind, name = head["kind"], head["exchange"]
        if kind == "change":
            assert self._server is not None
            self._relaying = True  # `publish` must not send the change back
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
                await self._send_message(exchange.peer, "start", name, {"status": event["status"], "headers": headers})
                return
            data = event.get("body", b"")
            exchange.unread += len(data)
            await self._send_message(exchange.peer, "part" if event.get("more_body") else "end", name, data=data)
            while exchange.unread > _MAX_UNREAD and not exchange.gone.is_set():
                exchange.read.clear()
                await exchange.read.wait()

        try:
            await self._send_message(exchange.peer, "taken", name)  # acknowledge the request before its execution
            assert self._app is not None
            await self._app(scope, _received(body, gone), send, principal_from_dict(head["principal"]))
        except Exception as error:
            if isinstance(error, StoreError):
                log.warning("another process did not get a response: %s", error)
            else:
                log.exception("a request of another process failed")
            await self._send_with_retries(exchange.peer, "failed", name)
        finally:
            del self._incoming[name]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._processes.lease / 4)
            exchanges: list[_Incoming | _Outgoing] = [*self._incoming.values(), *self._outgoing.values()]
            for peer in {exchange.peer for exchange in exchanges}:
                try:
                    dead = not await self._processes.alive(peer)
                except StoreError:
                    continue  # the state of the other process is unknown until the next round
                for exchange in exchanges:
                    if dead and exchange.peer == peer:
                        exchange.lose()


def _head(scope: Scope, principal: str) -> Json:
    headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
    return {
        "principal": principal_to_dict(principal),
        "method": scope["method"],
        "path": scope["path"],
        "root_path": scope.get("root_path", ""),
        "query": scope.get("query_string", b"").decode("latin-1"),
        "headers": [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers],
        "client": scope.get("client"),
    }


def _received(body: bytes, then: Receive) -> Receive:
    given = False

    async def receive() -> Any:
        nonlocal given
        if given:
            return await then()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _unavailable(why: str) -> Rejection:
    text = f"The process of this session {why}. hint: the request may have been executed\n"
    return Rejection(503, None, text, {"retry-after": "1"})


class MultiProcessSessions:
    """Sessions and relay of one process in a shared store."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._processes = ProcessRegistry(store)
        self.sessions = SharedSessions(store, self._processes)
        self.relay = ProcessRelay(self.sessions)

    @asynccontextmanager
    async def join_shared_store(self, server: ServerInterface) -> AsyncIterator[None]:
        """Open the store and register this process. The server then keeps its tasks and used states in the store."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._store.aclose)
            await self._store.open()
            stack.push_async_callback(self._processes.leave)
            stack.push_async_callback(self.sessions.aclose)
            await self.sessions.open()
            server.extensions.share(self._store, self._processes)
            await server.sealer.share(self._store)
            yield
