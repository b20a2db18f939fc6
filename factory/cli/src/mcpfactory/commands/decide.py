"""`mcpfactory pipeline approve|reject|promote|rollback|hold|unhold|retire|revive`: what people decide about a server."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.options import (
    AsJson,
    Candidate,
    Channel,
    DryRun,
    Name,
    OptionalName,
    Reason,
    RequiredReason,
    SignWith,
    Stage,
    workspace_in,
)
from mcpfactory.output import print_changes
from mcpfactory_runtime.errors import Exit


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (promote, approve, reject, rollback, hold, unhold, retire, revive):
        app.command()(command)


def promote(
    name: OptionalName = "",
    channel: Channel = "production",
    candidate: Candidate = "",
    reason: Reason = "",
    due: Annotated[
        bool, typer.Option("--due", help="Promote all servers that the policy allows now (for timers)")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Move a candidate into a channel if its policy allows it."""
    if bool(name) == due:
        output.fail("give either NAME or --due", "mcpfactory pipeline promote NAME --channel production", Exit.USAGE)
    from mcpfactory_pipeline.decisions.promote import promote as move
    from mcpfactory_pipeline.decisions.promote import promote_due

    workspace = workspace_in()
    if due:
        _print_due(promote_due(workspace, channel, dry_run=dry_run), channel, as_json)
        return
    moved = move(workspace, name, channel, candidate=candidate or None, reason=reason, dry_run=dry_run)
    already = " already" if moved["already"] else ""
    _print(moved, f"{name} {moved['version']} ({moved['candidate']}) is in {channel}{already}", as_json)
    if moved["callers"] and not as_json:
        output.note(moved["callers"])
    _note_pruned(moved, as_json)


