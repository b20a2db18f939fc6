"""The gateway: one MCP server in front of several servers, and its health page.

The gateway lists servers from a recorded listing, without starting them. The listing comes from the last start, from
the contract of the newest candidate, or from the manifest. The listing from the last start is complete, and is valid
until the server's sources change. The contract and the manifest contain only tools.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_files, hash_named_texts, list_source_files
from mcpfactory_pipeline.base.text import pluralize, printable
from mcpfactory_pipeline.channels.contract import stored_contract
from mcpfactory_pipeline.launch.start_command import server_command, server_environ
from mcpfactory_pipeline.serve.child_server import ChildServer, GatewayNames, ServerListing, inner_uri, sanitize_listing
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.api_addresses import SHARED_ADDRESS, refuse_shared_address
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime import Completion, Context, Server, ToolError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.generated.catalog import Catalog
from mcpfactory_runtime.server.generated.manifest import ManifestError, mount
from mcpfactory_runtime.server.generated.search_mode import search_mode
from mcpfactory_runtime.server.registry import GeneratedTool, Registry, Tool
from mcpfactory_runtime.server.remote import relay
from mcpfactory_runtime.types import Json


@dataclass(frozen=True, slots=True)
class ChildHealth:
    """Health of one server: its state, the start of this state, and its counts.

    `left_out` describes the texts that were changed or omitted because of hidden characters.
    """

    server: str
    state: str
    since: str
    tools: int
    starts: int
    calls: int
    in_flight: int
    errors: int
    last_error: str
    left_out: str = ""


def health_json(rows: Sequence[ChildHealth]) -> dict[str, Any]:
    """Return the health page as data. `status` is `degraded` while a server is broken."""
    return {
        "status": "degraded" if any(row.state == "broken" for row in rows) else "ok",
        "servers": [asdict(row) for row in rows],
    }


def make_health_page(read: Callable[[], Sequence[ChildHealth]]) -> Callable[[str, bool], tuple[str, str]]:
    """Return the status page for HTTP. Unauthorized callers get only the status."""

    def page(_accept: str, admitted: bool) -> tuple[str, str]:
        rows = read()
        if not admitted:
            return "application/json", json.dumps({"status": health_json(rows)["status"]}) + "\n"
        return "application/json", json.dumps(health_json(rows), indent=2) + "\n"

    return page


IDLE: Final = 600.0  # seconds without a call after which a server is stopped
_MAX_INSTRUCTIONS: Final = 300  # maximum characters of each server's instructions to show
_STARTS_AT_ONCE: Final = 2  # maximum number of servers with unknown tools that start at the same time


class Gateway:
    """A gateway to several servers. `server` is the gateway itself.

    Args:
        workspace: the workspace of the servers.
        known: the servers to offer.
        search: True to offer three tools that find, describe and call the servers' tools.
        idle: seconds without a call before a server is stopped.
        private: True if all calls come from one client, so log messages need not be separated.
        unset: environment variables to withhold from the servers.
    """

    def __init__(
        self,
        workspace: Workspace,
        known: Sequence[WorkspaceServer],
        *,
        search: bool = False,
        idle: float = IDLE,
        private: bool = True,
        unset: Sequence[str] = (),
    ) -> None:
        self._workspace, self._search, self._private = workspace, search, private
        self._known = {one.name: one for one in known}
        self._listings: dict[str, ServerListing] = {}
        self._notes: dict[str, tuple[str, ...]] = {}  # server → notes about changed or omitted parts of its listing
        # Name of a prompt in the gateway → server, and the server's name of the prompt.
        self._inner: dict[str, tuple[str, str]] = {}
        self._children = {
            one.name: ChildServer(
                one.name,
                partial(server_command, one),
                {
                    **server_environ(one),
                    "MCPFACTORY_MODE": "full",
                    **dict.fromkeys((*unset, SHARED_ADDRESS, "MCPFACTORY_STATE_KEY"), ""),
                },
                url=one.adopted.url if one.adopted else "",
                idle=idle,
                on_started=self._update_listing,
                on_log=self._forward_log,
            )
            for one in known
        }
        self.server = Server(
            "mcpfactory-gateway", version=version("mcpfactory-pipeline"), title=f"Servers of {workspace.name}"
        )
        self.server.lifespan(self._lifespan)
        self.server.registry.declares_tools = True  # declare the capability `tools` before any tool is known
        for one in known:
            if (found := recorded_listing(workspace, one)) is not None:
                self._listings[one.name] = found
        self._refresh_registry()

    def rows(self) -> list[ChildHealth]:
        """Return the health of every server."""
        return [
            ChildHealth(
                name,
                child.condition,
                child.since,
                len(self._listings.get(name, ServerListing()).tools),
                child.starts,
                child.calls,
                child.in_flight,
                child.errors,
                child.last_error,
                "; ".join((*self._notes.get(name, ()), *_cleaned(child))),
            )
            for name, child in self._children.items()
        ]

    # -- lifespan --------------------------------------------------------------------------------------------------

    async def _lifespan(self, _server: Server) -> AsyncIterator[None]:
        """At the start, request the listings that are not recorded. At the end, stop all servers."""
        gate = asyncio.Semaphore(_STARTS_AT_ONCE)

        async def probe(child: ChildServer) -> None:
            async with gate:
                try:
                    await child.probe()
                except ToolError as error:  # the health page shows the server as `broken`
                    sys.stderr.write(f"{printable(str(error))}\n")

        try:
            await asyncio.gather(
                *(probe(child) for name, child in self._children.items() if name not in self._listings)
            )
            yield
        finally:
            await asyncio.gather(*(child.aclose() for child in self._children.values()), return_exceptions=True)

    async def _update_listing(self, child: ChildServer, client: Client) -> None:
        before = self._listings.get(child.name)
        if before is not None and before.complete and child.starts == 1:
            return  # the stored listing was made from the current sources
        found = await request_listing(client)
        if found == before:
            return
        await asyncio.to_thread(store_listing, self._workspace, self._known[child.name], found)
        self._listings[child.name] = found
        self._refresh_registry()
        for what in ("tools", "resources", "prompts"):
            self.server.notify_changed(what)

    # -- calls -----------------------------------------------------------------------------------------------------

    async def _call(self, server: str, method: str, params: Json, ctx: Context) -> Json:
        return await self._children[server].call(method, params, ctx)

    def _forward_log(self, contexts: Sequence[Context], params: Json) -> None:
        """Forward a server's log message to its call.

        With several running calls, forward the message only if all calls come from one client.
        """
        if self._private or len(contexts) == 1:
            contexts[-1].log(str(params.get("level", "info")), params.get("data"), params.get("logger"))

    async def _complete(self, ref: Any, argument: Any, context: Any, ctx: Context) -> Completion | None:
        if ref.type == "ref/prompt":
            server, inner = self._inner[ref.name]
            reference = {"type": ref.type, "name": inner}
        else:
            found = inner_uri(ref.uri)
            if found is None or found[0] not in self._children:
                return None
            server, reference = found[0], {"type": ref.type, "uri": found[1]}
        return await relay.relayed_completion(partial(self._call, server), reference, argument, context, ctx)

    # -- listings -------------------------------------------------------------------------------------------------

    def _refresh_registry(self) -> None:
        registry = self.server.registry
        for collection in (registry.tools, registry.resources, registry.templates, registry.prompts):
            collection.clear()
        self._inner.clear()
        rows: dict[str, GeneratedTool] = {}
        plain = {name: sanitize_listing(self._listings[name]) for name in self._known if name in self._listings}
        self._notes = {name: notes for name, (_, notes) in plain.items()}
        shown = {name: found for name, (found, _) in plain.items()}
        for server, found in shown.items():
            names, call = GatewayNames(server), partial(self._call, server)
            for wire in found.tools:
                tool = relay.relayed_tool(wire, call, names)
                rows[tool.name] = GeneratedTool(tool, "", server)
            for wire in found.resources:
                resource = relay.relayed_resource(wire, call, names)
                registry.resources[resource.uri] = resource
            for wire in found.templates:
                template = relay.relayed_template(wire, call, names.owns, names)
                registry.templates[template.uri] = template
            for wire in found.prompts:
                prompt = relay.relayed_prompt(wire, call, names)
                registry.prompts[prompt.name] = prompt
                self._inner[prompt.name] = (server, str(wire["name"]))
        registry.tools.update(self._listed_tools(rows))
        registry.version += 1
        self.server.resource("gateway://health", name="health", mime_type="application/json")(self._health)
        if registry.completion is None and (registry.prompts or registry.templates):
            self.server.completion(self._complete)
        self.server.instructions = self._instructions(shown)

    def _listed_tools(self, rows: Mapping[str, GeneratedTool]) -> dict[str, Tool]:
        if self._search and rows:
            return {tool.name: tool for tool in search_mode(rows, self._workspace.name, rows)}
        return {name: row.tool for name, row in rows.items()}

    async def _health(self) -> Json:
        return health_json(self.rows())

    def _instructions(self, shown: Mapping[str, ServerListing]) -> str:
        said = [
            f"{name}: {' '.join(found.instructions.split())[:_MAX_INSTRUCTIONS]}"
            for name, found in shown.items()
            if found.instructions
        ]
        which = f"{pluralize(len(self._known), 'server')}: {', '.join(self._known)}"
        first = f"A gateway to {which}. Names begin with the server's. Servers start when they are called."
        return "\n".join([first, *said])


def _cleaned(child: ChildServer) -> tuple[str, ...]:
    return (f"hidden characters removed from {pluralize(child.cleaned, 'message')}",) if child.cleaned else ()


def make_gateway(workspace: Workspace, names: Sequence[str], **options: Any) -> Gateway:
    """Return a gateway to the named servers; without names, to all servers of the workspace.

    `options` are those of `Gateway`.

    Raises:
        NotFoundError: unknown server.
        ConfigError: an environment variable sets one address for the APIs of all servers.
    """
    known = workspace.choose(list(names))
    refuse_shared_address(known, os.environ)
    return Gateway(workspace, known, **options)


_FILE: Final = "listing.json"
_FORMAT: Final = 1


def recorded_listing(workspace: Workspace, server: WorkspaceServer) -> ServerListing | None:
    """Return the recorded listing of a server; None if only a start of the server can give a listing."""
    found = _stored_listing(workspace, server)
    if found is not None:
        return found
    offered, hidden = _manifest(server)
    tools = _contract(workspace, server)
    if tools is not None:
        return ServerListing(tuple(dict(tool) for tool in tools if tool["name"] not in hidden))
    return None if offered is None else ServerListing(tuple(offered))


async def request_listing(client: Client) -> ServerListing:
    """Return the listing of a running server."""
    able = client.capabilities
    return ServerListing(
        _named("name", await client.list_tools()) if "tools" in able else (),
        _named("uri", await client.list_resources()) if "resources" in able else (),
        _named("uriTemplate", await client.list_resource_templates()) if "resources" in able else (),
        _named("name", await client.list_prompts()) if "prompts" in able else (),
        client.instructions,
        complete=True,
    )


def store_listing(workspace: Workspace, server: WorkspaceServer, listing: ServerListing) -> None:
    """Store a listing for the next gateway. Ignore write errors."""
    file = _file(workspace, server)
    try:
        text = json.dumps({"listing": _FORMAT, "of": _stamp(server), **asdict(listing)}, ensure_ascii=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except (OSError, PipelineError):  # other commands report the error, for example a link out of the folder
        return


def _stored_listing(workspace: Workspace, server: WorkspaceServer) -> ServerListing | None:
    try:
        data = json.loads(_file(workspace, server).read_bytes())
        if data["listing"] != _FORMAT or data["of"] != _stamp(server):
            return None
        kinds = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
        tools, resources, templates, prompts = (_named(key, data[kind]) for kind, key in kinds.items())
        return ServerListing(tools, resources, templates, prompts, str(data["instructions"]), complete=True)
    except (OSError, ValueError, KeyError, TypeError, PipelineError):
        return None


def _named(key: str, rows: Iterable[Any]) -> tuple[Json, ...]:
    """Return the entries that have a name."""
    return tuple(row for row in rows if isinstance(row, dict) and isinstance(row.get(key), str))


def _contract(workspace: Workspace, server: WorkspaceServer) -> tuple[Mapping[str, Any], ...] | None:
    try:
        state = Store(workspace).state(server.name)
        contract = stored_contract(workspace.artifacts / server.name / state.candidate) if state.candidate else None
    except PipelineError:  # the server can start despite the error; other commands report the error
        return None
    return contract.tools if contract else None


def _manifest(server: WorkspaceServer) -> tuple[list[Json] | None, set[str]]:
    """Return the generated tools that the server offers, and the names of the tools that its profile leaves out."""
    if server.adopted is not None:
        return None, set()
    folder = server.folder / "src" / Path(*server.package.split(".")) / "_generated"
    registry = Registry()
    environ = {"MCPFACTORY_MODE": "full"} | {k: v for k, v in os.environ.items() if k == "MCPFACTORY_PROFILE"}
    try:
        mount(Catalog(registry), folder, f"{server.package}._generated", title=server.name, environ=environ)
    except (ManifestError, ValueError):
        return None, set()
    return [tool.wire for tool in registry.tools.values()], set(registry.generated) - set(registry.tools)


def _file(workspace: Workspace, server: WorkspaceServer) -> Path:
    return workspace.artifacts / server.name / _FILE


def _stamp(server: WorkspaceServer) -> str:
    sources = hash_files(server.folder, list_source_files(server.folder, without=("tests",)))
    return hash_named_texts({"sources": sources, "profile": os.environ.get("MCPFACTORY_PROFILE", "")})
