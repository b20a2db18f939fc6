from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Name, workspace_in
from mcpfactory.summaries import print_changes


def diff(
    name: Name,
    against: Annotated[
        str,
        typer.Option(
            metavar="BASE",
            help="What callers have now: a channel, a candidate or a file; by default what the last channel that offers the server has.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Compare the tools of a server's source with those that callers have, and propose the version that this asks for."""
    from mcpfactory_pipeline.channels.contract import compare_source

    found = asyncio.run(compare_source(workspace_in(), name, against))
    if as_json:
        output.data({"server": name, **found.to_json()})
    else:
        output.line(f"{name} {found.after.version or '(no version)'} against {found.before.source}")
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
