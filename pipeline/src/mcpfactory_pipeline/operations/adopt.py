"""Add existing servers to the workspace, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from mcpfactory_pipeline.adoption.proposal import propose, write_proposal
from mcpfactory_pipeline.adoption.recognise import recognise
from mcpfactory_pipeline.adoption.sources import Wish
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.operations.operation import (
    Omitted,
    Operation,
    OperationContext,
    OperationResult,
    Yes,
    param,
)


class AdoptResult(OperationResult):
    """An adopted server, or the proposal to adopt it."""

    server: str
    kind: str
    found: tuple[str, ...] = Field(description="What was recognized, in sentences.")
    environment: tuple[str, ...] = Field(description="Variables that its code names.")
    files: tuple[dict[str, Any], ...] = Field(description="Proposed files: path, change and text.")
    copies: tuple[str, ...] = Field(description="Files to copy.")
    written: tuple[str, ...] = ()


class Adopt(Operation):
    """Add an existing server to the workspace, unchanged.

    The planned files are printed before they are written.
    """

    command: ClassVar[str] = "adopt"
    title: ClassVar[str] = "Adopt a server"
    result: ClassVar[type[OperationResult]] = AdoptResult
    omit: ClassVar[Omitted] = {
        "dashboard": "servers are adopted at a terminal, where their files are",
        "mcp": "a person decides which programs of other people start here",
    }

    source: str = param(
        "Project folder, program, pypi:NAME==VERSION, npm:NAME@VERSION, or server URL",
        "",
        argument=True,
        metavar="SERVER",
    )
    program: str = param("Command that starts an MCP server on stdio", "", flags=("--command",), metavar="COMMAND")
    name: str = param("Server name in this workspace [default: from the package or host]", "", metavar="NAME")
    start: str = param(
        "Start command, or arguments of the program, if not detected", "", flags=("--started-by",), metavar="COMMAND"
    )
    constraints: tuple[str, ...] = param(
        "Version constraint for a dependency, such as mcp<2, with pypi: (repeatable)", (), metavar="REQUIREMENT"
    )
    copies: bool = param("Copy files from outside the workspace into the server's folder", False, flags=("--copy",))
    yes: Yes = False

    def run(self, context: OperationContext) -> AdoptResult:
        """Recognize the server, and write its files after a person confirmed them."""
        sure = self.yes or context.dry_run
        wish = Wish(self.source, self.program, self.name, self.start, self.constraints, self.copies, Path.cwd())
        proposal = propose(context.workspace, recognise(context.workspace, wish), self.name)
        found = proposal.to_json()
        details = tuple(f"note: {note}" for note in found.pop("notes"))
        facts = {**found, "details": details, "dry_run": context.dry_run}
        tried = AdoptResult(message=f"{proposal.server} can be adopted", **facts).of(proposal)
        if context.dry_run:
            return tried
        if not proposal.changes:
            message = f"{proposal.server} is already adopted and unchanged: nothing was written"
            return AdoptResult(message=message, **facts).of(proposal)
        if not sure:
            context.confirm("Write it?", tried, f"{self.command_line()} --yes writes it, --dry-run previews it")
        written = write_proposal(context.workspace, proposal)
        below = f"servers/{proposal.server}/"
        message = f"adopted {proposal.server}: wrote {pluralize(len(written), 'file')} below {below}"
        done = AdoptResult(
            message=message, **facts, written=tuple(written), next=f"mcpfactory pipeline run {proposal.server}"
        )
        return done.of(proposal if sure else None)  # who was asked has seen it
