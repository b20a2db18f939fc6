"""Listings of servers without starting them: from the last start, the candidate's contract, or the manifest.

A listing of an earlier start is valid while the server's sources are unchanged, and is complete. The contract of the
newest candidate, and the manifest of generated tools, contain tools only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_files, hash_record, source_files
from mcpfactory_pipeline.channels.contract import stored_contract
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.generated.catalogue import Catalogue
from mcpfactory_runtime.server.generated.manifest import ManifestError, mount
from mcpfactory_runtime.server.registry import Registry
from mcpfactory_runtime.types import Json

_FILE: Final = "listing.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class ServerListing:
    """The listing of a server in wire format. `complete` is True if it came from the running server."""

    tools: tuple[Json, ...] = ()
    resources: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    prompts: tuple[Json, ...] = ()
    instructions: str = ""
    complete: bool = False


def recorded_listing(workspace: Workspace, server: WorkspaceServer) -> ServerListing | None:
    """Return the recorded listing of a server; None if nothing is recorded, so that it must be started."""
    found = _stored_listing(workspace, server)
    if found is not None:
        return found
    offered, hidden = _manifest(server)
    tools = _contract(workspace, server)
    if tools is not None:
        return ServerListing(tuple(dict(tool) for tool in tools if tool["name"] not in hidden))
    return None if offered is None else ServerListing(tuple(offered))


async def request_listing(client: Client) -> ServerListing:
    """Return the listing of a running server. Raises the client's errors."""
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
    """Write a listing down for the next gateway; where that is not possible, the server is asked again."""
    file = _file(workspace, server)
    try:
        text = json.dumps({"listing": _FORMAT, "of": _stamp(server), **asdict(listing)}, ensure_ascii=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    except (OSError, PipelineError):  # for example links out of the source folder, which other commands report
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
    """Return the entries that have a name: others cannot be called, and must not affect other servers."""
    return tuple(row for row in rows if isinstance(row, dict) and isinstance(row.get(key), str))


def _contract(workspace: Workspace, server: WorkspaceServer) -> tuple[Mapping[str, Any], ...] | None:
    try:
        state = Store(workspace).state(server.name)
        contract = stored_contract(workspace.artifacts / server.name / state.candidate) if state.candidate else None
    except PipelineError:  # other commands report it; the server can still serve
        return None
    return contract.tools if contract else None


def _manifest(server: WorkspaceServer) -> tuple[list[Json] | None, set[str]]:
    """Return the generated tools that the server offers, and the names of those that its profile leaves out."""
    if server.adopted is not None:
        return None, set()
    folder = server.folder / "src" / Path(*server.package.split(".")) / "_generated"
    registry = Registry()
    environ = {"MCPFACTORY_MODE": "full"} | {k: v for k, v in os.environ.items() if k == "MCPFACTORY_PROFILE"}
    try:
        mount(Catalogue(registry), folder, f"{server.package}._generated", title=server.name, environ=environ)
    except (ManifestError, ValueError):
        return None, set()
    return [tool.wire for tool in registry.tools.values()], set(registry.generated) - set(registry.tools)


def _file(workspace: Workspace, server: WorkspaceServer) -> Path:
    return workspace.artifacts / server.name / _FILE


def _stamp(server: WorkspaceServer) -> str:
    sources = hash_files(server.folder, source_files(server.folder, without=("tests",)))
    return hash_record({"sources": sources, "profile": os.environ.get("MCPFACTORY_PROFILE", "")})
