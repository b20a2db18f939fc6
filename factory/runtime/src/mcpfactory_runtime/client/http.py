"""Client channels over HTTP: Streamable HTTP and HTTP+SSE (basic/transports).

Other modules import this module on demand, because it imports the HTTP library.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx

from mcpfactory_runtime.client.channel import (
    ClientChannel,
    ConnectionLostError,
    HttpError,
    ProtocolError,
    Receiver,
    SessionEndedError,
    StreamEndedError,
    cancel_tasks,
)
from mcpfactory_runtime.client.http_messages import SseEvent, SseReader
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.errors import connection_error_reason
from mcpfactory_runtime.oauth.steps_and_metadata import FETCH_SIZE, FETCH_TIME, Fetch, HttpAnswer, OAuthError
from mcpfactory_runtime.protocol.decoding import aiter_decoded
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST, McpError
from mcpfactory_runtime.protocol.http import SESSION_HEADER
from mcpfactory_runtime.protocol.jsonrpc import DEFAULT_MAX_SIZE, decode, encode, error_in_response
from mcpfactory_runtime.revisions import MODERN
from mcpfactory_runtime.urls import (
    RedirectTracker,
    host_port,
    host_port_of,
    is_public,
    is_same_origin,
    private_target_kind,
    redirect_of,
)

__all__ = ["HttpAnswer", "HttpChannel", "SseChannel", "fetch", "fetch_public"]

_ACCEPT: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_MAX_RESUMES: Final = 5  # maximum reconnects per response stream
_RECONNECT: Final = 1.0  # seconds before a reconnect, unless the server sends `retry`
_LONGEST_PAUSE: Final = 60.0  # maximum seconds before a reconnect of a GET stream that ends without messages
_OPEN_TIMEOUT: Final = 1.0  # maximum seconds to wait for the response headers of the GET stream
_ACCEPT_TIMEOUT: Final = 30.0  # maximum seconds for the server to accept a notification or a response
_MAX_LOGINS: Final = 2  # maximum token renewals per message
_KEPT_HEADERS: Final = frozenset(
    {"content-type", SESSION_HEADER, "www-authenticate", "allow", "location", "retry-after"}
    | {"cache-control", "x-accel-buffering"}
)


class _Http(ClientChannel):
    http = True

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, oauth: OAuth | None = None) -> None:
        self.url = url
        self.own_headers = dict(headers or {})
        self.oauth = oauth
        self._client: httpx.AsyncClient | None = None
        self._receiver: Receiver | None = None
        self._tasks: dict[Any, asyncio.Task[None]] = {}

    async def open(self, receiver: Receiver) -> None:
        if not host_port_of(self.url):
            raise ConnectionLostError(f"{self.url!r} is not an http or https URL")
        self._receiver = receiver
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=10.0), trust_env=False, follow_redirects=False
        )

    async def aclose(self) -> None:
        await cancel_tasks(self._tasks.values())
        if self._client is not None:
            await self._client.aclose()

    async def exchange(self, method: str, content: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        """Send an HTTP request without additional headers, for checks of the transport."""
        try:
            async with self._http.stream(method, self.url, content=content, headers=dict(headers)) as response:
                answer = await _read(response)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        return HttpAnswer(response.status_code, dict(response.headers.items()), answer)

    @property
    def _http(self) -> httpx.AsyncClient:
        assert self._client is not None, "the channel is not open"
        return self._client

    @property
    def _to(self) -> Receiver:
        assert self._receiver is not None, "the channel is not open"
        return self._receiver

    @asynccontextmanager
    async def _authorized(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        request_id: Any = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request with our token, and retry with a new token if the server refuses the token."""
        logins = 0
        while True:
            token = self.oauth.token(self.url) if self.oauth else ""
            async with self._follow_redirects(method, url, headers, content, token) as response:
                challenge = response.headers.get("www-authenticate", "")
                if self.oauth is None or not self.oauth.refused(response.status_code, challenge):
                    yield response
                    return
                self._to.received(None, _note(response))
            if logins == _MAX_LOGINS:
                raise OAuthError("refused", f"{self.url} refuses every token (HTTP status {response.status_code})")
            self._to.delayed(request_id, True)
            try:
                await self.oauth.renew(self.url, response.status_code, challenge, token, self._fetch)
            finally:
                self._to.delayed(request_id, False)
            logins += 1

    @asynccontextmanager
    async def _follow_redirects(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, token: str
    ) -> AsyncIterator[httpx.Response]:
        """Send a request, and follow redirects that keep the origin and the method."""
        redirects = RedirectTracker()
        while True:
            presented = {"Authorization": f"Bearer {token}"} if token else {}
            async with self._http.stream(method, url, content=content, headers={**headers, **presented}) as response:
                found = redirects.next(method, url, response.status_code, response.headers.get("location", ""))
                if found is None or found.refusal or found.method != method:
                    yield response
                    return
            url = found.url

    async def _send_post(self, url: str, headers: Mapping[str, str], content: bytes) -> tuple[bytes, httpx.Response]:
        """POST a message without a separate response."""
        try:
            # No timeout with OAuth, because the user may have to log in.
            async with asyncio.timeout(None if self.oauth else _ACCEPT_TIMEOUT):
                async with self._authorized("POST", url, headers, content) as response:
                    return await _read(response), response
        except TimeoutError:
            raise ConnectionLostError(
                f"{self.url} did not accept a message within {_ACCEPT_TIMEOUT:g} seconds"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: invalid header values
            raise self._unreachable(error) from None

    async def _fetch(self, request: Fetch) -> HttpAnswer:
        try:
            async with asyncio.timeout(FETCH_TIME):
                *places, last = await self._permitted_urls(request.url)
                for place in places:
                    # the request was not sent, so try the next address
                    with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                        return await self._fetch_at(place, request)
                return await self._fetch_at(last, request)
        except (httpx.HTTPError, TimeoutError) as error:
            raise self._unreachable(error, request.url) from None

    async def _fetch_at(self, place: str, request: Fetch) -> HttpAnswer:
        """Send a request to an IP address, with the host name of the request's URL in `Host` and TLS."""
        parts = urlsplit(request.url)
        too_large = OAuthError("bad_response", f"{request.url} returned more than {FETCH_SIZE} bytes")
        async with self._http.stream(
            request.method,
            place,
            content=request.content,
            headers={**request.headers, "Host": parts.netloc},
            extensions={"sni_hostname": parts.hostname or ""},
        ) as response:
            content = await _read(response, FETCH_SIZE, too_large)
        return HttpAnswer(response.status_code, dict(response.headers.items()), content)

    async def _permitted_urls(self, url: str) -> list[str]:
        """Return the URL with each permitted IP address instead of the host name, or raise OAuthError.

        Public addresses and the hosts in `OAuth.private_hosts` are permitted. A server on this machine or a private
        network may refer to all addresses.
        """
        try:
            parts = urlsplit(url)
            if private_target_kind(self.url) or parts.netloc == urlsplit(self.url).netloc:
                return [url]
            found = list(dict.fromkeys(await _addresses(url)))
        except (OSError, ValueError) as error:  # an invalid host name raises UnicodeError
            raise self._unreachable(error) from None
        permitted = self.oauth is not None and self.oauth.permits_private_host(url)
        addresses = [one for one in found if permitted or is_public(one)]
        if not addresses:
            raise OAuthError(
                "unsafe_url",
                f"{self.url} refers to {url}, which is at a private or local address; no request was sent\nhint: "
                f"if {parts.hostname} is yours, allow it with OAuth(private_hosts=[{parts.hostname!r}])",
            )
        return [parts._replace(netloc=host_port(one, parts.port or 443)).geturl() for one in addresses]

    def _unreachable(self, error: Exception, url: str = "") -> ConnectionLostError:
        parts = urlsplit(url or self.url)
        return ConnectionLostError(
            f"no connection to {parts.hostname}:{parts.port or parts.scheme}: {connection_error_reason(error)}"
        )

    def _spawn(self, key: Any, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: Any, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved, so that the event loop does not log it

    def _deliver(self, data: bytes | str, http: dict[str, Any] | None = None) -> Any:
        try:
            message = decode(data)
        except McpError:
            message = data if isinstance(data, str) else data.decode("utf-8", "replace")
        self._to.received(message, http)
        return message


async def _addresses(url: str) -> list[str]:
    parts = urlsplit(url)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


class HttpChannel(_Http):
    """Streamable HTTP, in which each message is a POST request, and each response is JSON or an event stream."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, oauth: OAuth | None = None) -> None:
        super().__init__(url, headers, oauth)
        self.session_id: str | None = None
        self._modern: set[Any] = set()

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """POST a message, and wait until the server has accepted a notification."""
        if isinstance(message, dict) and "method" in message and "id" in message:
            if headers.get("MCP-Protocol-Version") in MODERN:
                self._modern.add(message["id"])
            if message["method"] == "initialize":
                self.session_id = None
            self._spawn(message["id"], self._request(message["id"], encode(message), headers))
        else:
            await self._post(encode(message), headers)

    async def send_raw(self, data: bytes) -> None:
        """POST bytes, and pass the response to the receiver."""
        await self._post(data, {})

    def forget(self, request_id: Any) -> bool:
        """Close the request's stream, which cancels the request in the per-request lifecycle."""
        task = self._tasks.get(request_id)
        if task is not None:
            task.cancel()
        return request_id in self._modern

    async def start_listening(self, headers: Mapping[str, str]) -> bool:
        """Open the GET stream, if the server has one."""
        if "GET" in self._tasks:  # the stream of an ended session
            self._tasks["GET"].cancel()
        opened = asyncio.Event()
        self._spawn("GET", self._listen(headers, opened))
        with suppress(TimeoutError):  # some servers send the response headers only with the first message
            await asyncio.wait_for(opened.wait(), _OPEN_TIMEOUT)
        return True

    async def aclose(self) -> None:
        """End the session (basic/transports, Session Management)."""
        if self.session_id is not None and self._client is not None:
            with suppress(httpx.HTTPError, TimeoutError):
                token = self.oauth.token(self.url) if self.oauth else ""
                async with asyncio.timeout(2):
                    async with self._follow_redirects("DELETE", self.url, self._all({}), None, token):
                        pass
            self.session_id = None
        await super().aclose()

    def _all(self, headers: Mapping[str, str]) -> dict[str, str]:
        session = {"Mcp-Session-Id": self.session_id} if self.session_id else {}
        return {**_ACCEPT, **session, **self.own_headers, **headers}

    async def _post(self, content: bytes, headers: Mapping[str, str]) -> None:
        answer, response = await self._send_post(self.url, self._all(headers), content)
        if answer:
            self._deliver(answer, _note(response))
        else:
            self._to.received(None, _note(response))

    async def _request(self, request_id: Any, content: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with self._authorized("POST", self.url, self._all(headers), content, request_id) as response:
                if SESSION_HEADER in response.headers and request_id not in self._modern:
                    self.session_id = response.headers[SESSION_HEADER]
                last = await self._answer(request_id, response)
            if last is not None:
                await self._resume(request_id, last, headers)
        except httpx.HTTPError as error:
            self._to.failed(request_id, self._unreachable(error))
        except (HttpError, OAuthError, ConnectionLostError) as error:
            self._to.failed(request_id, error)
        except Exception as error:  # noqa: BLE001 - waiting calls fail now instead of at their timeout
            self._to.failed(request_id, self._unreachable(error))
        # `failed` ignores a request whose response has arrived.
        self._to.failed(request_id, StreamEndedError("the server's stream ended without a response"))

    async def _answer(self, request_id: Any, response: httpx.Response) -> SseEvent | None:
        """Pass the messages of a response to the receiver, and return the last event with an ID."""
        note = _note(response)
        if _is_event_stream(response):
            last: SseEvent | None = None
            async for event in _events(response):
                last = event if event.id else last
                if event.data:
                    self._deliver(event.data, note)
            return last
        content = await _read(response)
        if not content:
            self._to.received(None, note)
        if response.status_code == 404 and SESSION_HEADER in response.request.headers:
            self._to.failed(request_id, _ended_session(content))
        message = self._deliver(content, note) if content else None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise _refused(response, content)
        if "error" in message:  # the error has no ID if the server cannot read the request's ID
            self._to.failed(request_id, error_in_response(message))
        self._to.failed(request_id, ProtocolError(f"the response to request {request_id} has another id"))
        return None

    async def _resume(self, request_id: Any, last: SseEvent, headers: Mapping[str, str]) -> None:
        """Reconnect to a stream that ended before the response (basic/transports, Resumability)."""
        for _ in range(_MAX_RESUMES):
            await asyncio.sleep(_RECONNECT if last.retry is None else last.retry / 1000)
            known = {**self._all(headers), "Accept": "text/event-stream", "Last-Event-ID": last.id}
            async with self._authorized("GET", self.url, known, request_id=request_id) as response:
                if response.status_code != 200:
                    return
                async for event in _events(response):
                    last = event if event.id else last
                    if (
                        event.data
                        and isinstance(message := self._deliver(event.data), dict)
                        and "method" not in message
                    ):
                        return

    async def _listen(self, headers: Mapping[str, str], opened: asyncio.Event) -> None:
        known = {**self._all(headers), "Accept": "text/event-stream"}
        loop = asyncio.get_running_loop()
        retry, pause = _RECONNECT, 0.0
        try:
            while True:
                began = loop.time()
                with suppress(httpx.HTTPError):  # try again
                    async with self._authorized("GET", self.url, known) as response:
                        opened.set()
                        if response.status_code != 200 or not _is_event_stream(response):
                            return
                        async for event in _events(response):
                            retry = retry if event.retry is None else event.retry / 1000
                            if event.id:
                                known["Last-Event-ID"] = event.id
                            if event.data:
                                self._deliver(event.data)
                                pause = 0.0
                pause = retry if loop.time() - began > _LONGEST_PAUSE else max(pause, retry)
                await asyncio.sleep(pause)
                pause = min(max(pause, _RECONNECT) * 2, _LONGEST_PAUSE)
        except (OAuthError, ConnectionLostError):
            return  # the next request reports the error
        finally:
            opened.set()


class SseChannel(_Http):
    """HTTP+SSE of the oldest revision, in which the first event of a GET stream contains the URL for POST requests."""

    _endpoint: str | None = None

    async def open(self, receiver: Receiver) -> None:
        """Open the stream and wait for the endpoint.

        Raises:
            ConnectionLostError: the server is unreachable, or closed the stream.
            HttpError: the response is not an event stream.
            ProtocolError: the server sent no endpoint, or an endpoint of another origin.
        """
        await super().open(receiver)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._spawn("GET", self._listen(ready))
        try:
            async with asyncio.timeout(10):
                self._endpoint = await ready
        except TimeoutError:
            raise ProtocolError(f"{self.url} returned no endpoint") from None

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """POST a message, whose response arrives on the stream."""
        await self.send_raw(encode(message))

    async def send_raw(self, data: bytes) -> None:
        """POST bytes."""
        assert self._endpoint is not None, "the channel is not open"
        answer, response = await self._send_post(self._endpoint, {**_ACCEPT, **self.own_headers}, data)
        if response.status_code >= 300:
            raise _refused(response, answer)

    async def _listen(self, ready: asyncio.Future[str]) -> None:
        failure: Exception = ConnectionLostError("the server closed its stream")
        try:
            headers = {**self.own_headers, "Accept": "text/event-stream"}
            async with self._authorized("GET", self.url, headers) as response:
                if not _is_event_stream(response):
                    failure = _refused(response, await _read(response))
                    return
                async for event in _events(response):
                    if event.event == "endpoint" and not ready.done():
                        ready.set_result(self._same_origin(event.data, str(response.url)))
                    elif event.data:
                        self._deliver(event.data, _note(response))
        except (ProtocolError, OAuthError, ConnectionLostError) as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - waiting calls fail now instead of at their timeout
            failure = self._unreachable(error)
        finally:
            if not ready.done():
                ready.set_exception(failure)
            self._to.lost(failure)

    def _same_origin(self, endpoint: str, base: str) -> str:
        target = urljoin(base, endpoint.strip())
        if not is_same_origin(base, target):
            raise ProtocolError(f"{self.url} returned an endpoint on another host")
        return target


def _refused(response: httpx.Response, content: bytes) -> HttpError:
    """Return the error for an HTTP response without a message."""
    asked, location = response.request, response.headers.get("location", "")
    redirect = redirect_of(asked.method, str(asked.url), response.status_code, location)
    text = content.decode("utf-8", "replace") if redirect is None else redirect.reason
    why = _parse_error(content) if response.is_success and "json" in response.headers.get("content-type", "") else ""
    return HttpError(response.status_code, text, dict(response.headers.items()), why)


def _parse_error(content: bytes) -> str:
    try:
        decode(content)
    except McpError as error:
        return str(error)
    return ""


def _ended_session(content: bytes) -> SessionEndedError:
    """Return the error of a 404 response, which ends the session (basic/transports, Session Management)."""
    with suppress(McpError):
        message = decode(content)
        if isinstance(message, dict) and "error" in message:
            error = error_in_response(message)
            return SessionEndedError(error.code, error.message, error.data)
    return SessionEndedError(INVALID_REQUEST, "the server does not know the session (HTTP status 404)")


async def _read(response: httpx.Response, limit: int = DEFAULT_MAX_SIZE, too_large: Exception | None = None) -> bytes:
    """Return the body of at most `limit` bytes, or raise `too_large` or an httpx.DecodingError."""
    content = bytearray()
    async for data in aiter_decoded(response):
        content += data
        if len(content) > limit:
            raise too_large or httpx.DecodingError(f"the response is larger than {limit >> 20} MiB")
    return bytes(content)


async def _events(response: httpx.Response) -> AsyncIterator[SseEvent]:
    reader = SseReader()
    async for data in aiter_decoded(response):
        for event in reader.feed(data):
            yield event
        if reader.size > DEFAULT_MAX_SIZE:
            raise httpx.DecodingError(f"an event is larger than {DEFAULT_MAX_SIZE >> 20} MiB")


def _note(response: httpx.Response) -> dict[str, Any]:
    headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
    return {"status": response.status_code, "headers": headers}


def _is_event_stream(response: httpx.Response) -> bool:
    media_type: str = response.headers.get("content-type", "")
    return media_type.lower().startswith("text/event-stream")


async def fetch(url: str, *, limit: int = 1 << 20, name: str = "") -> bytes:
    """Return the body of a small document. A redirect, or another status than 200, raises OSError.

    If `url` contains an IP address instead of the host name, `name` is the URL with the host name.
    """
    headers, extensions = {"Accept": "application/json"}, {}
    if name:
        parts = urlsplit(name)
        headers["Host"], extensions["sni_hostname"] = parts.netloc, parts.hostname or ""
    try:
        async with (
            httpx.AsyncClient(timeout=10.0, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", url, headers=headers, extensions=extensions) as response,
        ):
            if response.status_code != 200:
                raise OSError(f"{url} returned HTTP {response.status_code}")
            return await _read(response, limit, OSError(f"{url} is larger than {limit} bytes"))
    except httpx.HTTPError as error:
        raise OSError(f"{url}: {connection_error_reason(error)}") from None


async def fetch_public(url: str, *, limit: int = 1 << 16) -> bytes:
    """Return a small document from an untrusted URL, like `fetch`, but only from public addresses in limited time.

    Raises:
        OSError: the document is unavailable or too large, or the address is private.
    """
    parts = urlsplit(url)
    async with asyncio.timeout(FETCH_TIME):
        try:
            found = [one for one in dict.fromkeys(await _addresses(url)) if is_public(one)]
        except ValueError as error:  # the host name is invalid
            raise OSError(f"{url}: {error}") from None
        if not found:
            raise OSError(f"{url} is at a private or local address")
        place = parts._replace(netloc=host_port(found[0], parts.port or 443)).geturl()
        return await fetch(place, limit=limit, name=url)
