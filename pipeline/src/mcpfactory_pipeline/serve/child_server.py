"""A server behind the gateway: its process, and its tools, resources and prompts under distinct names.

The process starts at the first call, stops when it is idle, and restarts after it has ended. For each call, the gateway
forwards the server's result, progress, log messages and questions. The server asks a question by ending its request
(`input_required`), so the gateway knows the call of each question.

The gateway's names have the form `<server>_<name>`. The server part never contains `_`, so tools of different servers
never have the same name. A hash of server and name is appended if a character had to be replaced, or if the name is too
long or ends like such a hash.

Hidden characters are removed from all texts of the server, by the rule `security.hidden-text` of `validate`. An item is
omitted if hidden characters are in its name, or in a value that a caller has to repeat.
"""

from __future__ import annotations

import asyncio
import hashlib
import operator
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.ids import format_time, utc_now
from mcpfactory_pipeline.base.text import INVISIBLE
from mcpfactory_pipeline.launch.start_command import parse_start_script_error
from mcpfactory_runtime import Context, McpError, ToolError
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.schemas.walk import APPLICATORS
from mcpfactory_runtime.server.remote import relay
from mcpfactory_runtime.server.remote.relay import forward
from mcpfactory_runtime.types import Json

Condition = Literal["asleep", "starting", "awake", "broken"]

_START_TIMEOUT: Final = 60.0  # seconds; timeout of a server's first response
_MAX_ERROR: Final = 500  # maximum characters of a stored error


class ChildServer:
    """A server behind the gateway, and its only connection, which all calls share.

    Args:
        name: name of the server.
        command: returns the command that starts the server on stdio; called in a thread, because it may create an
            environment.
        environ: all environment variables of the server's process.
        url: URL of a server that runs elsewhere; `command` is not called for such a server.
        idle: seconds without a call before the server is stopped.
        on_started: called with the server's client after each start, concurrently with calls.
        on_log: called with each log message of the server, and the running calls.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[], Sequence[str]],
        environ: Mapping[str, str],
        *,
        url: str = "",
        idle: float,
        on_started: Callable[[ChildServer, Client], Awaitable[None]],
        on_log: Callable[[Sequence[Context], Json], None],
    ) -> None:
        self.name = name
        self.calls = self.cleaned = self.errors = self.starts = 0
        self.last_error = ""
        self.condition: Condition = "asleep"
        self.since = format_time(utc_now())
        self._command, self._environ, self._idle = command, environ, idle
        self._url = url
        self._on_started, self._on_log = on_started, on_log
        self._client: Client | None = None
        self._starting = asyncio.Lock()
        # Running calls, oldest first; the dict serves as an ordered set.
        self._flights: dict[Context, None] = {}
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """Return the number of running calls."""
        return len(self._flights)

    @property
    def awake(self) -> Client | None:
        """The server's client; None if the client is not ready for a call."""
        return self._client if self._client is not None and self._client.lost is None else None

    async def call(self, method: str, params: Json, ctx: Context) -> Json:
        """Return the result of one request. The server's questions go to the caller behind `ctx`.

        Raises:
            ToolError: the server cannot be started, or it ended during the call.
            McpError: the server returned an error.
        """
        self.calls += 1
        self._flights[ctx] = None
        try:
            client = self._client
            if client is None or client.lost is not None:
                client = await self._running_client()
            return await forward(client, method, params, ctx, plain=self._plain)
        except (ConnectionLostError, ProtocolError, TimeoutError, PipelineError) as error:
            raise self._tool_error(error) from None
        except McpError as error:
            self.errors += 1
            raise McpError(error.code, self._plain(error.message), self._plain(error.data)) from None
        except ToolError:
            self.errors += 1
            raise
        finally:
            self._land(ctx)

    def _land(self, flight: Context) -> None:
        self._flights.pop(flight, None)
        if not self._flights:
            self._wait_idle()

    async def probe(self) -> None:
        """Start the server, so that `on_started` receives its listing.

        Raises:
            ToolError: the server cannot be started.
        """
        try:
            await self._running_client()
        except (ConnectionLostError, ProtocolError, TimeoutError, McpError, PipelineError) as error:
            raise self._tool_error(error) from None
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stop_idle()

    async def aclose(self) -> None:
        """Stop the process."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # the previous process may still be exiting
        self._set_condition("asleep")

    # -- starting and stopping -------------------------------------------------------------------------------------

    async def _running_client(self) -> Client:
        """Return a client of the running server; start the server if necessary."""
        async with self._starting:
            if self._client is not None and self._client.lost is None:
                return self._client
            old, self._client = self._client, None
            if old is not None:
                await old.aclose()
            self._set_condition("starting")
            self.starts += 1
            try:
                client = await self._new_client()
            except asyncio.CancelledError:
                self._set_condition("asleep")
                raise
            try:
                await client.__aenter__()
            except McpError as error:
                raise ProtocolError(f"the server rejected the initialize request: {error}") from None
            except asyncio.CancelledError:  # the first caller canceled, and no other call runs
                self._set_condition("asleep")
                raise
            self._client = client
            self._set_condition("awake")
            self._spawn(self._on_started(self, client))
            return client

    async def _new_client(self) -> Client:
        options: dict[str, Any] = {
            "timeout": _START_TIMEOUT,
            "probe_timeout": _START_TIMEOUT,
            "notified": self._notified,
            "capabilities": {},
            "kept": 0,
        }
        if self._url:
            return Client.connect_http(self._url, **options)
        return Client.connect_stdio(await asyncio.to_thread(self._command), self._environ, inherit=False, **options)

    def _wait_idle(self) -> None:
        """Start the timer that stops an idle server, or let an earlier timer continue."""
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        if self._idle_timer is None:
            self._idle_timer = loop.call_later(self._idle, self._look_idle)

    def _look_idle(self) -> None:
        loop = asyncio.get_running_loop()
        end = self._idle_since + self._idle
        self._idle_timer = None
        if self._flights:
            return  # when the last call ends, a new timer starts
        if loop.time() < end:
            self._idle_timer = loop.call_at(end, self._look_idle)
        else:
            self._stop_idle()

    def _stop_idle(self) -> None:
        if self._flights or self._client is None:
            return
        client, self._client = self._client, None
        self._set_condition("asleep")
        self._spawn(client.aclose())

    def _tool_error(self, error: Exception) -> ToolError:
        """Return the error for the caller, with a remedy or a hint to repeat the call."""
        self.errors += 1
        said = strip_invisible_characters(str(error))  # the error contains the last lines of the server's stderr
        failure = error if isinstance(error, PipelineError) else parse_start_script_error(said)
        self.last_error = str(failure or said)[:_MAX_ERROR]
        if self._client is None or self._client.lost is not None:
            self._set_condition("broken")
        if failure is not None:
            return ToolError(f"The server {self.name} does not start: {failure}\nhint: {failure.hint}")
        return ToolError(
            f"The server {self.name} cannot answer: {said}\nhint: call again, which restarts it; this call "
            "may have taken effect"
        )

    def _plain(self, said: Any) -> Any:
        """Return the server's data without invisible characters, and count the changed messages."""
        plain = sanitize_answer(said)
        self.cleaned += plain is not said
        return plain

    def _set_condition(self, condition: Condition) -> None:
        if condition != self.condition:
            self.condition, self.since = condition, format_time(utc_now())

    def _notified(self, method: str, params: Json) -> None:
        if method == "notifications/message" and self._flights:
            self._on_log(list(self._flights), self._plain(params))

    def _spawn(self, work: Awaitable[None]) -> None:
        async def quietly() -> None:
            with suppress(ConnectionLostError, ProtocolError, McpError, TimeoutError):
                await work

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


