"""Update a server after its source changed, and compare its tools with those that callers have."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import Answers, AsJson, DryRun, Name, TemplateOption, Trust, answers_of, trusted, workspace_in
from mcpfactory.output import print_addresses, print_changes, print_problems, progress
from mcpfactory_runtime.errors import Exit

_QUIET: Final = ("same", "keep", "deleted")  # nothing happens to these files


def update(
    name: Name,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from-openapi",
            "--from",
            metavar="[LABEL=]FILE|URL",
            help="API document [default: its original location]; a new label adds a document (repeatable)",
        ),
    ] = None,
    api: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Read only this document of several (repeatable)")
    ] = None,
    accept_origin: Annotated[
        bool,
        typer.Option(
            "--accept-origin", help="Allow a new host for the API or its token endpoint; credentials are sent there"
        ),
    ] = False,
    template: TemplateOption = "",
    answer: Answers = None,
    trust: Trust = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Update a server after its document or template changed.

    Your edits are merged, and changes for callers are reported.
    """
    from mcpfactory_codegen.servers.update import update_server

    server = workspace_in().server(name)
    if server.adopted is not None:
        output.fail(
            f"{name} was adopted ({server.adopted.origin}): it has no API document or template to update from",
            f"mcpfactory adopt {server.adopted.again} --name {name} takes the newest version",
            Exit.BAD_INPUT,
        )
    make = partial(
        update_server,
        server.folder,
        source=source,
        labels=api or (),
        permit=True,
        accept_origin=accept_origin,
        template=template,
        answers=answers_of(None, answer),
    )
    trusted(
        template,
        lambda: [file.path for file in make(dry_run=True).files if file.action not in _QUIET],
        trust=trust or dry_run,
        as_json=as_json,
    )
    with progress(quiet=as_json) as tell:
        updated = make(dry_run=dry_run, notify=tell)
    if as_json:
        output.data(updated.to_json(dry_run=dry_run))
    else:
        _print_text(updated, dry_run=dry_run)
    if updated.conflicts:
        raise typer.Exit(Exit.NO)


def _print_text(updated: Any, *, dry_run: bool) -> None:
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
    output.line(f"{'would update' if dry_run else 'updated'} {updated.server}{tools}")
    for file in files:
        bad = file.action in {"conflict", "collision"}
        action = output.styled(file.action.ljust(9), "bad" if bad else "dim")
        output.line(f"  {action} {file.path}" + (f"  ({file.note})" if file.note else ""))
    if of_document:
        print_changes(updated.changes)
    else:
        output.line(f"mcpfactory diff {updated.server} shows the changes for callers of a channel")
    if updated.conflicts:
        output.note(
            f"hint: resolve the conflicts in {', '.join(updated.conflicts)}, remove the markers, and run the tests"
        )


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
