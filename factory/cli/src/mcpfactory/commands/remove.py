"""`mcpfactory remove` and `mcpfactory rename`: servers come and go."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import complete, output
from mcpfactory.options import AsJson, DryRun, Name, Reason, Yes, workspace_in
from mcpfactory.output import progress
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.lifecycle.remove import Removal
    from mcpfactory_pipeline.lifecycle.rename import ServerRename

Keep = Annotated[bool, typer.Option("--keep-channels", help="Keep the releases in the channels [default: remove them]")]
_SHOWN: Final = 20  # lines that still have the old name


def remove(
    name: Name,
    yes: Yes = False,
    keep_channels: Keep = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove even if the folder has files that git cannot restore")
    ] = False,
    reason: Reason = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove a server and its channel releases.

    Its folder is deleted. Its history is closed and kept.
    """
    from mcpfactory_pipeline.delivery.clients.files import this_machine
    from mcpfactory_pipeline.lifecycle.remove import remove as remove_server

    workspace, home = workspace_in(), this_machine(os.environ)

    def perform(rehearsal: bool) -> Removal:
        return remove_server(
            workspace,
            name,
            home,
            project=Path.cwd(),
            reason=reason,
            keep_channels=keep_channels,
            force=force,
            dry_run=rehearsal,
        )

    if not dry_run and not yes:
        planned = perform(True)
        if as_json or not sys.stdin.isatty():
            output.fail(
                f"{name} was not removed: confirmation is required", f"mcpfactory remove {name} --yes", Exit.USAGE
            )
        _print_removal(planned)
        if not typer.confirm("remove it?", err=True):
            raise typer.Exit(Exit.NO)
    removal = perform(dry_run)
    if as_json:
        output.data(removal.to_json())
    else:
        _print_removal(removal)


def _print_removal(removal: Removal) -> None:
    would = "would be " if removal.dry_run else ""
    for path in (removal.folder, removal.artifacts):
        if path:
            output.line(f"{path}: {would}removed")
    for channel in removal.channels:
        output.line(f"{channel}: {'goes on offering it' if removal.kept else f'{would}without it'}")
    if removal.history:
        output.line(f"{removal.history}: {would}closed and kept")
    _print_elsewhere(removal.published, [(row["client"], row["name"], row["command"]) for row in removal.clients])


def _print_elsewhere(published: tuple[str, ...], clients: list[tuple[str, str, str]]) -> None:
    for sentence in published:
        output.note(f"{sentence}, and it stays published there; hint: delete it there")
    for client, name, command in clients:
        output.note(f"{client} has the entry {name}; hint: {command}")


def rename(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="Server in this workspace", autocompletion=complete.servers)
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="New name: [a-z][a-z0-9-]*")],
    keep_channels: Keep = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Rename a server.

    Folder, package, imports and variables are renamed. The old history is closed and a new one begins.
    """
    from mcpfactory_pipeline.delivery.clients.files import this_machine
    from mcpfactory_pipeline.lifecycle.rename import rename as rename_server

    with progress(quiet=as_json) as tell:
        renamed = rename_server(
            workspace_in(),
            old,
            new,
            this_machine(os.environ),
            project=Path.cwd(),
            keep_channels=keep_channels,
            dry_run=dry_run,
            notify=tell,
        )
    if as_json:
        output.data(renamed.to_json())
    else:
        _print_rename(renamed)


def _print_rename(renamed: ServerRename) -> None:
    would = "would be " if renamed.dry_run else ""
    output.line(
        f"{renamed.previous} {would or 'is '}renamed to {renamed.server}: {renamed.path}, package {renamed.package}"
    )
    for path in renamed.changed:
        output.line(f"  {path}: {would}changed")
    for was, becomes in renamed.variables.items():
        output.line(f"  environment variable {was} {'would become' if would else 'is now'} {becomes}")
    for channel in renamed.channels:
        becomes = f"goes on offering {renamed.previous}" if renamed.kept else f"{would}without {renamed.previous}"
        output.line(f"  {channel}: {becomes}")
    for channel in renamed.holds:
        output.line(f"  {channel}: {'would stay' if would else 'stays'} held")
    for mention in renamed.mentions[:_SHOWN]:
        output.note(
            f"still mentions {renamed.previous}: {renamed.path}/{mention['path']}:{mention['line']}: {mention['text']}"
        )
    if len(renamed.mentions) > _SHOWN:
        output.note(f"… and {len(renamed.mentions) - _SHOWN} more lines; hint: --json prints all of them")
    commands = [
        (row["client"], row["name"], f"{row['command']}; mcpfactory install {renamed.server} --client {row['client']}")
        for row in renamed.clients
    ]
    _print_elsewhere(renamed.published, commands)
    if not renamed.dry_run:
        output.note(f"next: mcpfactory pipeline run {renamed.server}")