MAX_NAME: Final = 64  # maximum characters of a tool name that all clients accept
_HASH: Final = 8  # hexadecimal digits of the hash at the end of a shortened name
_MARKED: Final = re.compile(r"_[0-9a-f]{8}$")
_SCHEME: Final = "mcp://"


@dataclass(frozen=True, slots=True)
class ServerListing:
    """The listing of a server in wire format. `complete` is True if it came from the running server."""

    tools: tuple[Json, ...] = ()
    resources: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    prompts: tuple[Json, ...] = ()
    instructions: str = ""
    complete: bool = False


def inner_uri(uri: str) -> tuple[str, str] | None:
    """Return the server and the server's own URI for a URI of the gateway; None for any other URI."""
    if not uri.startswith(_SCHEME):
        return None
    server, slash, inner = uri[len(_SCHEME) :].partition("/")
    return (server, inner) if slash and server and inner else None


class GatewayNames(relay.RelayNames):
    """Names and URIs of a server as the gateway's clients see them."""

    def __init__(self, server: str) -> None:
        self._server = server

    def name(self, inner: str) -> str:
        """Return the name of a tool or prompt."""
        part = re.sub(r"[^A-Za-z0-9-]", "-", self._server)
        clean = re.sub(r"[^A-Za-z0-9_-]", "-", inner)
        whole = f"{part}_{clean}"
        if (part, clean) == (self._server, inner) and len(whole) <= MAX_NAME and not _MARKED.search(whole):
            return whole
        mark = hashlib.sha256(f"{self._server}\0{inner}".encode()).hexdigest()[:_HASH]
        return f"{whole[: MAX_NAME - _HASH - 1]}_{mark}"

    def uri(self, inner: str) -> str:
        """Return the URI, or URI template, of a resource."""
        return f"{_SCHEME}{self._server}/{inner}"

    def owns(self, uri: str) -> bool:
        """Return True if a URI of the gateway belongs to the server. The resource may be missing."""
        found = inner_uri(uri)
        return found is not None and found[0] == self._server

    def inner_uri(self, uri: str) -> str:
        """Return the server's own URI for a URI of the gateway."""
        found = inner_uri(uri)
        assert found is not None, "only URIs of the gateway come here"
        return found[1]

    def content(self, block: Any) -> Any:
        """Return a content block with its URIs rewritten for the gateway."""
        if not isinstance(block, dict):
            return block
        if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
            return {**block, "uri": self.uri(block["uri"])}
        held = block.get("resource")
        if block.get("type") == "resource" and isinstance(held, dict) and isinstance(held.get("uri"), str):
            return {**block, "resource": {**held, "uri": self.uri(held["uri"])}}
        return block


