"""MCP client that detects the lifecycle of a server.

Params and results are dicts, as in the protocol. The client first sends `server/discover` (basic/versioning, Backward
Compatibility). A server uses the per-request lifecycle if it returns a result or an error of that lifecycle. After any
other response, or after a timeout, the client sends `initialize`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from mcpfactory_runtime.client.channel import (
    ClientChannel,
    HttpError,
    ProtocolError,
    SessionEndedError,
    StreamEndedError,
)
from mcpfactory_runtime.client.http_messages import current_trace_metadata, header_parameters, mcp_request_headers
from mcpfactory_runtime.client.results import ResultCache, typed_result
from mcpfactory_runtime.client.session import (
    ClientSession,
    Handlers,
    Progress,
    Subscription,
    Transcript,
    subscription_filter,
)
from mcpfactory_runtime.client.stdio import MemoryChannel, MemoryConnectionEnd, StdioChannel
from mcpfactory_runtime.protocol.connection import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_SERVER,
    META_VERSION,
)
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    McpError,
)
from mcpfactory_runtime.protocol.http import header_annotation_error
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, MODERN, Revision
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.client.oauth import OAuth

T = TypeVar("T")
Mode = Literal["auto", "legacy", "modern"]

_MODERN_ERRORS: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
_MAX_PAGES: Final = 1_000
_LOG: Final = logging.getLogger(__name__)
_MAX_ROUNDS: Final = 20  # maximum number of `input_required` results per call


class Client:
    """MCP client, as an async context manager.

    >>> async with Client.connect_stdio(["python", "-m", "notes"]) as client:
    ...     print([tool["name"] for tool in await client.list_tools()])

    Args:
        channel: connection to the server. `connect_stdio`, `connect_http` and `connect_memory` create a channel.
        mode: the lifecycle; "auto" detects it.
        revision: the revision to request; "" is the newest revision of the lifecycle. In mode "auto", a given revision
            determines the lifecycle.
        elicitation, sampling: handlers of these requests. A handler takes the params, and returns the result or an
            awaitable of the result.
        roots: list of roots for `roots/list`, or a function that returns the list.
        capabilities: capabilities to declare instead of those that the handlers imply.
        notified: function that is called with (method, params) of each notification.
        info: `Implementation` object of this client.
        timeout: seconds to wait for a response; None waits forever.
        probe_timeout: maximum seconds for a process to start and answer `server/discover`, before the client
            tries `initialize`.
        log_level: lowest level of log messages to request from the server; "" requests no log messages.
        kept: maximum number of messages in the transcript. The oldest messages are dropped first.
        cache: True to cache lists and resources. An entry is valid until it expires or the server reports a change.

    Attributes:
        revision: record of the negotiated revision.
        server_info, capabilities, instructions: the server's description of itself.
        transcript: the messages so far.

    Methods that call the server raise McpError for an error response, HttpError for a response without a message,
    TimeoutError, ConnectionLostError or ProtocolError.
    """

    def __init__(
        self,
        channel: ClientChannel,
        *,
        mode: Mode = "auto",
        revision: str = "",
        elicitation: Callable[[Json], Any] | None = None,
        sampling: Callable[[Json], Any] | None = None,
        roots: Sequence[Json] | Callable[[], Any] | None = None,
        capabilities: Json | None = None,
        notified: Callable[[str, Json], Any] | None = None,
        info: Json | None = None,
        timeout: float | None = 30.0,
        probe_timeout: float = 20.0,
        log_level: str = "",
        kept: int = 10_000,
        cache: bool = False,
    ) -> None:
        self.revision: Revision = LATEST
        self.header_parameters: dict[str, dict[tuple[str, ...], str]] = {}
        self.server_info: Json = {}
        self.capabilities: Json = {}
        self.instructions = ""
        self.log_level = log_level
        self._mode = mode
        self._requested = revision
        # Version in sent messages. The user may request a version that this client does not know.
        self._version = revision or LATEST.name
        self._handlers = Handlers(elicitation, sampling, roots)
        self._declared = capabilities
        self._notified = notified
        self._info = info or {"name": "mcpfactory", "version": "0"}
        self._timeout = timeout
        self._probe_timeout = probe_timeout
        self._negotiated = False
        self._handshakes = 0
        self._renewing = asyncio.Lock()
        self._kept = kept
        self._cache = ResultCache() if cache else None
        self._session = self._new_session(channel)

    # --- connecting ---

    @classmethod
    def connect_stdio(
        cls,
        command: Sequence[str | os.PathLike[str]],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        *,
        inherit: bool = True,
        start_new_session: bool = False,
        **options: Any,
    ) -> Client:
        """Return a client for a server in a child process.

        `env` adds variables to the server's environment. `inherit` adds the variables of this process. With
        `start_new_session` (setsid), Ctrl-C in our terminal does not interrupt the server.
        """
        return cls(StdioChannel(command, env, cwd, inherit=inherit, start_new_session=start_new_session), **options)

    @classmethod
    def connect_http(
        cls, url: str, headers: Mapping[str, str] | None = None, oauth: OAuth | None = None, **options: Any
    ) -> Client:
        """Return a client for a server at an http or https URL.

        Args:
            url: URL of the MCP endpoint.
            headers: headers for each request, such as Authorization.
            oauth: token provider, because of which calls may also raise OAuthError.
            **options: arguments of `Client`.
        """
        from mcpfactory_runtime.client.http import HttpChannel  # noqa: PLC0415 - the HTTP library is loaded on demand

        return cls(HttpChannel(url, headers, oauth), **options)

    @classmethod
    def connect_memory(cls, stream: MemoryConnectionEnd, **options: Any) -> Client:
        """Return a client for a server in this process."""
        return cls(MemoryChannel(stream), **options)

    async def __aenter__(self) -> Client:
        try:
            await self._session.open()
            await self._choose()
        except BaseException:
            await self._session.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection, and end the server's process if the client started the process."""
        await self._session.aclose()

    @property
    def channel(self) -> ClientChannel:
        """Return the channel of the connection."""
        return self._session.channel

    @property
    def transcript(self) -> Transcript:
        """Return the messages so far."""
        return self._session.transcript

    @property
    def lost(self) -> Exception | None:
        """Return the error that ended the connection, or None while the connection is open."""
        return self._session.ended

    @property
    def stderr(self) -> str:
        """Return the end of the server's stderr output."""
        return self._session.channel.diagnostics

    @property
    def modern(self) -> bool:
        """Return True if the connection uses the per-request lifecycle."""
        return self.revision.modern

    async def _choose(self) -> None:
        requested = self._requested
        mode = self._mode
        if mode == "auto" and requested:
            mode = "modern" if requested in MODERN else "legacy"
        if mode == "legacy":
            await self._initialize_anywhere(requested or LATEST_LEGACY.name)
        elif mode == "modern":
            await self._discover(requested or LATEST.name)
        elif not await self._probe():
            await self._initialize_or_discover()

    async def _probe(self) -> bool:
        """Send `server/discover`, and return False if the server needs `initialize`."""
        try:
            return await self._discover(LATEST.name, timeout=self._probe_timeout)
        except McpError as error:
            if error.code not in _MODERN_ERRORS:
                return False
            supported = error.data.get("supported", []) if isinstance(error.data, dict) else []
            common = sorted(set(MODERN).intersection(name for name in supported if isinstance(name, str)))
            if not common and LEGACY.keys() & {name for name in supported if isinstance(name, str)}:
                return False
            if not common:
                raise
            return await self._discover(common[-1])
        except (HttpError, ProtocolError, StreamEndedError, TimeoutError):
            return False

    async def _initialize_or_discover(self) -> None:
        """Send `initialize`, and after a refusal again `server/discover`, whose first attempt may have timed out."""
        try:
            await self._initialize_anywhere(LATEST_LEGACY.name)
        except McpError as refusal:
            with suppress(McpError, HttpError, TimeoutError):
                if await self._discover(LATEST.name):
                    return
            raise refusal

    async def _discover(self, version: str, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as `request`
        """Send `server/discover`, and return False if the result has no version of the per-request lifecycle."""
        self._use_revision(version, MODERN.get(version, LATEST))
        result = await self.request("server/discover", timeout=timeout or self._timeout)
        self._set_server(result, (result.get("_meta") or {}).get(META_SERVER))
        listed = result.get("supportedVersions")
        supported = [name for name in MODERN if isinstance(listed, list) and name in listed]
        if not self._requested and supported and version not in supported:
            self._use_revision(max(supported), MODERN[max(supported)])
        return bool(supported)

    async def _initialize_anywhere(self, version: str) -> None:
        """Send `initialize`, with HTTP+SSE if the URL does not support Streamable HTTP."""
        try:
            await self._initialize(version)
        except HttpError as error:
            if error.status not in (400, 404, 405):
                raise
            from mcpfactory_runtime.client.http import HttpChannel, SseChannel  # noqa: PLC0415 - as in connect_http

            channel = self._session.channel
            if not isinstance(channel, HttpChannel):
                raise
            before = self._session
            self._session = self._new_session(SseChannel(channel.url, channel.own_headers, channel.oauth))
            self._session.transcript.extend(before.transcript)
            await before.aclose()
            try:
                await self._session.open()
            except (HttpError, ProtocolError):
                raise error from None
            await self._initialize(version)

    async def _initialize(self, version: str) -> None:
        self._use_revision(version, LEGACY.get(version, LATEST_LEGACY))
        self._negotiated = False
        params = {"protocolVersion": version, "capabilities": self._capabilities(), "clientInfo": self._info}
        result = await self._request_once("initialize", params, cancellable=False)
        self._set_server(result, result.get("serverInfo"))
        answered = result.get("protocolVersion")
        if answered not in LEGACY:
            raise ProtocolError(
                f"the initialize response has protocol version {answered!r}: the version is unknown or has no "
                "initialize handshake"
            )
        self._use_revision(answered, LEGACY[answered])
        await self._session.notify("notifications/initialized")
        await self.channel.start_listening(self._headers({}))
        if self.log_level and "logging" in self.capabilities:
            await self._request_once("logging/setLevel", {"level": self.log_level})
        self._handshakes += 1

    async def _renew_session(self, handshakes: int) -> None:
        """Start a new session, unless another request has started it after the handshake number `handshakes`."""
        async with self._renewing:
            if self._handshakes != handshakes:
                return
            try:
                await self._initialize(self._version)
            except (McpError, HttpError, ProtocolError) as error:
                self._session.lost(error)
                raise
            await self._session.renew_subscriptions()

    def _use_revision(self, version: str, revision: Revision) -> None:
        self._version, self.revision, self._negotiated = version, revision, True

    def _set_server(self, result: Json, info: Any) -> None:
        capabilities = result.get("capabilities")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.server_info = info if isinstance(info, dict) else {}
        self.instructions = str(result.get("instructions") or "")

    # --- calling ---

    async def request(
        self,
        method: str,
        params: Json | None = None,
        *,
        timeout: float | None = -1,  # noqa: ASYNC109 - a timeout also notifies the server
        progress: Progress | None = None,
        cancellable: bool = True,
    ) -> Json:
        """Send one request and return its result unchanged, even if the result is `input_required`.

        If the server has ended the session, the client starts a new session, and sends the request again.

        Args:
            method: name of the method.
            params: params of the request. The client adds `_meta` of the lifecycle and the trace.
            timeout: maximum seconds for the response. The value -1 means the client's timeout, and None means no limit.
            progress: receives the params of progress notifications for this request.
            cancellable: True to notify the server if the caller abandons the request.
        """
        cache = self._cache if method in self.revision.cacheable else None
        if cache is not None and (known := cache.find(method, params)) is not None:
            return known
        async with self._renewing:
            handshakes = self._handshakes
        options: Json = {"timeout": timeout, "progress": progress, "cancellable": cancellable}
        try:
            result = await self._request_once(method, params, **options)
        except SessionEndedError:
            await self._renew_session(handshakes)
            result = await self._request_once(method, params, **options)
        if cache is not None:
            cache.keep(method, params, result)
        return result

    async def _request_once(
        self,
        method: str,
        params: Json | None,
        *,
        timeout: float | None = -1,  # noqa: ASYNC109 - as `request`
        progress: Progress | None = None,
        cancellable: bool = True,
    ) -> Json:
        request_id = self._session.next_id()
        full = self._with_meta(params, request_id if progress is not None else None)
        limit = self._timeout if timeout == -1 else timeout
        return await self._session.request(
            request_id, method, full, timeout=limit, progress=progress, cancel=cancellable
        )

    async def call(
        self,
        method: str,
        params: Json,
        *,
        timeout: float | None = -1,  # noqa: ASYNC109 - as `request`
        progress: Progress | None = None,
    ) -> Json:
        """Send a request, answer the server's input requests (`input_required`), and return the complete result."""
        result = await self.request(method, params, timeout=timeout, progress=progress)
        for _ in range(_MAX_ROUNDS):
            if result.get("resultType", "complete") != "input_required":
                return result
            wanted = result.get("inputRequests") or {}
            answers = {key: await self._input_response(key, one) for key, one in wanted.items()}
            again = {**params, **({"inputResponses": answers} if answers else {})}
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            result = await self.request(method, again, timeout=timeout, progress=progress)
        raise ProtocolError(f"the server still requests input after {_MAX_ROUNDS} rounds of {method}")

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
    ) -> Subscription:
        """Subscribe to changes of the selected lists, and of the resources at `uris`."""
        wanted = subscription_filter(tools, prompts, resources, uris)
        listen = self._with_meta({"notifications": wanted}, None) if self.modern else None
        return Subscription(self._session, wanted, listen, self._timeout)

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        await self._session.notify(method, params)

    async def send_raw(self, data: bytes) -> None:
        """Send bytes as a message."""
        self.transcript.sent(data.decode("utf-8", "replace"))
        await self.channel.send_raw(data)

    async def ping(self) -> None:
        """Check that the server responds to `ping`, or to `server/discover` in the per-request lifecycle."""
        await self.request("server/discover" if self.modern else "ping")

    async def set_log_level(self, level: str) -> None:
        """Request log messages of this level and above."""
        self.log_level = level
        if not self.modern:
            await self.request("logging/setLevel", {"level": level})

    # --- tools, resources, prompts, completion ---

    async def list_tools(self, *, keep_invalid: bool = False) -> list[Json]:
        """Return the tools of all pages.

        In the per-request lifecycle over HTTP, the list omits tools with an invalid `x-mcp-header` (Custom Headers),
        unless `keep_invalid` is True.
        """
        tools = await self._pages("tools/list", "tools")
        if self.channel.http and self.revision.method_header and not keep_invalid:
            tools = [tool for tool in tools if _usable(tool)]
        self.header_parameters = {str(tool.get("name")): header_parameters(tool) for tool in tools}
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Json | None = None,
        *,
        progress: Progress | None = None,
        timeout: float | None = -1,  # noqa: ASYNC109 - as `request`
    ) -> Json:
        """Call a tool. The result of a failed tool has `isError`."""
        params = {"name": name, "arguments": arguments or {}}
        try:
            return await self.call("tools/call", params, timeout=timeout, progress=progress)
        except McpError as error:
            if error.code != HEADER_MISMATCH or not self.channel.http:
                raise
            known = self.header_parameters.get(name)
            await self.list_tools()  # the listed schemas mark the arguments that must be repeated in headers
            if self.header_parameters.get(name) == known:
                raise
        return await self.call("tools/call", params, timeout=timeout, progress=progress)

    async def call_tool_as(self, kind: type[T], name: str, arguments: Json | None = None, **options: Any) -> T:
        """Call a tool and return its result as a `kind`, such as a pydantic model, a dataclass or `list[str]`.

        `options` are arguments of `call_tool`.

        Raises:
            ResultError: the tool failed, or the result has another type.
        """
        return typed_result(await self.call_tool(name, arguments, **options), kind)

    async def list_resources(self) -> list[Json]:
        """Return the resources of all pages."""
        return await self._pages("resources/list", "resources")

    async def list_resource_templates(self) -> list[Json]:
        """Return the resource templates of all pages."""
        return await self._pages("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str) -> list[Json]:
        """Return the contents of a resource."""
        contents: list[Json] = (await self.call("resources/read", {"uri": uri})).get("contents", [])
        return contents

    async def list_prompts(self) -> list[Json]:
        """Return the prompts of all pages."""
        return await self._pages("prompts/list", "prompts")

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        """Return a prompt with its arguments filled in."""
        return await self.call("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    async def complete(self, ref: Json, argument: str, value: str, context: Mapping[str, str] | None = None) -> Json:
        """Return completions for an argument of a prompt or template: `values`, and maybe `total` and `hasMore`."""
        params: Json = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        completion: Json = (await self.request("completion/complete", params)).get("completion", {})
        return completion

    async def _pages(self, method: str, member: str) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            result = await self.request(method, {} if cursor is None else {"cursor": cursor})
            page = result.get(member)
            if not isinstance(page, list):
                raise ProtocolError(f"the response to {method} has no list {member!r}")
            if not all(isinstance(one, dict) for one in page):
                raise ProtocolError(f"the response to {method} contains an item that is not an object")
            found += page
            cursor = result.get("nextCursor")
            if cursor is None:
                return found
            if cursor in seen:
                raise ProtocolError(f"{method} returned the same nextCursor twice")
            seen.add(cursor)
        raise ProtocolError(f"{method} has more than {_MAX_PAGES} pages")

    # --- metadata of messages, and requests of the server ---

    def _new_session(self, channel: ClientChannel) -> ClientSession:
        session = ClientSession(
            channel, self._answer, self._listen, self._headers, lambda: self.revision, kept=self._kept
        )
        if self._cache is not None:
            session.watchers.add(self._cache)
        return session

    def _with_meta(self, params: Json | None, progress_token: int | None) -> Json | None:
        given: Json = (params or {}).get("_meta") or {}
        meta: Json = current_trace_metadata(given)
        meta |= {} if progress_token is None else {"progressToken": progress_token}
        if self.revision.modern:
            meta |= {META_VERSION: self._version, META_CLIENT: self._info, META_CAPABILITIES: self._capabilities()}
            meta |= {META_LOG_LEVEL: self.log_level} if self.log_level else {}
        if not meta:
            return params
        return {**(params or {}), "_meta": {**meta, **given}}

    def _headers(self, message: Json) -> dict[str, str]:
        if self.revision.modern:
            return mcp_request_headers(message, self._version, self.revision, self.header_parameters)
        return {"MCP-Protocol-Version": self._version} if self._negotiated and self.revision.version_header else {}

    def _capabilities(self) -> Json:
        return self._handlers.capabilities(self.revision) if self._declared is None else self._declared

    async def _answer(self, method: str, params: Json) -> Json:
        if method == "ping":
            return {}
        return await self._handlers.answer(method, params)

    async def _input_response(self, key: str, wanted: Any) -> Json:
        if not isinstance(wanted, dict) or not isinstance(wanted.get("method"), str):
            raise ProtocolError(f"the input request {key!r} has no method")
        try:
            row = self.revision.rows["client_requests"].get(wanted["method"], wanted["method"])
            return await self._handlers.answer(row, wanted.get("params") or {})
        except McpError as error:
            if error.code == METHOD_NOT_FOUND:
                raise ProtocolError(
                    f"the server requests {wanted['method']}, a capability that this client did not declare"
                ) from None
            raise

    async def _listen(self, method: str, params: Json) -> None:
        if self._notified is not None:
            result = self._notified(method, params)
            if hasattr(result, "__await__"):
                await result


def _usable(tool: Json) -> bool:
    fault = header_annotation_error(tool.get("inputSchema"))
    if fault:
        _LOG.warning("tool %r is omitted: %s", tool.get("name"), fault)
    return not fault