def approve(
    name: Name,
    channel: Channel = "production",
    stage: Stage = "",
    candidate: Candidate = "",
    reason: Reason = "",
    sign_with: SignWith = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Approve a candidate for a channel, or an approval stage.

    Approval does not move the candidate.
    """
    from mcpfactory_pipeline.decisions import decision, stage_decision

    wish: dict[str, Any] = {"candidate": candidate or None, "reason": reason, "key": sign_with}
    if stage:
        made = stage_decision.approve_stage(workspace_in(), name, stage, **wish, dry_run=dry_run)
        _print_stage(made, "approved", as_json)
        return
    made = decision.approve(workspace_in(), name, channel, **wish, dry_run=dry_run)
    _print(made, f"{name} {made['version']} ({made['candidate']}) is approved for {channel}", as_json)
    if not as_json:
        _note_texts(name)
        for words in made["lifted"]:
            output.note(f"this takes back the rejection of {words}")
        for words in made["proof"]:
            output.note(words)
        for words in decision.stays_closed(channel, made["blockers"]):
            output.note(words)
        of = f" --candidate {candidate}" if candidate else ""
        kinds = {blocker["kind"] for blocker in made["blockers"]}
        then = f"mcpfactory inbox {name}" if kinds else f"mcpfactory pipeline promote {name} --channel {channel}{of}"
        output.note(f"next, {made['blockers'][0]['command']}" if kinds == {"soak"} else f"next: {then}")


def reject(
    name: Name,
    reason: RequiredReason,
    channel: Channel = "production",
    stage: Stage = "",
    candidate: Candidate = "",
    sign_with: SignWith = None,
    as_json: AsJson = False,
) -> None:
    """Reject a candidate for a channel, or an approval stage.

    A rejection removes earlier approvals.
    """
    from mcpfactory_pipeline.decisions import decision, stage_decision

    wish: dict[str, Any] = {"candidate": candidate or None, "reason": reason, "key": sign_with}
    if stage:
        made = stage_decision.reject_stage(workspace_in(), name, stage, **wish)
        _print_stage(made, "rejected", as_json)
        return
    made = decision.reject(workspace_in(), name, channel, **wish)
    _print(made, f"{name} {made['version']} ({made['candidate']}) is rejected for {channel}", as_json)


def rollback(
    name: Name,
    reason: RequiredReason,
    channel: Channel = "production",
    candidate: Annotated[
        str,
        typer.Option(metavar="CANDIDATE", help="Candidate ID prefix [default: last older candidate in the channel]"),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Move a channel back to an older candidate and hold it."""
    from mcpfactory_pipeline.decisions.promote import rollback as move

    moved = move(workspace_in(), name, channel, reason=reason, candidate=candidate or None)
    _print(moved, f"{name} {moved['version']} ({moved['candidate']}) is back in {channel}, which is held", as_json)
    if not as_json:
        for skipped, why in moved["skipped"].items():
            output.note(f"skipped {skipped}: {why}")
        for words in moved["drift"]:
            output.note(f"mcpfactory install refuses this release: {words}")
        output.note(f"next, to allow changes to the channel again: {moved['unhold']}")


def hold(
    name: Name,
    reason: RequiredReason,
    channel: Channel = "production",
    sign_with: SignWith = None,
    as_json: AsJson = False,
) -> None:
    """Hold a channel until the hold is lifted."""
    from mcpfactory_pipeline.decisions import decision

    made = decision.hold(workspace_in(), name, channel, reason=reason, key=sign_with)
    _print(made, f"{channel} of {name} is held", as_json)


def unhold(
    name: Name,
    channel: Channel = "production",
    reason: Reason = "",
    sign_with: SignWith = None,
    as_json: AsJson = False,
) -> None:
    """Lift the hold of a channel."""
    from mcpfactory_pipeline.decisions import decision

    made = decision.release(workspace_in(), name, channel, reason=reason, key=sign_with)
    _print(made, f"{channel} of {name} is no longer held", as_json)


def retire(name: Name, reason: RequiredReason, channel: Channel = "", as_json: AsJson = False) -> None:
    """Remove a server from one channel, or retire it.

    With --channel, the server leaves that channel, which is then held. Without it, the server leaves all channels
    for good.
    """
    from mcpfactory_pipeline.decisions import decision

    made = decision.retire(workspace_in(), name, channel or None, reason=reason)
    out = ", ".join(made["channels"]) or "no channel"
    _print(made, f"{name} is retired, and out of {out}" if made["retired"] else f"{name} is out of {out}", as_json)


def revive(name: Name, reason: Reason = "", as_json: AsJson = False) -> None:
    """Undo the retirement of a server."""
    from mcpfactory_pipeline.decisions import decision

    made = decision.revive(workspace_in(), name, reason=reason)
    _print(made, f"{name} is no longer retired", as_json)
    if not as_json:
        output.note(f"next: mcpfactory pipeline run {name}")


def _print(made: dict[str, Any], sentence: str, as_json: bool) -> None:
    if as_json:
        output.data(made)
    else:
        output.line(f"dry run: {sentence}" if made["dry_run"] else sentence)


def _note_texts(name: str) -> None:
    """Say of a server of somebody else where its texts are to be read, which no check does for a person."""
    adopted = workspace_in().server(name).adopted
    if adopted is not None and adopted.kind in {"url", "pypi", "npm"}:
        output.note(f"review the texts that the server sends to models: mcpfactory inspect {name} --start --texts")


def _note_pruned(moved: dict[str, Any], as_json: bool) -> None:
    from mcpfactory_pipeline.reporting.lines import pruned_lines

    for line in [] if as_json else pruned_lines(moved["pruned"]):
        output.note(line)


def _print_stage(made: dict[str, Any], word: str, as_json: bool) -> None:
    if not as_json:
        _print_content(made)
    of = f" (candidate {made['candidate']})" if made["candidate"] else ""
    _print(made, f"{made['stage']} of {made['server']}{of} is {word}", as_json)
    if not as_json and word == "approved":
        output.note(made["missing"] or f"next: mcpfactory pipeline run {made['server']}")


def _print_content(made: dict[str, Any]) -> None:
    """Print what an approval stage shows: the question, its parts, the tools, and what changed since the last approval."""
    from mcpfactory_codegen.servers.diff import Change
    from mcpfactory_pipeline.base.text import printable_line

    if made["question"]:
        output.line(made["question"])
    for item in made["shown"]:
        output.line("  ".join(filter(None, (item["part"], item["text"], item["file"]))))
    for tool in made["tools"]:
        rest = {key: value for key, value in tool.items() if key not in {"name", "description"}}
        output.line(f"  {printable_line(tool['name'])}  {printable_line(str(tool.get('description', '')))}")
        output.line(f"    {json.dumps(rest, ensure_ascii=False)}")
    if made["changes"] is not None:
        output.line("changes since the last approval:")
        print_changes([Change(**one) for one in made["changes"]])


def _print_due(moved: list[dict[str, Any]], channel: str, as_json: bool) -> None:
    broken = [entry for entry in moved if "error" in entry]
    if as_json:
        output.data(moved)
    else:
        for entry in moved:
            if "error" not in entry:
                _print(entry, f"{entry['server']} {entry['version']} ({entry['candidate']}) is in {channel}", False)
                if entry["callers"]:
                    output.note(entry["callers"])
                _note_pruned(entry, False)
        for entry in broken:
            output.error(f"{entry['error']}\nhint: {entry['hint']}")
        if not moved:
            output.note(f"no candidate to promote to {channel}; mcpfactory inbox lists what needs your attention")
    if broken:
        raise typer.Exit(Exit.NO)