_MAX_TEXT: Final = 20_000  # maximum characters of a description, and of instructions
_LOST: Final = f"hidden characters, or text after {_MAX_TEXT:,} characters, left out"
# Members that may be dropped, because no program needs them.
_EXAMPLES: Final = frozenset({"default", "example", "examples"})
_VALUES: Final = frozenset({"const", "enum", "required", "dependentRequired"})
_WORDS: Final = _VALUES | {
    *("name", "uri", "uriTemplate", "mimeType", "type", "format", "pattern"),
    *("$ref", "$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "contentEncoding", "contentMediaType"),
}
"""Members whose values must not change, because programs read them. The texts of all other members are descriptions."""
_SIGNS: Final = re.compile(rb"\\[ubf]|\x7f")  # DEL, and the JSON escapes of ASCII control characters


def sanitize_listing(listing: ServerListing) -> tuple[ServerListing, tuple[str, ...]]:
    """Return a server's listing without hidden characters, and a note about each changed or omitted text."""
    notes: list[str] = []
    instructions = strip_invisible_characters(listing.instructions)[:_MAX_TEXT]
    if instructions != listing.instructions:
        notes.append(f"instructions: {_LOST}")
    found = replace(
        listing,
        tools=tuple(_plain_items(listing.tools, "name", notes)),
        resources=tuple(_plain_items(listing.resources, "uri", notes)),
        templates=tuple(_plain_items(listing.templates, "uriTemplate", notes)),
        prompts=tuple(_plain_items(listing.prompts, "name", notes)),
        instructions=instructions,
    )
    return found, tuple(notes)


def strip_invisible_characters(text: str) -> str:
    """Return a text without invisible characters."""
    return INVISIBLE.sub("", text)


def is_visible_ascii_json(data: bytes) -> bool:
    """Return True if JSON has only visible ASCII characters and white space."""
    return data.isascii() and not _SIGNS.search(data)


def sanitize_answer(value: Any) -> Any:
    """Return a server's value without invisible characters. If nothing changes, return the same object."""
    return value if is_visible_ascii_json(encode(value)) else _plain_value(value)


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else strip_invisible_characters(value)
    if isinstance(value, list):
        items = [_plain_value(one) for one in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, dict):
        members = {strip_invisible_characters(name): _plain_value(one) for name, one in value.items()}
        same = members.keys() == value.keys() and all(members[name] is one for name, one in value.items())
        return value if same else members
    return value


def _plain_items(items: Iterable[Mapping[str, Any]], key: str, notes: list[str]) -> Iterable[dict[str, Any]]:
    for item in items:
        plain = _plain(item)
        name = strip_invisible_characters(str(item[key]))
        if _is_foul(plain):
            notes.append(f"{name}: not offered, because its names or values have hidden characters")
            continue
        if plain != item:
            notes.append(f"{name}: {_LOST}")
        yield plain


def _plain(value: Any, key: str = "") -> Any:
    # Each key is an argument's name, so it may be any string.
    if isinstance(value, Mapping) and APPLICATORS.get(key) == "map":
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Mapping):
        kept = {name: one for name, one in value.items() if not (name in _EXAMPLES and _is_foul(one))}
        return {name: one if name in _VALUES | _EXAMPLES else _plain(one, name) for name, one in kept.items()}
    if isinstance(value, list):
        return [_plain(one, key) for one in value]
    if not isinstance(value, str) or key in _WORDS:
        return value
    return strip_invisible_characters(value)[:_MAX_TEXT]


def _is_foul(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_is_foul(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_is_foul, value))
    return isinstance(value, str) and INVISIBLE.search(value) is not None
