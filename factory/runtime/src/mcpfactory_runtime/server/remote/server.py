"""`RemoteServer`: a remote server that is mounted in a local server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from mcpfactory_runtime.client import Client, HttpError, Subscription
from mcpfactory_runtime.protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.revisions import APPS
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.inputs import Completion
from mcpfactory_runtime.server.registry import CompletionHandler, Tool, registry_key
from mcpfactory_runtime.server.remote.connections import ForwardedCall, RemoteConnections
from mcpfactory_runtime.server.remote.relay import (
    forward,
    relayed_completion,
    relayed_prompt,
    relayed_resource,
    relayed_template,
    relayed_tool,
)
from mcpfactory_runtime.server.server import Server
from mcpfactory_runtime.server.uri_template import UriTemplate
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.urls import host_port_of

if TYPE_CHECKING:
    from mcpfactory_runtime.client.oauth import OAuth


log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 1.0  # seconds before the first retry; the pause doubles after each retry
_LONGEST_PAUSE: Final = 60.0  # maximum seconds between two connection attempts
_LIVED: Final = 10.0  # seconds; a connection that lasts longer resets the retry pause
_PROBE: Final = 60.0  # maximum seconds for a program to start and answer; afterwards, the handshake lifecycle is tried
_LONGEST_NAME: Final = 128  # maximum characters of a tool's name
# Environment variables that a process inherits. Programs need these variables, and the values contain no secrets.
_INHERITED: Final = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERNAME", "USERPROFILE"),
)


class RemoteServer(Server):
    """A remote server at a URL, or a server that a command starts on stdio.

    >>> server.mount(RemoteServer("https://example.com/mcp", headers={"Authorization": "Bearer …"}), "shop")

    The connection opens when the parent server starts, and closes when the parent ends. If the server is unreachable,
    the connection attempt is repeated. Items are listed once the server answers. Middleware and tool transformations
    work as for other mounted servers.

    Args:
        target: a URL, or a program and its arguments.
        name: name for errors and the log. The default is the host or the program.
        headers: headers of every HTTP request to the server, such as Authorization. Headers of callers are never sent.
        oauth: object that obtains access tokens for the server (docs/reference/client.md).
        env: environment variables of the process. The process inherits only variables that every program needs.
        cwd: working directory of the process.
        connect_timeout: maximum seconds for which the local server's start waits for the remote server.
        timeout: seconds to wait for one response, or None to wait until the caller cancels.
        max_connections: maximum number of additional connections for separate sessions, if the server uses a handshake
            revision.
        options: further options of `Client`, such as `revision` and `mode`.

    Raises:
        TypeError: an option does not apply to this kind of target.
        ValueError: the target is invalid.
    """

    def __init__(
        self,
        target: str | Sequence[str | os.PathLike[str]],
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        oauth: OAuth | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        connect_timeout: float = 10.0,
        timeout: float | None = None,
        max_connections: int = 32,
        **options: Any,
    ) -> None:
        connect, own_name = _connector(target, headers, oauth, env, cwd)
        super().__init__(name or own_name)
        self.lifespan(self._connected)
        self.registry.declares_tools = True  # declare the capability `tools` before the tools are known
        self.listed = False
        """True once the server has listed its items."""
        self._timeout, self._connect_timeout = timeout, connect_timeout
        self._connections = RemoteConnections(
            self.name,
            lambda **own: connect(**{"timeout": _PROBE, "probe_timeout": _PROBE, **options, **own}),
            max_connections,
        )
        self._items: dict[str, dict[str, tuple[Json, Any]]] = {kind: {} for kind in _KINDS}
        self._followed: set[str] = set()
        self._settled = asyncio.Event()
        self._following = asyncio.Event()
        self._listing = asyncio.Lock()
        self._problem = self._reason = ""

    @property
    def problem(self) -> str:
        """Return the reason for a failed connection, or "" without a failure."""
        return "" if self.connected else self._reason

    @property
    def connected(self) -> bool:
        """Return True if the server is connected and has listed its items."""
        return self.listed and self._connections.first is not None

    def may_have_tool(self, name: str) -> bool:
        """Return True if a tool of this name may still appear."""
        return not self.listed or super().may_have_tool(name)

    async def wait_until_listed(self) -> None:
        """Wait until the items are listed or the connection failed, for at most `connect_timeout` seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), self._connect_timeout)
        if not self._settled.is_set():
            log.warning("%s does not answer; tools are listed once the server answers", self.name)
        await super().wait_until_listed()

    def record_subscription(self, uri: str) -> None:
        """Subscribe to a resource of the server on behalf of a client."""
        templates = self.registry.templates.values()
        served = self.registry.resource(uri) is not None or any(
            one.template.match(uri) is not None for one in templates
        )
        if served and uri not in self._followed:
            self._followed.add(uri)
            self._following.set()
        super().record_subscription(uri)

    # -- connection ------------------------------------------------------------------------------------------------

    async def _connected(self, _server: Server) -> AsyncIterator[None]:
        self._settled, self._following = asyncio.Event(), asyncio.Event()
        self._listing = asyncio.Lock()  # create the lock here, because locks and events belong to one event loop
        self._connections.begin()
        keeping = asyncio.create_task(self._keep_connected())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await self._connections.aclose()

    async def _keep_connected(self) -> None:
        """Keep the connection open and the items current. After an error, retry with growing pauses."""
        pause = _FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._watch(await self._connections.open())
            except Exception as error:  # noqa: BLE001 - one broken server must not stop the others
                self._note(error)
            self._settled.set()
            pause = _FIRST_PAUSE if loop.time() - began > _LIVED else pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _watch(self, client: Client) -> None:
        while client.lost is None:
            self._following.clear()
            self._connections.reconnected.clear()
            async with AsyncExitStack() as stack:
                changes = await self._subscription(client, stack)
                # Update the listing after the subscription starts, so that no change is missed.
                await self._update_listing(client)
                if changes is None:
                    await _first_of(self._connections.reconnected.wait(), self._following.wait())
                    if self._connections.first is not client:
                        return
                while changes is not None and not self._following.is_set():
                    change = await _first_of(anext(changes, None), self._following.wait())
                    if change is None:
                        return
                    if change is not True:
                        method, params = change
                        if method == UPDATED:
                            self.notify_resource_updated(str(params.get("uri", "")))
                        else:
                            await self._update_listing(client)

    async def _subscription(self, client: Client, stack: AsyncExitStack) -> Subscription | None:
        """Subscribe to notifications. Return None if the server sends no notifications or refuses the subscription."""
        able = client.capabilities
        # In the handshake lifecycle, servers may send notifications that they do not declare.
        kinds = {kind: not client.modern or (able.get(kind) or {}).get("listChanged") is True for kind in _LIST_KINDS}
        uris = sorted(self._followed) if (able.get("resources") or {}).get("subscribe") else []
        if client.modern and not (any(kinds.values()) or uris):
            return None
        try:
            return await stack.enter_async_context(client.listen(**kinds, uris=uris))
        except McpError as error:
            log.warning("%s does not report changes: %s", self.name, error)
            return None

    def _note(self, error: Exception) -> None:
        """Log why the server cannot be reached, unless the previous attempt failed for the same reason."""
        problem = f"{type(error).__name__}: {error}"
        if problem != self._problem:
            self._problem, self._reason = problem, _first_words(error)
            log.warning("%s cannot be reached: %s", self.name, error)

    # -- items -----------------------------------------------------------------------------------------------------

    async def _update_listing(self, client: Client) -> None:
        """Register the items that the server lists. Concurrent updates run one after another."""
        async with self._listing:
            able = client.capabilities
            found = {
                "tools": await client.list_tools() if "tools" in able else [],
                "resources": await client.list_resources() if "resources" in able else [],
                "templates": await _templates(client) if "resources" in able else [],
                "prompts": await client.list_prompts() if "prompts" in able else [],
            }
            self._problem = ""
            registry = self.registry
            if APPS in (able.get("extensions") or {}):
                registry.extensions[APPS] = {}
            if "completions" in able and registry.completion is None:
                registry.completion = CompletionHandler(self._complete)
            self.instructions = client.instructions or None
            changed = {_KINDS[kind][1] for kind, wires in found.items() if self._list(kind, wires)}
            first, self.listed = not self.listed, True
            self._settled.set()
            registry.version += 1
            for kind in _LIST_KINDS if first else [one for one in _LIST_KINDS if one in changed]:
                self.notify_changed(kind)

    def _list(self, kind: str, wires: list[Json]) -> bool:
        """Register the items of one kind. Return True if an item has changed."""
        wanted: dict[str, Json] = {}
        keyed = [(key, wire) for wire in wires if isinstance(key := wire.get(_KINDS[kind][0]), str)]
        repeated = [key for key, wire in keyed if wanted.setdefault(key, wire) is not wire]
        before, collection = self._items[kind], getattr(self.registry, kind)
        if [wire for wire, _ in before.values()] == list(wanted.values()):
            return False
        for key in repeated:
            self._left_out(key, "its name is a duplicate")
        for _, item in before.values():
            if item is not None and collection.get(registry_key(item)) is item:
                del collection[registry_key(item)]
        self._items[kind] = found = {}
        for one, wire in wanted.items():
            known = before.get(one)
            item = known[1] if known is not None and known[0] == wire else self._relayed(kind, wire)
            found[one] = (wire, item)
            if item is not None:
                collection.setdefault(registry_key(item), item)
        return True

    def _replaced(self, tool: Tool, made: Tool) -> bool:
        for one, (wire, item) in self._items["tools"].items():
            if item is tool:
                self._items["tools"][one] = (wire, made)
                return True
        return super()._replaced(tool, made)

    def _relayed(self, kind: str, wire: Json) -> Any:
        if kind == "tools":
            if not wire["name"].isprintable() or not 0 < len(wire["name"]) <= _LONGEST_NAME:
                return self._left_out(repr(wire["name"][:_LONGEST_NAME]), "its name is not a valid tool name")
            if not isinstance(wire.get("inputSchema"), dict):
                return self._left_out(wire["name"], "it has no input schema")
            if (wire.get("execution") or {}).get("taskSupport") == "required":
                return self._left_out(wire["name"], "it can only be called as a task, which is not supported")
            return self._transformed(relayed_tool(wire, self._pass_on))
        if kind == "resources":
            return relayed_resource(wire, self._pass_on)
        if kind == "prompts":
            return relayed_prompt(wire, self._pass_on)
        try:
            template = UriTemplate(wire["uriTemplate"])
        except ValueError as error:
            return self._left_out(wire["uriTemplate"], str(error))
        return relayed_template(wire, self._pass_on, lambda uri: template.match(uri) is not None)

    def _left_out(self, what: str, why: str) -> None:
        log.warning("%s of %s is left out: %s", what, self.name, why)

    # -- calls -----------------------------------------------------------------------------------------------------

    async def _pass_on(self, method: str, params: Json, ctx: Context) -> Json:
        """Forward a request, and convert connection errors to ToolError."""
        try:
            async with self._connections.exchange(ctx) as exchange:
                return await self._ask(exchange, method, params)
        except McpError as error:
            raise _explained(error, self.name) from None
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - errors of the connection, or of the login at the server
            raise self._unreachable(error) from None

    async def _ask(self, exchange: ForwardedCall, method: str, params: Json) -> Json:
        asking = forward(exchange.client, method, params, exchange.ctx, timeout=self._timeout)
        if exchange.client.modern:
            return await asking
        work = asyncio.ensure_future(asking)
        try:
            await asyncio.wait((work, exchange.asked), return_when=asyncio.FIRST_COMPLETED)
            if exchange.asked.done():
                raise exchange.asked.result()
            return work.result()
        finally:
            if not work.done():
                work.cancel()  # the cancellation also cancels the request at the server
                await asyncio.gather(work, return_exceptions=True)

    def _unreachable(self, error: Exception) -> ToolError:
        log.warning("a call to %s failed: %s", self.name, error)
        hint = "the next call reconnects; this call may have had effects"
        return ToolError(f"The server {self.name} cannot answer: {_first_words(error)}\nhint: {hint}")

    async def _complete(self, ref: Any, argument: Any, context: Any, ctx: Context) -> Completion | None:
        member = "name" if ref.type == "ref/prompt" else "uri"
        reference = {"type": ref.type, member: getattr(ref, member)}
        return await relayed_completion(self._pass_on, reference, argument, context, ctx)


