"""Conversation over Streamable HTTP with a server at a URL, with the sessions of the handshake revisions.

`http.client` in a worker thread lets the checks control all headers and send incomplete messages. The client never
retries or reuses connections, and follows redirects only within the origin.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from mcpfactory_pipeline.checks.evidence import NotificationStream, ReplayedStream, RequestsBesideStreams, Session
from mcpfactory_pipeline.checks.exchange import CREDENTIALS, HANDSHAKES, NEEDS_CREDENTIALS, VERSION, WireExchange
from mcpfactory_pipeline.checks.transport.conversation import (
    MAX_MESSAGE,
    MessageLog,
    answer_server_request,
    canceled_ids,
    decode,
    escape_surrogates,
    is_acknowledgement,
    is_jsonrpc_answer,
)
from mcpfactory_pipeline.checks.transport.header_arguments import call_headers, header_value, is_header_text
from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.urls import RedirectTracker, redirect_of

_LINE: Final = 65_536
_RETRY: Final = 0.1  # seconds to wait before a closed stream is continued
_MAX_IDS: Final = 1_000  # maximum number of stored event IDs
_STREAM_START: Final = 0.5  # seconds; timeout of the headers of a GET stream
_UPDATES: Final = 0.5  # seconds to wait for resource updates on a stream
_GLANCE: Final = 0.1  # seconds to wait for further messages on a stream


class HttpConversation:
    """A conversation over HTTP with one URL.

    Attributes:
        schemas: tool → listed input schema, because headers repeat annotated arguments. Several conversations may share
            the mapping.
    """

    def __init__(self, url: str, purpose: str, credentials: Mapping[str, str] | None = None) -> None:
        self.session = Session(purpose)
        self._log = MessageLog(self.session)
        self._url = urlsplit(url)
        self._credentials = credentials or {}
        self._session_id = ""
        self._revision = ""
        self._redirects = RedirectTracker()
        self.schemas: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """Return the URL of the server, after redirects."""
        return urlunsplit(self._url)

    async def send_raw(
        self, text: str, message: Json, patience: float, *, wait: bool
    ) -> tuple[WireExchange, WireExchange]:
        """Send two requests, one after the other; see `Conversation.send_raw`."""
        return await self.ask(text, patience), await self.ask(message, patience)

    async def ask(self, message: Json | str, patience: float) -> WireExchange:
        """See `Conversation.ask`."""
        began = time.monotonic()
        exchange = await asyncio.to_thread(self._post, message, patience)
        if exchange.received is not None and not self.session.answered:
            self.session.answered, self.session.milliseconds = True, round(1000 * (time.monotonic() - began))
        if isinstance(message, dict) and message.get("method") == "initialize" and exchange.result is not None:
            agreed = str(exchange.result.get("protocolVersion", ""))
            self._revision = agreed if agreed in HANDSHAKES else ""  # clients send only known revisions in this header
        if exchange.method == "tools/list":
            listed = (exchange.result or {}).get("tools")
            tools = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
            self.schemas |= {str(one.get("name")): one.get("inputSchema") for one in tools}
        self.session.exchanges.append(exchange)
        return exchange

    async def notify(self, message: Json) -> None:
        """See `Conversation.notify`."""
        await asyncio.to_thread(self._post, message, 5.0)

    async def overlap(self, messages: Sequence[Json], patience: float, pause: float = 0.0) -> list[WireExchange]:
        """See `Conversation.overlap`. In the per-request lifecycle, closing the connection cancels a request."""
        canceled, modern = canceled_ids(messages), bool(_routing(messages[0])[0])
        running: list[tuple[Json, asyncio.Task[WireExchange]]] = []
        for number, message in enumerate(messages):
            await asyncio.sleep(pause if number else 0)
            if "id" in message:
                limit = patience if message["id"] not in canceled else pause if modern else 2 * pause
                running.append((message, asyncio.create_task(asyncio.to_thread(self._post, message, limit))))
            elif not modern:
                await self.notify(message)
        done = [(message, await task) for message, task in running]
        exchanges = [exchange for message, exchange in done if message["id"] not in canceled]
        self.session.exchanges += exchanges
        return exchanges

    async def ask_beside_streams(
        self, messages: Sequence[Json], patience: float, count: int
    ) -> RequestsBesideStreams | None:
        """Send requests while GET streams are open; return None if the server does not open `count` streams."""
        return await asyncio.to_thread(self._ask_beside_streams, messages, patience, count)

    def _ask_beside_streams(
        self, messages: Sequence[Json], patience: float, count: int
    ) -> RequestsBesideStreams | None:
        limit = patience * len(messages) + count * _STREAM_START + 2 * _GLANCE
        with contextlib.ExitStack() as stack:
            streams = [heard for _ in range(count) if (heard := self._open_stream(stack, limit)) is not None]
            if len(streams) < count:
                return None
            time.sleep(_GLANCE)
            before = tuple(map(tuple, streams))
            sent = len(self.session.messages)
            exchanges = tuple(self._post(message, patience) for message in messages)
            time.sleep(_GLANCE)
            after = tuple(tuple(one[len(early) :]) for one, early in zip(streams, before, strict=True))
        on_responses = tuple(one.message for one in self.session.messages[sent:])
        return RequestsBesideStreams(exchanges, before, after, on_responses)

    async def replay(self, messages: Sequence[Json], patience: float) -> ReplayedStream | None:
        """Send requests, and resume the first one's stream after its first event; return None if it has no event ids."""
        return await asyncio.to_thread(self._replay, messages, patience)

    def _replay(self, messages: Sequence[Json], patience: float) -> ReplayedStream | None:
        ids = self.session.event_ids
        known = len(ids)
        exchanges = tuple(self._post(message, patience) for message in messages)
        if len(ids) == known or not is_header_text(ids[known]):
            return None
        with contextlib.ExitStack() as stack:
            heard = self._open_stream(stack, _STREAM_START + _UPDATES, {"Last-Event-ID": ids[known]})
            time.sleep(_UPDATES if heard is not None else 0)
            return ReplayedStream(exchanges, ids[known], tuple(heard or ()))

    def _open_stream(
        self, stack: contextlib.ExitStack, limit: float, more: Mapping[str, str] | None = None
    ) -> list[Json] | None:
        """Open a stream with GET, and return the list to which a thread adds its messages; None without a stream.

        The stream is closed after `limit` seconds, or at the end of `stack`.
        """
        headers = {**self._headers(""), "Accept": "text/event-stream", **(more or {})}
        try:
            connection = stack.enter_context(connected(self._url, limit))
            sock = connection.sock
            sock.settimeout(_STREAM_START)
            connection.request("GET", self._path, headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException):
            return None
        if response.status != 200 or _media_type(response) != "text/event-stream":
            return None
        sock.settimeout(None)
        heard: list[Json] = []

        def read() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                for data in _events(response, time.monotonic() + limit, []):
                    heard.extend(_messages(decode(data)))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        stack.callback(reader.join, 1.0)
        stack.callback(_shut_down, sock)  # ends the thread
        return heard

    async def listen(
        self, requests: Sequence[Json], patience: float, calls: Sequence[Json] = ()
    ) -> tuple[NotificationStream, ...]:
        """See `Conversation.listen`: a stream ends when its connection is closed."""
        return await asyncio.to_thread(self._listen, requests, patience, calls)

    def _listen(
        self, requests: Sequence[Json], patience: float, calls: Sequence[Json]
    ) -> tuple[NotificationStream, ...]:
        limit = patience * (len(requests) + len(calls)) + 1
        with contextlib.ExitStack() as stack:
            streams = [_OpenStream(request) for request in requests]
            for stream in streams:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection = stack.enter_context(connected(self._url, limit))
                    sock = connection.sock
                    connection.request("POST", self._path, json.dumps(stream.request), self._headers(stream.request))
                    stream.open(connection.getresponse(), sock)
                    stream.read(patience)
            for call in calls:
                self._post(call, patience)
            for stream in streams:
                watches = stream.request["params"]["notifications"].get("resourceSubscriptions")
                stream.read(_UPDATES if watches else _GLANCE, first=False)
            return tuple(stream.record(streams) for stream in streams)

    async def close(self, *, terminate: bool = False) -> None:
        """End the session, if one is open."""
        if self._session_id:
            await asyncio.to_thread(self._delete)
        if self.session.exchanges and not self.session.answered:
            first = self.session.exchanges[0]
            self.session.problem = first.problem or f"HTTP status {first.status}"

    def _post(self, message: Json | str, patience: float) -> WireExchange:
        body = (message if isinstance(message, str) else json.dumps(message)).encode(errors="surrogateescape")
        message = escape_surrogates(message) if isinstance(message, str) else message
        if isinstance(message, dict):
            self._log.sent(message)
        began = time.monotonic()
        status, problem, kind = 0, "", ""
        came: list[Json] = []
        try:
            with connected(self._url, patience) as connection:
                connection.request("POST", self._path, body, self._headers(message))
                response = connection.getresponse()
                status, kind = response.status, _media_type(response)
                if self._follows(response):
                    return self._post(message, max(patience - (time.monotonic() - began), 0.1))
                if isinstance(message, dict) and message.get("method") == "initialize":
                    self._session_id = response.getheader("Mcp-Session-Id") or ""
                # In the per-request lifecycle, streams belong to no session.
                ids = [] if _routing(message)[0] else self.session.event_ids
                came, problem = self._read(response, began + patience, ids, several=isinstance(message, str))
        except (OSError, http.client.HTTPException) as error:
            problem = f"the connection failed: {error or type(error).__name__}"
        received = came[0] if came else None
        if received is None and time.monotonic() - began >= patience:
            problem = f"no answer within {patience:g} s"
        if received is None and not problem and isinstance(message, dict) and "id" not in message:
            return WireExchange(message, None, "", status)  # servers do not answer notifications
        problem = problem or ("" if received is not None else f"HTTP status {status} without a JSON-RPC answer")
        took = round(1000 * (time.monotonic() - began))
        return WireExchange(message, received, problem, status, took, tuple(came[1:]), media_type=kind)

    def _follows(self, response: http.client.HTTPResponse) -> bool:
        """Follow a redirect within the origin; return True if the response was such a redirect.

        Later requests use the new URL directly, so that each request has one answer.
        """
        location = response.getheader("Location") or ""
        found = self._redirects.next("POST", urlunsplit(self._url), response.status, location)
        if found is None or found.refusal or found.method != "POST":
            return False
        self._url = urlsplit(found.url)
        return True

    def _read(
        self, response: http.client.HTTPResponse, deadline: float, ids: list[str], *, several: bool
    ) -> tuple[list[Json], str]:
        """Return the first answer (with `several`, all answers), and the reason if no answer arrived."""
        if response.status == NEEDS_CREDENTIALS:
            return [], f"HTTP status {response.status}: {CREDENTIALS}"
        kind = _media_type(response)
        location = response.getheader("Location") or ""
        if redirect := redirect_of("POST", urlunsplit(self._url), response.status, location):
            return [], redirect.reason
        if kind == "text/event-stream":
            return self._read_events(response, deadline, ids, several=several)
        value = decode(response.read(MAX_MESSAGE))
        answers = [one for one in _messages(value) if is_jsonrpc_answer(one)]
        for answer in answers:
            self._log.received(answer)
        return answers, "" if answers or response.status != 200 else "the answer is not a JSON-RPC message"

    def _read_events(
        self, response: http.client.HTTPResponse, deadline: float, ids: list[str], *, several: bool
    ) -> tuple[list[Json], str]:
        """Read a stream, and continue it if the server closes it after an event with an ID (Resumability)."""
        answers: list[Json] = []
        with contextlib.ExitStack() as stack:
            while True:
                own: list[str] = []
                for value in (one for data in _events(response, deadline, own) for one in _messages(decode(data))):
                    self._log.received(value)
                    if is_jsonrpc_answer(value):
                        answers.append(value)
                        if not several:
                            break
                    elif "id" in value and "method" in value:
                        answer = answer_server_request(value, self._log.declared)
                        self._post(answer, max(deadline - time.monotonic(), 0.1))
                ids += own[: max(_MAX_IDS - len(ids), 0)]
                if answers or not own or not is_header_text(own[-1]) or time.monotonic() + _RETRY > deadline:
                    return answers, "" if answers else "the event stream ended without an answer"
                time.sleep(_RETRY)
                headers = {**self._headers(""), "Accept": "text/event-stream", "Last-Event-ID": own[-1]}
                connection = stack.enter_context(connected(self._url, deadline - time.monotonic()))
                connection.request("GET", self._path, headers=headers)
                response = connection.getresponse()
                if response.status != 200:
                    return [], f"the event stream ended without an answer, and GET got status {response.status}"

    @property
    def _path(self) -> str:
        return (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")

    def _headers(self, message: Json | str) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= self._credentials
        version, method, name = _routing(message)
        if version:
            headers |= {"MCP-Protocol-Version": version, "Mcp-Method": method}
            repeated = call_headers(self.schemas, message["params"]) if isinstance(message, dict) and name else {}
            return headers | ({"Mcp-Name": header_value(name)} if name else {}) | repeated
        if self._session_id:
            headers["Mcp-Session-Id"] = self._session_id
        if self._revision:
            headers["MCP-Protocol-Version"] = self._revision
        return headers

    def _delete(self) -> None:
        try:
            with connected(self._url, 5.0) as connection:
                connection.request("DELETE", self._path, headers=self._headers(""))
                connection.getresponse().read(_LINE)
        except (OSError, http.client.HTTPException):
            pass  # a server may refuse to end the session


class _OpenStream:
    """The response to one `subscriptions/listen` while it arrives."""

    def __init__(self, request: Json) -> None:
        self.request = request
        self._messages: list[Json] = []
        self._lines: Iterator[bytes] = iter(())
        self._sock: socket.socket | None = None
        self._ended = False

    def open(self, response: http.client.HTTPResponse, sock: socket.socket) -> None:
        """Read the server's response: a stream, or a single body."""
        if _media_type(response) == "text/event-stream":
            self._lines, self._sock = _events(response, time.monotonic() + 3600, []), sock
        else:
            self._messages += _messages(decode(response.read(MAX_MESSAGE)))

    def read(self, seconds: float, *, first: bool = True) -> None:
        """Read for at most `seconds`. If `first` is set, stop after the acknowledgment or the answer."""
        if self._sock is None or self._ended:
            return
        until = time.monotonic() + seconds
        with contextlib.suppress(OSError, http.client.HTTPException):
            while (left := until - time.monotonic()) > 0:
                self._sock.settimeout(left)
                data = next(self._lines, None)
                if data is None:
                    self._ended = True
                    return
                came = _messages(decode(data))
                self._messages += came
                if first and any(is_jsonrpc_answer(one) or is_acknowledgement(one) for one in came):
                    return

    def record(self, streams: Sequence[_OpenStream]) -> NotificationStream:
        """Select the messages of this stream from all `streams`, because a server may send them on another stream."""
        wanted, known = self.request["id"], [stream.request["id"] for stream in streams]
        answers = [one for stream in streams for one in stream.answers if one.get("id") == wanted]
        own = [one for one in self.answers if one.get("id") not in known]
        answer = next(iter([*answers, *own]), None)
        heard = tuple(one for one in self._messages if not is_jsonrpc_answer(one))
        return NotificationStream(self.request, heard, answer, ended=self._ended and answer is None)

    @property
    def answers(self) -> list[Json]:
        return list(filter(is_jsonrpc_answer, self._messages))


@contextlib.contextmanager
def connected(url: SplitResult, seconds: float) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection to the host of `url`; close the connection after `seconds`, even while data arrives.

    The socket's own timeout restarts with every byte. A server that sends very slowly, even in headers, would therefore
    never reach the timeout.

    Raises:
        OSError: the connection fails.
    """
    host, port = url.hostname or "", url.port
    connection = (
        http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
        if url.scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=seconds)
    )
    try:
        connection.connect()
        # Keep the socket, because `connection` drops it if the server announces a close.
        watch = threading.Timer(seconds, _shut_down, (connection.sock,))
        watch.start()
        try:
            yield connection
        finally:
            watch.cancel()
    finally:
        connection.close()


def _messages(value: object) -> list[Json]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def _media_type(response: http.client.HTTPResponse) -> str:
    return (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # already closed
        sock.shutdown(socket.SHUT_RDWR)


def _events(response: http.client.HTTPResponse, deadline: float, ids: list[str]) -> Iterator[bytes]:
    """Yield the data of each server-sent event (HTML §9.2) until the stream ends; add the event ids to `ids`.

    Raises:
        TimeoutError: the stream continues after the deadline.
    """
    data: list[bytes] = []
    size = 0
    mark = codecs.BOM_UTF8  # a stream, but no later line, may begin with a byte order mark
    while line := response.readline(MAX_MESSAGE):
        if time.monotonic() > deadline:
            raise TimeoutError
        stripped, mark = line.removeprefix(mark).rstrip(b"\r\n"), b""
        if not stripped and data:
            yield b"\n".join(data)
            data, size = [], 0
        elif stripped.startswith(b"id:") and (text := stripped[3:].strip().decode(errors="replace")):
            ids.append(text)
        elif stripped.startswith(b"data:") and size < MAX_MESSAGE:
            data.append(stripped[5:].removeprefix(b" "))
            size += len(stripped)


def _routing(message: Json | str) -> tuple[str, str, str]:
    """Return (revision, method, name) for the headers of a per-request message; the revision is "" for a handshake."""
    if isinstance(message, str):
        return "", "", ""
    params = message.get("params") or {}
    version = (params.get("_meta") or {}).get(VERSION, "")
    method = str(message.get("method", ""))
    return str(version), method, str(params.get(METHODS[method].named, "") if method in METHODS else "")
