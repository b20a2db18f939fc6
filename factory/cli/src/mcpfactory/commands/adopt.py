"""`mcpfactory adopt`: a server that exists comes into the workspace as it is."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.migrated import call_permission, print_diff, print_likeness, print_migration
from mcpfactory.options import AllTools, AsJson, Calls, DryRun, Yes, workspace_in

if TYPE_CHECKING:
    from mcpfactory_pipeline.adoption.proposal import AdoptionProposal
    from mcpfactory_pipeline.adoption.wish import Wish
    from mcpfactory_pipeline.migration import CallPermission, Likeness
    from mcpfactory_pipeline.migration.runtime_adoption import RuntimeAdoption
    from mcpfactory_pipeline.workspace.workspace import Workspace

_What = Annotated[
    str,
    typer.Argument(
        metavar="[SERVER]",
        help="A folder with a project, a program, pypi:NAME==VERSION, npm:NAME@VERSION, or the URL of a server.",
    ),
]
_Constraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="REQUIREMENT",
        help="A version that a dependency must have (mcp<2), with pypi:; repeatable.",
    ),
]

_Form = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="FORM",
        help="runtime: a Python project written with FastMCP or the official SDK becomes one of the runtime, and both are compared.",
    ),
]
_Unproven = Annotated[
    bool,
    typer.Option(
        "--unproven", help="With --as runtime: write also what callers would notice, or nobody could compare."
    ),
]
_Seconds = Annotated[float, typer.Option(help="With --as runtime: seconds for each version.", min=0.1)]
_Copy = Annotated[
    bool, typer.Option("--copy", help="Copy what stands outside of the workspace into the server's folder.")
]
_Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--variable",
        metavar="NAME",
        help="A variable that it reads, besides those that its code names; repeatable.",
    ),
]
_Start = Annotated[
    str,
    typer.Option("--started-by", help="How it starts, or the arguments of its program, where that is not to be seen."),
]


def adopt(
    what: _What = "",
    command: Annotated[str, typer.Option(help="A command that starts any MCP server on stdio.")] = "",
    name: Annotated[str, typer.Option(help="Its name here; made from that of the package or the host.")] = "",
    start: _Start = "",
    test: Annotated[str, typer.Option(help="The command of its own tests, where that is not to be seen.")] = "",
    env: _Variables = None,
    constraint: _Constraint = None,
    form: _Form = "",
    calls: Calls = None,
    all_tools: AllTools = False,
    unproven: _Unproven = False,
    timeout: _Seconds = 120.0,
    copy: _Copy = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take a server that exists into the workspace, as it is or as one of the runtime; what would be written is shown first."""
    from mcpfactory_pipeline.adoption.proposal import propose, write_proposal
    from mcpfactory_pipeline.adoption.recognise import recognise
    from mcpfactory_pipeline.adoption.wish import Wish

    workspace = workspace_in()
    wish = Wish(what, command, name, start, test, tuple(env or ()), tuple(constraint or ()), copy, Path.cwd())
    if form:
        if form != "runtime":
            output.fail(
                f"--as {form} is no form of a server", "--as runtime, or nothing: it is adopted as it is", Exit.USAGE
            )
        permission = call_permission(calls, all_tools=all_tools)
        _adopt_as_runtime(workspace, wish, _RuntimeTerms(yes, dry_run, as_json, permission, unproven, timeout))
        return
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
        output.fail("it is written only after a yes", "add --yes, or --dry-run to look at it", Exit.USAGE)
    if not typer.confirm("Write it?", err=True):
        output.fail("nothing was written", "mcpfactory adopt --help", Exit.NO)


@dataclass(frozen=True, slots=True)
class _RuntimeTerms:
    """How a project becomes one of the runtime: whether it is asked, written and printed as data, which tools may be called, seconds for each version."""

    yes: bool
    dry_run: bool
    as_json: bool
    permission: CallPermission
    unproven: bool
    seconds: float


