from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
from mcpfactory_pipeline.operations.operation import (
    BY_PEOPLE,
    FieldPresentation,
    Omitted,
    Operation,
    OperationContext,
    OperationResult,
    Reason,
    Server,
    Yes,
    param,
)

_OMIT: Final[Omitted] = {"dashboard": "a rare operation, done at a terminal", "mcp": BY_PEOPLE}
_SHOWN: Final = 20  # maximum number of lines with the old name to print

KeepChannels = Annotated[bool, param("Keep the releases in the channels [default: remove the releases]")]


class RemovalResult(OperationResult):
    """Channels, releases and client entries that still have a server's old name."""

    server: str
    channels: tuple[str, ...] = Field(description="Channels that offered the server.")
    kept: bool = Field(description="The channels continue to offer the server.")
    published: tuple[str, ...] = Field(description="Releases at targets outside the workspace, one sentence each.")
    clients: tuple[dict[str, str], ...] = Field(description="Entries of clients, with the command that removes them.")

    def notes(self) -> tuple[str, ...]:
        """Return the details, the published releases, and the client entries that stay."""
        published = (f"{sentence}, and it stays published there; hint: delete it there" for sentence in self.published)
        entries = (f"{one['client']} has the entry {one['name']}; hint: {self.command(one)}" for one in self.clients)
        return (*self.details, *published, *entries)

    def command(self, entry: Mapping[str, str]) -> str:
        """Return the command that removes a client's entry."""
        return entry["command"]


class RemoveResult(RemovalResult):
    """A removed server."""

    folder: str = Field(description="Its folder below the workspace; empty if it was deleted before.")
    artifacts: str
    history: str = Field(description="Its history, which is closed and kept.")

    def lines(self) -> list[str]:
        """Return a line for each path and channel that changes."""
        would = "would be " if self.dry_run else ""
        lines = [f"{path}: {would}removed" for path in (self.folder, self.artifacts) if path]
        lines += [f"{one}: {'continues to offer it' if self.kept else f'{would}without it'}" for one in self.channels]
        return lines + [f"{self.history}: {would}closed and kept"] * bool(self.history)


class Remove(Operation):
    """Remove a server and its channel releases.

    The server's folder is deleted. The server's history is closed and kept.
    """

    command: ClassVar[str] = "remove"
    title: ClassVar[str] = "Remove a server"
    result: ClassVar[type[OperationResult]] = RemoveResult
    omit: ClassVar[Omitted] = _OMIT

    server: Server
    yes: Yes = False
    keep_channels: KeepChannels = False
    force: bool = param("Remove even if the folder has files that git cannot restore", False)
    reason: Reason = ""

    def run(self, context: OperationContext) -> RemoveResult:
        """Ask the user to confirm, then remove the server."""
        if not (context.dry_run or self.yes):
            context.confirm("remove it?", self._remove(context, dry_run=True), f"{self.command_line()} --yes")
        return self._remove(context, dry_run=context.dry_run)

    def _remove(self, context: OperationContext, *, dry_run: bool) -> RemoveResult:
        from mcpfactory_pipeline.maintenance.remove import remove

        made = remove(
            context.workspace,
            self.server,
            read_user_paths(os.environ),
            project=Path.cwd(),
            reason=self.reason,
            keep_channels=self.keep_channels,
            force=self.force,
            dry_run=dry_run,
            clock=context.clock,
        )
        return RemoveResult(message=f"{self.server} is removed", **made)


class RenameResult(RemovalResult):
    """A renamed server."""

    previous: str
    path: str
    package: str
    changed: tuple[str, ...] = Field(description="The user's files with replaced names.")
    mentions: tuple[dict[str, Any], ...] = Field(description="Lines that still have the old name.")
    variables: dict[str, str] = Field(description="Environment variables, old to new.")
    holds: tuple[str, ...] = Field(description="Channels that stay held.")

    def lines(self) -> list[str]:
        """Return the new name, and a line for each change."""
        return [*self._changes()]

    def _changes(self) -> Iterator[str]:
        would = "would be " if self.dry_run else ""
        yield f"{self.previous} {would or 'is '}renamed to {self.server}: {self.path}, package {self.package}"
        yield from (f"  {path}: {would}changed" for path in self.changed)
        for was, becomes in self.variables.items():
            yield f"  environment variable {was} {'would become' if would else 'is now'} {becomes}"
        becomes = f"continues to offer {self.previous}" if self.kept else f"{would}without {self.previous}"
        yield from (f"  {channel}: {becomes}" for channel in self.channels)
        yield from (f"  {channel}: {'would stay' if would else 'stays'} held" for channel in self.holds)

    def notes(self) -> tuple[str, ...]:
        """Return the lines with the old name, the published releases, and the client entries that stay."""
        shown = self.mentions[:_SHOWN]
        places = [f"{self.path}/{one['path']}:{one['line']}: {one['text']}" for one in shown]
        more = len(self.mentions) - len(shown)
        rest = (f"… and {more} more lines; hint: --json prints all of them",) if more else ()
        return (*(f"still mentions {self.previous}: {place}" for place in places), *rest, *super().notes())

    def command(self, entry: Mapping[str, str]) -> str:
        """Return the commands that replace a client's entry."""
        return f"{entry['command']}; mcpfactory install {self.server} --client {entry['client']}"


class Rename(Operation):
    """Rename a server.

    Folder, package, imports and variables are renamed. The old history is closed, and a new history begins.
    """

    command: ClassVar[str] = "rename"
    title: ClassVar[str] = "Rename a server"
    result: ClassVar[type[OperationResult]] = RenameResult
    omit: ClassVar[Omitted] = _OMIT

    old: Annotated[Server, FieldPresentation(argument=True, metavar="OLD", names="servers")]
    new: str = param("New name: [a-z][a-z0-9-]*", argument=True, metavar="NEW")
    keep_channels: KeepChannels = False

    def run(self, context: OperationContext) -> RenameResult:
        """Rename the server."""
        from mcpfactory_pipeline.maintenance.rename import rename

        made = rename(
            context.workspace,
            self.old,
            self.new,
            read_user_paths(os.environ),
            project=Path.cwd(),
            keep_channels=self.keep_channels,
            dry_run=context.dry_run,
            clock=context.clock,
            notify=context.notify,
        )
        following = "" if context.dry_run else f"mcpfactory pipeline run {self.new}"
        return RenameResult(message=f"{self.old} is renamed to {self.new}", next=following, **made)
