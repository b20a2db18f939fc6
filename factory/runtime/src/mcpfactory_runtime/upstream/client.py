"""HTTP client behind generated tools.

The client follows redirects only within an origin, keeps no cookies, and uses no proxies or credentials from the
environment. The size of decompressed bodies and the time of a call are limited. Only idempotent methods are retried. To
prevent DNS rebinding, the client resolves the hosts in an API document, and connects only to a checked address.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpcore
import httpx

from mcpfactory_runtime.errors import connection_error_reason, find_os_error
from mcpfactory_runtime.protocol.decoding import ACCEPTED, aiter_decoded
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import MAX_TEXT, READ_BY_CODE, ToolResult
from mcpfactory_runtime.tracing import TracedCall, trace_api_call
from mcpfactory_runtime.upstream.auth import NO_CREDENTIALS, credentials_for, sign
from mcpfactory_runtime.upstream.connections import AddressCheckingBackend, Certificate, ConnectionPool, tls_context
from mcpfactory_runtime.upstream.encoding import is_xml
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme, ServerAddress
from mcpfactory_runtime.upstream.redaction import Redaction, remember_secrets
from mcpfactory_runtime.upstream.request import UpstreamRequest, build_request
from mcpfactory_runtime.upstream.response import to_tool_result
from mcpfactory_runtime.upstream.secrets import Settings
from mcpfactory_runtime.upstream.servers import Addresses
from mcpfactory_runtime.urls import Redirect, RedirectTracker, host_port_of

if TYPE_CHECKING:
    from mcpfactory_runtime.oauth.steps_and_metadata import Fetch, HttpAnswer
    from mcpfactory_runtime.upstream.tokens import OAuthCredentials, TokenManager

_HttpAnswer = tuple[int, dict[str, str], bytes, bool]
"""Status, headers by lower-case name, content, and True if the content was cut at the limit."""

_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "QUERY"})  # RFC 9110 §9.2.2
_TRANSIENT: Final = frozenset({429, 502, 503, 504})
_RETRIES: Final = 2
_VERSION: Final = version("mcpfactory-runtime")
# Maximum seconds to wait before a retry. If the API asks for a longer wait, there is no retry.
_LONGEST_WAIT: Final = 10.0
_CONNECT_TIMEOUT: Final = 10.0  # seconds
_LARGE: Final = 1_000_000  # bytes; a thread reads longer responses, because the event loop would wait for the parser
_CONNECTIONS: Final = 32  # maximum number of concurrent requests
_FAULTS: Final = (httpx.HTTPError, httpx.InvalidURL, OSError)  # TimeoutError is included, because it is an OSError


class Upstream:
    """Client for the API behind a server.

    Args:
        base_url: base URL in the API document.
        schemes: security schemes of the operations.
        servers: other servers of the operations, from the API document.
        environ: environment with credentials and settings, read on each call. None uses the process's environment.
            MCPFACTORY_BASE_URL replaces `base_url`, and <prefix>_<NAME>_BASE_URL replaces the address of one of
            `servers`. MCPFACTORY_ALLOW_PRIVATE=1 permits private addresses from the API document.
            MCPFACTORY_CA_FILE is a PEM file of certificate authorities that replace the default authorities.
            With a `prefix`, variables such as <prefix>_BASE_URL apply to this server only, and take precedence.
        name: name of the server, for commands in hints.
        prefix: prefix of this server's variables.
        private: hosts (`host` or `host:port`) that may have private addresses, by choice of the server's author.
        timeout: seconds for one call, including retries. MCPFACTORY_TIMEOUT replaces this value.
        max_bytes: maximum size of a response in bytes, after decompression.
        max_text: maximum characters of a response for the model. Code that calls a tool (`ctx.call`) gets the whole
            response.
        retry_wait: seconds before the first retry, unless the API specifies a wait. The second retry waits twice as
            long.
        clock: returns seconds since the epoch, to detect expired tokens.
    """

    def __init__(
        self,
        base_url: str,
        schemes: Iterable[SecurityScheme] = (),
        *,
        servers: Iterable[ServerAddress] = (),
        environ: Mapping[str, str] | None = None,
        name: str = "",
        prefix: str = "",
        private: Iterable[str] = (),
        timeout: float = 30.0,
        max_bytes: int = 10_000_000,
        max_text: int = MAX_TEXT,
        retry_wait: float = 0.5,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._base_url = base_url
        self._schemes = {scheme.name: scheme for scheme in schemes}
        self._environ = os.environ if environ is None else environ
        self._settings = Settings(self._environ, prefix)
        self._addresses = Addresses(self._settings, base_url, servers)
        self._private = frozenset(private)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_text = max_text
        self._retry_wait = retry_wait
        self._oauth = self._make_oauth(name, clock)
        self._clients: dict[Certificate, httpx.AsyncClient] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def base_url(self) -> str:
        """Return the effective base URL: the user's setting, or else the URL in the API document."""
        return self._addresses.root

    @property
    def addresses(self) -> Addresses:
        """Return the addresses of the root and of the API's other servers."""
        return self._addresses

    @property
    def timeout(self) -> float:
        """Return the timeout of a call in seconds: the user's setting, or else the constructor's argument."""
        text = self._settings.value("TIMEOUT").strip()
        if not text:
            return self._timeout
        if not re.fullmatch(r"\d{1,5}(\.\d{1,6})?", text) or not float(text):
            raise ToolError(
                f"{self._settings.set_by('TIMEOUT')} is {text[:40]!r}, which is not a number of "
                "seconds.\nhint: ask the person who runs this server to set it to 0.1 or more, for example to 60, or to unset "
                "it."
            )
        return float(text)

    @property
    def token_managers(self) -> Mapping[str, TokenManager]:
        """Return the token managers of OAuth schemes, by scheme name."""
        return {} if self._oauth is None else self._oauth.token_managers

    async def send(self, operation: Operation, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the API and return the result for the model.

        Args:
            operation: the operation to call.
            arguments: values by argument name. UNSET values are not sent.

        Raises:
            ToolError: the request was refused or failed, or the status of the response is 300 or higher.
        """
        if (oauth := self._oauth) is None:
            credentials = credentials_for(operation, self._schemes, self._environ)
        else:
            credentials = await oauth.credentials(operation)
        remember_secrets(credentials.secrets)
        request = build_request(operation, arguments, self._addresses.of(operation.server), credentials)
        host = self._host(request.url, operation)
        deadline = asyncio.get_running_loop().time() + (seconds := self.timeout)
        method, repeatable = request.method, _repeatable(request)
        try:
            async with asyncio.timeout_at(deadline):
                answer, request, redirect = await self._send_following_redirects(
                    request, credentials.certificate, deadline
                )
                if oauth is not None and answer[0] in (401, 403):
                    again = await oauth.credentials_for_retry(
                        operation, credentials, *answer[:2], repeatable=repeatable
                    )
                    # After status 303, the original request has succeeded, and only the later GET request was refused.
                    if again is not NO_CREDENTIALS and (repeatable or request.method == method):
                        credentials = again
                        remember_secrets(credentials.secrets)
                        request = build_request(operation, arguments, self._addresses.of(operation.server), credentials)
                        answer, request, redirect = await self._send_following_redirects(
                            request, credentials.certificate, deadline
                        )
        except (TimeoutError, httpcore.TimeoutException):
            raise ToolError(
                f"{operation.method} {operation.path}: {host} did not answer within {seconds:g} seconds.\n"
                "hint: request less data, or try again later."
            ) from None
        except (httpcore.ConnectError, OSError) as error:
            raise ToolError(
                f"{operation.method} {operation.path}: no connection to {host} ({_cause(error)}).\nhint: ask "
                "the person who runs this server to check that the API is reachable and that "
                f"{self._addresses.variable(operation.server)} is right."
            ) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.DecodingError, httpx.RequestError) as error:
            why = str(error) if isinstance(error, httpx.DecodingError) else type(error).__name__
            raise ToolError(
                f"{operation.method} {operation.path}: the connection to {host} was interrupted ({why})."
            ) from None
        read = partial(self._result, answer, operation, arguments, url=request.url, redirect=redirect)
        slow = len(answer[2]) > _LARGE or is_xml(answer[1].get("content-type", ""))
        secrets = credentials.secrets
        return await asyncio.to_thread(read, secrets=secrets) if slow else read(secrets=secrets)

    def _result(
        self,
        answer: _HttpAnswer,
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        secrets: tuple[str, ...],
        url: str,
        redirect: Redirect | None,
    ) -> ToolResult:
        """Return the result for the model, without the server's credentials, which some APIs repeat."""
        redaction = Redaction(secrets)
        try:
            result = to_tool_result(
                answer[0],
                redaction.headers(answer[1]),
                redaction.content(answer[2]),
                operation,
                arguments=arguments,
                url=url,
                redirect=redirect,
                schemes=self._schemes,
                variable=self._addresses.variable(operation.server),
                cut=answer[3],
                max_text=sys.maxsize if READ_BY_CODE.get() else self._max_text,
                store_file=response_file_writer(self._environ),
            )
        except ToolError as error:
            raise ToolError(redaction.text(str(error))) from None
        return redaction.result(result)

    async def aclose(self) -> None:
        """Close the connections, after which the client can be used again."""
        clients, self._clients = self._clients, {}
        if self._loop is asyncio.get_running_loop():
            for client in clients.values():
                await client.aclose()

    async def __aenter__(self) -> Upstream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _make_oauth(self, name: str, clock: Callable[[], float]) -> OAuthCredentials | None:
        if not any(scheme.kind == "oauth2" for scheme in self._schemes.values()):
            return None
        from mcpfactory_runtime.upstream.tokens import OAuthCredentials, login_base_url  # noqa: PLC0415 - for APIs with OAuth only

        return OAuthCredentials(
            self._schemes,
            base_url=self._base_url,
            current_url=lambda: login_base_url(self._addresses),
            name=name,
            environ=self._environ,
            fetch=self._fetch,
            clock=clock,
        )

    def _open(self, certificate: Certificate) -> httpx.AsyncClient:
        """Return the HTTP client of this event loop for a certificate."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._clients = {}
        client = self._clients.get(certificate)
        if client is None:
            client = self._clients[certificate] = httpx.AsyncClient(
                transport=_Transport(
                    AddressCheckingBackend(self._settings, self._addresses, self._private),
                    tls_context(self._settings, certificate, httpx.create_ssl_context),
                ),
                headers={"User-Agent": f"mcpfactory-runtime/{_VERSION}", "Accept-Encoding": ACCEPTED},
                # The call has a deadline, so no other timeouts are needed.
                timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT),
                # No cookies are stored, because one caller must not get another caller's cookies.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                follow_redirects=False,
                trust_env=False,
            )
        return client

    async def _fetch(self, fetch: Fetch) -> HttpAnswer:
        from mcpfactory_runtime.oauth.steps_and_metadata import FETCH_SIZE, FETCH_TIME, HttpAnswer, OAuthError  # noqa: PLC0415 - for APIs with OAuth only

        request = UpstreamRequest(fetch.method, fetch.url, tuple(fetch.headers.items()), fetch.content)
        try:
            async with asyncio.timeout(FETCH_TIME):
                status, headers, content, cut = await self._exchange(request, None, FETCH_SIZE)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, *_FAULTS) as error:
            raise OAuthError("unreachable", f"no answer from {urlsplit(fetch.url).netloc} ({_cause(error)})") from None
        if cut:
            raise OAuthError(
                "bad_response", f"{fetch.url} answered with more than {FETCH_SIZE} bytes, which is too large"
            )
        return HttpAnswer(status, headers, content)

    def _host(self, url: str, operation: Operation) -> str:
        place = host_port_of(url)
        try:
            httpx.URL(url)
        except httpx.InvalidURL:
            place = ""
        if not place:
            raise ToolError(
                f"{operation.method} {operation.path}: the API's address is not a complete http or https "
                f"URL.\nhint: ask the person who runs this server to set {self._addresses.variable(operation.server)}, for "
                "example to https://api.example.com/v1."
            )
        return place

    async def _send_following_redirects(
        self, request: UpstreamRequest, certificate: Certificate, deadline: float
    ) -> tuple[_HttpAnswer, UpstreamRequest, Redirect | None]:
        """Send a request and follow redirects, and return the last answer, its request, and any refused redirect."""
        redirects = RedirectTracker()
        while True:
            answer = await self._with_retries(request, certificate, deadline)
            found = redirects.next(request.method, request.url, answer[0], answer[1].get("location", ""))
            if found is None or found.refusal:
                return answer, request, found
            request = request.redirected(found)

    async def _with_retries(self, request: UpstreamRequest, certificate: Certificate, deadline: float) -> _HttpAnswer:
        loop = asyncio.get_running_loop()
        for attempt in range(_RETRIES + 1):
            final = attempt == _RETRIES or not _repeatable(request)
            wait = self._retry_wait * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 - jitter, not cryptography
            try:
                answer = await self._exchange(request, certificate, self._max_bytes, attempt)
            except (httpcore.ConnectError, httpcore.ReadError, httpcore.RemoteProtocolError):
                if final or loop.time() + wait >= deadline:
                    raise
            else:
                if final or answer[0] not in _TRANSIENT:
                    return answer
                wait = _retry_after(answer[1], wait)
                if wait > _LONGEST_WAIT or loop.time() + wait >= deadline:
                    return answer
            await asyncio.sleep(wait)
        raise AssertionError(
            "internal error: the last attempt neither returned nor raised (this is a bug; please report it)"
        )

    async def _exchange(
        self, request: UpstreamRequest, certificate: Certificate, limit: int, attempt: int = 0
    ) -> _HttpAnswer:
        """Send one request, and cut the content of the response at `limit` bytes."""
        client = self._open(certificate if request.url.startswith("https:") else None)
        headers = request.headers
        if request.keys is not None:
            headers = sign(request.keys, request.method, request.url, headers, request.content)
        with trace_api_call(request.method, request.url, attempt) as call:
            sent = client.build_request(
                request.method,
                request.url,
                headers=[(name.encode(), value.encode()) for name, value in (*headers, *_added(call, headers))],
                content=request.content,
            )
            response = await client.send(sent, stream=True)
            call.answered(response.status_code)
            try:
                content = bytearray()
                async for chunk in aiter_decoded(response):
                    content += chunk
                    if len(content) > limit:
                        break
            finally:
                await response.aclose()
        answered = {name.lower(): value for name, value in response.headers.items()}
        return response.status_code, answered, bytes(content[:limit]), len(content) > limit


def _added(call: TracedCall, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    given = {name.lower() for name, _ in headers}
    return [(name, value) for name, value in call.headers.items() if name not in given]


def _repeatable(request: UpstreamRequest) -> bool:
    return request.method in _REPEATABLE and not request.once


def _cause(error: BaseException) -> str:
    """Return the reason of a failed connection, with advice if the certificate is not trusted."""
    untrusted = isinstance(find_os_error(error), ssl.SSLCertVerificationError)
    return connection_error_reason(error) + ("; set MCPFACTORY_CA_FILE to trust other authorities" if untrusted else "")


def _retry_after(headers: Mapping[str, str], default: float) -> float:
    """Return the seconds in Retry-After (RFC 9110 §10.2.3). A date counts as more than the longest permitted wait."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return default
    return float(value) if value.isdecimal() and len(value) < 6 else _LONGEST_WAIT + 1


def response_file_writer(environ: Mapping[str, str]) -> Callable[[bytes, str], str] | None:
    """Return a function that stores content in the directory MCPFACTORY_FILES, or None if the variable is unset.

    The file name is a digest of the content, with an extension for the media type. Only the owner may read the file.
    """
    folder = environ.get("MCPFACTORY_FILES", "")
    return (lambda content, kind: _store_file(Path(folder), content, kind)) if folder else None


def _store_file(folder: Path, content: bytes, kind: str) -> str:
    from mimetypes import guess_extension  # noqa: PLC0415 - rarely needed

    path = folder.absolute() / f"{sha256(content).hexdigest()[:24]}{guess_extension(kind) or '.bin'}"
    try:
        if not path.is_file():
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            with os.fdopen(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
            ) as file:
                file.write(content)
            temporary.replace(path)
    except OSError as error:
        raise ToolError(
            f"The answer could not be stored as a file: {error.strerror}.\nhint: ask the person who runs this "
            "server to check the folder in MCPFACTORY_FILES."
        ) from None
    return path.as_uri()


class _Body(httpx.AsyncByteStream):
    """The body of a response, whose first `aclose` returns the connection to the pool."""

    def __init__(self, stream: Any, release: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._release: Callable[[], Awaitable[None]] | None = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        release, self._release = self._release, None
        try:
            await self._stream.aclose()
        finally:
            if release is not None:
                await release()


class _Transport(httpx.AsyncBaseTransport):
    """Transport with our own connection pool and network backend, which httpx's transport does not accept."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, trust: ssl.SSLContext) -> None:
        self._pool = ConnectionPool(trust, backend, _CONNECTIONS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        response, release = await self._pool.send(
            httpcore.Request(
                request.method, url, headers=request.headers.raw, content=request.stream, extensions=request.extensions
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream, release),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()