def _adopt_as_runtime(workspace: Workspace, wish: Wish, terms: _RuntimeTerms) -> None:
    """Show what a project becomes, ask, compare both versions as they would be installed, and write it if callers see the same."""
    from mcpfactory_pipeline.adoption.proposal import write_proposal
    from mcpfactory_pipeline.migration.runtime_adoption import propose_runtime

    adoption = propose_runtime(workspace, wish)
    if not terms.as_json:
        _print_adoption(adoption)
    proposal = adoption.proposal
    if proposal is None:
        if terms.as_json:
            output.data(_adoption_data(adoption, None, [], terms))
        output.fail(
            "nothing was written: the places above are left to do by hand",
            "mcpfactory migrate FILE --write --partial writes the rest; without --as it is adopted as it is",
            Exit.NO,
        )
    if not terms.dry_run and not terms.yes and proposal.changes:
        _ask(as_json=terms.as_json)
    alike = _compared(workspace, adoption, terms) if proposal.changes and not terms.dry_run else None
    proven = alike is not None and alike.same
    written = write_proposal(workspace, proposal) if not terms.dry_run and (proven or terms.unproven) else []
    if terms.as_json:
        output.data(_adoption_data(adoption, alike, written, terms))
    elif not terms.dry_run and (written or not proposal.changes):
        _print_written(proposal, written)
    if proposal.changes and not terms.dry_run and not written:
        output.fail(
            "nothing was written", "--unproven writes it all the same; without --as it is adopted as it is", Exit.NO
        )


def _compared(workspace: Workspace, adoption: RuntimeAdoption, terms: _RuntimeTerms) -> Likeness | None:
    """Return how alike both versions are; None where that cannot be seen, which is told."""
    from mcpfactory_pipeline.base.errors import ServerError
    from mcpfactory_pipeline.migration.runtime_adoption import compare_adoption

    output.note("both versions are built, installed, started in a sandbox and asked the same …")
    try:
        alike = compare_adoption(workspace, adoption, terms.permission, terms.seconds)
    except ServerError as error:
        output.note(f"nothing was compared: {error}")
        return None
    if not terms.as_json:
        output.line()
        print_likeness(alike)
    return alike


def _print_adoption(adoption: RuntimeAdoption) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    migration, proposal = adoption.migration, adoption.proposal
    for path, found in migration.files.items():
        print_migration(found, path)
        output.line()
    print_diff(*migration.requirements, "pyproject.toml")
    for step in migration.left:
        output.line(f"left to do by hand: pyproject.toml:{step.line}  {step.what}: {step.says}")
    for note in migration.notes:
        output.note(f"note: {note}")
    if proposal is not None:
        moved = sum(len(found.moved) for found in migration.files.values())
        output.line()
        output.line(f"{moved} places in {pluralize(len(migration.files), 'file')} carry over")
        place = proposal.recognised.table["path"]
        changed = {f"{place}/{path}" for path in migration.changed()}
        _print_proposal(replace(proposal, files=tuple(one for one in proposal.files if one.path not in changed)))


def _adoption_data(
    adoption: RuntimeAdoption, alike: Likeness | None, written: list[str], terms: _RuntimeTerms
) -> dict[str, object]:
    steps = {
        path: {name: [asdict(one) for one in getattr(found, name)] for name in ("moved", "left", "noted")}
        for path, found in adoption.migration.files.items()
    }
    return {
        **(adoption.proposal.to_json() if adoption.proposal else {}),
        "migration": {
            "complete": adoption.migration.complete,
            "files": steps,
            "left": [asdict(one) for one in adoption.migration.left],
            "notes": list(adoption.migration.notes),
        },
        "compared": alike.to_json() if alike is not None else None,
        "written": written,
        "dry_run": terms.dry_run,
    }


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
            output.line(f"  {added} lines are new, {gone} are gone")
    if proposal.copies:
        output.line()
        output.line(f"servers/{proposal.server}/: {pluralize(len(proposal.copies), 'file')} copied")


def _print_written(proposal: AdoptionProposal, written: list[str]) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    output.line()
    if not written:
        output.line(f"{proposal.server} is adopted as it is already: nothing was written")
        return
    below = f"servers/{proposal.server}/"
    others = [path for path in written if not path.startswith(below)]
    told = f"adopted {proposal.server}: wrote {pluralize(len(written) - len(others), 'file')} below {below}"
    output.line(told + (f", and {', '.join(others)}" if others else ""))
    output.note(f"next: mcpfactory pipeline run {proposal.server}")
