"""Command `mcpfactory adopt`: add an existing server to the workspace unchanged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, DryRun, Yes, workspace_in
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.adoption.proposal import AdoptionProposal

_What = Annotated[
    str,
    typer.Argument(
        metavar="[SERVER]", help="Project folder, program, pypi:NAME==VERSION, npm:NAME@VERSION, or server URL"
    ),
]
_Constraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="REQUIREMENT",
        help="Version constraint for a dependency, such as mcp<2, with pypi: (repeatable)",
    ),
]

_Copy = Annotated[bool, typer.Option("--copy", help="Copy files from outside the workspace into the server's folder")]
_Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--variable",
        metavar="NAME",
        help="Environment variable it reads, in addition to those in its code (repeatable)",
    ),
]
_Start = Annotated[
    str, typer.Option("--started-by", help="Start command, or arguments of the program, if not detected")
]


def adopt(
    what: _What = "",
    command: Annotated[str, typer.Option(help="Command that starts an MCP server on stdio")] = "",
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Server name in this workspace [default: from the package or host]")
    ] = "",
    start: _Start = "",
    test: Annotated[str, typer.Option(help="Command that runs its own tests, if not detected")] = "",
    env: _Variables = None,
    constraint: _Constraint = None,
    copy: _Copy = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Add an existing server to the workspace, unchanged.

    The planned files are printed before they are written.
    """
    from mcpfactory_pipeline.adoption.proposal import propose, write_proposal
    from mcpfactory_pipeline.adoption.recognise import recognise
    from mcpfactory_pipeline.adoption.sources import Wish

    workspace = workspace_in()
    wish = Wish(what, command, name, start, test, tuple(env or ()), tuple(constraint or ()), copy, Path.cwd())
    proposal = propose(workspace, recognise(workspace, wish), name)
    if not as_json:
        _print_proposal(proposal)
    if not dry_run and not yes and proposal.changes:
        _ask(as_json=as_json)
    written = [] if dry_run else write_proposal(workspace, proposal)
    if as_json:
        output.data({**proposal.to_json(), "written": written, "dry_run": dry_run})
    elif not dry_run:
        _print_written(proposal, written)


def _ask(*, as_json: bool) -> None:
    """End the command unless a person wants it."""
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        output.fail(
            "nothing was written: confirmation is required",
            "add --yes to write the files, or --dry-run to preview them",
            Exit.USAGE,
        )
    if not typer.confirm("Write it?", err=True):
        output.fail("nothing was written", "mcpfactory adopt --help", Exit.NO)


_LONGEST: Final = 60  # lines of a file that are shown


def _print_proposal(proposal: AdoptionProposal) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    for sentence in proposal.recognised.found:
        output.line(sentence)
    for note in proposal.recognised.notes:
        output.note(f"note: {note}")
    for one in proposal.files:
        output.line()
        lines = one.diff().splitlines()
        output.line(
            f"{one.path}: {one.change}" + (f", {one.after.count(chr(10))} lines" if one.change == "new" else "")
        )
        shown = one.after.splitlines() if one.change == "new" else lines[2:]
        if one.path.endswith(".toml") or (one.change == "changed" and len(shown) <= _LONGEST):
            for text in shown:
                output.line(f"  {text}")
        elif one.change == "changed":
            added, gone = (sum(text.startswith(sign) for text in shown) for sign in "+-")
            output.line(f"  {added} lines added, {gone} removed")
    if proposal.copies:
        output.line()
        output.line(f"servers/{proposal.server}/: {pluralize(len(proposal.copies), 'file')} copied")


def _print_written(proposal: AdoptionProposal, written: list[str]) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    output.line()
    if not written:
        output.line(f"{proposal.server} is already adopted and unchanged: nothing was written")
        return
    output.line(f"adopted {proposal.server}: wrote {pluralize(len(written), 'file')} below servers/{proposal.server}/")
    output.note(f"next: mcpfactory pipeline run {proposal.server}")