def _first_words(error: Exception) -> str:
    """Return the first words of an error, without the server's response and without the process's stderr."""
    if isinstance(error, HttpError):
        return f"HTTP status {error.status}"
    return next(iter(str(error).partition(";")[0].splitlines()), type(error).__name__)


# kind → (key that identifies an item, name of the list in change notifications)
_KINDS: Final = {
    "tools": ("name", "tools"),
    "resources": ("uri", "resources"),
    "templates": ("uriTemplate", "resources"),
    "prompts": ("name", "prompts"),
}
_QUESTIONS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
_LIST_KINDS: Final[tuple[Literal["tools", "resources", "prompts"], ...]] = ("tools", "resources", "prompts")


def _explained(error: McpError, name: str) -> McpError:
    """Add a hint to the error if the server can ask questions only in older revisions."""
    if error.code == INVALID_REQUEST and any(method in str(error) for method in _QUESTIONS):
        hint = f"{name} can ask questions only in older revisions: connect to it with mode='legacy'"
        return McpError(error.code, f"{error}\nhint: {hint}", error.data)
    return error


async def _templates(client: Client) -> list[Json]:
    try:
        return await client.list_resource_templates()
    except McpError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise


async def _first_of(*waits: Any) -> Any:
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _connector(
    target: str | Sequence[str | os.PathLike[str]],
    headers: Mapping[str, str] | None,
    oauth: OAuth | None,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
) -> tuple[Callable[..., Client], str]:
    if isinstance(target, str):
        if not host_port_of(target):
            raise ValueError(
                f"{target!r} is not a valid URL\nhint: use https://…, or a command as a list: ['python', '-m', 'notes']"
            )
        if env is not None or cwd is not None:
            raise TypeError("env= and cwd= are only for a command\nhint: use headers= or oauth= for a URL")
        return lambda **options: Client.connect_http(target, headers, oauth, **options), urlsplit(
            target
        ).hostname or target
    command = [os.fspath(word) for word in target]
    if not command:
        raise ValueError("the command is empty\nhint: write ['python', '-m', 'notes']")
    if headers is not None or oauth is not None:
        raise TypeError("headers= and oauth= are only for a URL\nhint: use env= for a command")
    environ = {key: os.environ[key] for key in _INHERITED if key in os.environ} | dict(env or {})
    name = PurePath(command[0]).name
    return lambda **options: Client.connect_stdio(command, environ, cwd, inherit=False, **options), name


