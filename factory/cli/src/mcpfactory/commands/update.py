"""Update a server after its source changed, and compare its tools with those that callers have."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.operations import command_of
from mcpfactory.options import AsJson, Name, workspace_in
from mcpfactory.output import print_addresses, print_changes, print_problems
from mcpfactory_pipeline.operations.new import ServerResult, Update
from mcpfactory_runtime.errors import Exit

_QUIET: Final = ("same", "keep", "deleted")  # nothing happens to these files


def _show(done: ServerResult) -> None:
    """Print what changed, and the files that a person must merge."""
    updated = done.record
    print_problems(updated.problems)
    print_addresses(updated.server, updated.address)
    if updated.moved:
        output.warning(updated.moved)
    files = [file for file in updated.files if file.action not in _QUIET or file.note]
    if not files and not updated.changes:
        output.line(f"{updated.server} is up to date")
        return
    of_document = bool(updated.operations or updated.tools or updated.changes)
    tools = f": {updated.tools} tools" if of_document else ""  # those of a template alone are known to who starts it
    output.line(f"{done.message}{tools}")
    for file in files:
        bad = file.action in {"conflict", "collision"}
        action = output.styled(file.action.ljust(9), "bad" if bad else "dim")
        output.line(f"  {action} {file.path}" + (f"  ({file.note})" if file.note else ""))
    if of_document:
        print_changes(updated.changes)
    else:
        output.line(f"{done.next} shows the changes for callers of a channel")
    if updated.conflicts:
        output.note(
            f"hint: resolve the conflicts in {', '.join(updated.conflicts)}, remove the markers, and run the tests"
        )


update = command_of(Update, _show)


def diff(
    name: Name,
    against: Annotated[
        str,
        typer.Option(
            metavar="BASE",
            help="Channel, candidate or file to compare with [default: the last channel that offers the server]",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Compare a server's tools with those that callers have.

    The required version is proposed.
    """
    from mcpfactory_pipeline.channels.contract import compare_source

    found = asyncio.run(compare_source(workspace_in(), name, against))
    if as_json:
        output.data({"server": name, **found.to_json()})
    else:
        output.line(f"{name} {found.after.version or '(no version)'} compared with {found.before.source}")
        print_changes(found.changes)
        _print_version(found)
    if not found.kept:
        raise typer.Exit(Exit.NO)


def _print_version(found: Any) -> None:
    if found.needed == "none":
        return
    before, after = found.before.version or "0", found.after.version or "0"
    if found.proposed == found.after.version:
        output.line(f"version {before} → {after} reflects the changes")
    else:
        output.line(
            f"version {before} → {after} does not reflect the changes; proposed: {found.proposed} ({found.needed})"
        )
