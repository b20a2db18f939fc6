from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.changes import print_changes
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Name

if TYPE_CHECKING:
    from mcpfactory_pipeline.contract import Contract
    from mcpfactory_pipeline.workspace import Server


def diff(
    name: Name,
    against: Annotated[
        str,
        typer.Option(
            metavar="CHANNEL|CANDIDATE|FILE",
            help="What callers have now; by default what the last channel that offers the server has.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Compare the tools of a server's source with those that callers have, and propose the version that this asks for."""
    from mcpfactory_pipeline.contract import compare, find_contract
    from mcpfactory_pipeline.store import Store
    from mcpfactory_pipeline.workspace import Workspace

    workspace = Workspace.find(Path.cwd())
    server = workspace.server(name)
    before = find_contract(workspace, Store(workspace).state(name), against)
    found = compare(before, asyncio.run(_source(server)))
    if as_json:
        output.data({"server": name, **found.to_json()})
    else:
        output.line(f"{name} {found.after.version or '(no version)'} against {before.source}")
        print_changes(found.changes)
        _print_version(found)
    if not found.kept:
        raise typer.Exit(Exit.NO)


def _print_version(found: Any) -> None:
    if found.needed == "none":
        return
    before, after = found.before.version or "0", found.after.version or "0"
    if found.proposed == found.after.version:
        output.line(f"version {before} → {after} says so")
    else:
        output.line(f"version {before} → {after} does not say so; propose {found.proposed} ({found.needed})")


async def _source(server: Server) -> Contract:
    """The tools of the server as it is in its folder, all of them, whatever it offers by default."""
    from mcpfactory.launch import server_command, server_environ
    from mcpfactory_pipeline.contract import Contract, source_version
    from mcpfactory_runtime.client import connect_stdio

    environ = server_environ(server) | {"MCPFACTORY_MODE": "full", "MCPFACTORY_PROFILE": "full"}
    async with connect_stdio(server_command(server), env=environ) as client:
        tools = await client.list_tools()
    return Contract(tuple(tools), source_version(server), "source")