_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")  # a prefix of tool names must not contain these characters
_COMMAND: Final = frozenset({"command", "args", "env", "cwd"})
_ADDRESS: Final = frozenset({"url", "headers"})


def remote_servers(source: str | os.PathLike[str] | Mapping[str, Any], **options: Any) -> dict[str, RemoteServer]:
    """Return the servers of an `mcpServers` file by name. Names are changed to valid prefixes.

    >>> for name, part in remote_servers("mcp.json").items():
    ... server.mount(part, name)

    `${NAME}` and `${NAME:-default}` in the file's strings are replaced by environment variables. Members that only
    clients use are ignored.

    Args:
        source: the file, or the file's content: `{"mcpServers": {"books": {"command": "python", "args": ["-m",
            "books"]}}}`. A server has a `command` with `args`, `env` and `cwd`, or a `url` with `headers`.
        **options: options of `RemoteServer` for all servers in the file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the content is invalid, or contains a variable that is not set.
    """
    where = "mcpServers" if isinstance(source, Mapping) else os.fspath(source)
    data: Any = source if isinstance(source, Mapping) else _read(Path(source))
    servers = data.get("mcpServers") if isinstance(data, Mapping) else None
    if not isinstance(servers, Mapping):
        raise ValueError(
            f'{where} has no mcpServers\nhint: write {{"mcpServers": {{"books": {{"command": "books"}}}}}}'
        )
    found: dict[str, RemoteServer] = {}
    for name, entry in servers.items():
        prefix = _UNFIT.sub("-", name)
        if prefix in found:
            raise ValueError(
                f"{where}: two servers would have the name {prefix!r}\nhint: rename one of the two servers"
            )
        found[prefix] = _remote_server(f"{where}, {name}", name, entry, options)
    return found


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{file} is not valid JSON: {error}\nhint: use the configuration file of a client, such as mcp.json"
        ) from None


def _remote_server(where: str, name: str, entry: Any, options: Json) -> RemoteServer:
    if not isinstance(entry, Mapping) or ("command" in entry) == ("url" in entry):
        raise ValueError(f"{where}: exactly one of command and url is required\nhint: set either command or url")
    known = _COMMAND if "command" in entry else _ADDRESS
    given = {key: _filled(where, entry[key]) for key in known if entry.get(key) is not None}
    words = [given.pop("command", ""), *given.pop("args", ())]
    target = given.pop("url", words)
    try:
        return RemoteServer(target, name=name, **given, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _filled(where: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(where, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(where, one) for one in value]
    if not isinstance(value, str):
        raise ValueError(f"{where}: {value!r} is not a string\nhint: write the value as a string")

    def variable(found: re.Match[str]) -> str:
        default = found[2]
        value = os.environ.get(found[1], default)
        if value is None:
            raise ValueError(
                f"{where}: the variable {found[1]} is not set\nhint: set the variable, or write ${{{found[1]}:-default}}"
            )
        return value

    return _VARIABLE.sub(variable, value)
