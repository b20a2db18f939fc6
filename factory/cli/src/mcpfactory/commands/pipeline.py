"""The command table of `mcpfactory pipeline`, and the commands that show and repair state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from mcpfactory import completion, output
from mcpfactory.command_groups import CommandEntry, lazy_group
from mcpfactory.options import AsJson, DryRun, Name, Names, Show, selected_workspace
from mcpfactory.output import server_progress
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.errors import Exit

_COMMANDS: Final = "mcpfactory.commands"
_DECISIONS: Final = "mcpfactory_pipeline.operations.decisions"
COMMANDS: Final = {
    "plan": CommandEntry("Run", f"{_COMMANDS}.pipeline_run:plan", "Show the stages to run and the reasons; run nothing"),
    "run": CommandEntry("Run", f"{_COMMANDS}.pipeline_run:run", "Run the stages that are not up to date"),
    "refresh": CommandEntry("Run", f"{_COMMANDS}.pipeline_run:refresh", "Test servers with the newest dependencies"),
    "status": CommandEntry("Run", f"{_COMMANDS}.pipeline:status", "Show stages, candidate and channels of every server"),
    "history": CommandEntry("Run", f"{_COMMANDS}.pipeline:history", "Show the events of a server, newest last"),
    "promote": CommandEntry("Decide", f"{_DECISIONS}:Promote", "Move a candidate into a channel, if the policy allows it"),
    "approve": CommandEntry("Decide", f"{_DECISIONS}:Approve", "Approve a candidate for a channel, or the result of a stage"),
    "reject": CommandEntry("Decide", f"{_DECISIONS}:Reject", "Reject a candidate for a channel, or the result of a stage"),
    "rollback": CommandEntry("Decide", f"{_DECISIONS}:Rollback", "Move a channel back to an older candidate; hold the channel"),
    "hold": CommandEntry("Decide", f"{_DECISIONS}:Hold", "Hold a channel until the hold is lifted"),
    "unhold": CommandEntry("Decide", f"{_DECISIONS}:Unhold", "Lift the hold of a channel"),
    "retire": CommandEntry("Decide", f"{_DECISIONS}:Retire", "Remove a server from one channel, or retire the server"),
    "revive": CommandEntry("Decide", f"{_DECISIONS}:Revive", "Undo the retirement of a server"),
    "verify": CommandEntry("Repair", f"{_COMMANDS}.pipeline:verify", "Compare state files with their histories"),
    "restore": CommandEntry("Repair", f"{_COMMANDS}.pipeline:restore", "Restore the channel folders from the recorded state"),
    "prune": CommandEntry("Repair", f"{_COMMANDS}.pipeline:prune", "Delete the files of old candidates"),
}  # fmt: skip

app = typer.Typer(
    help="Generate, build, test, validate and promote servers.", cls=lazy_group(COMMANDS), no_args_is_help=True
)


@app.callback()
def _group() -> None:
    pass


_SHOWN_FIELDS: Final = ("stage", "target", "channel", "outcome", "candidate", "gone", "previous", "reason")


def status(
    names: Names = None,
    graph: Annotated[
        str,
        typer.Option(
            "--graph",
            metavar="FORMAT",
            help="Draw the stages and their status as text, svg, json or mermaid",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show stages, candidate and channels of every server.

    With NAMES, show each stage. Stale results are marked as stale. With --graph, draw the stages, their dependencies and the approvals by people.
    """
    from mcpfactory_pipeline.reporting.line_reporter import status_summary, status_table
    from mcpfactory_pipeline.views.status import status as read_status

    if graph:
        _draw(selected_workspace(), names or [], graph)
        return
    with server_progress() as count:
        rows = read_status(selected_workspace(), names or None, count=count)
    if as_json:
        output.data(rows)
    else:
        header, cells = (status_table if names else status_summary)(rows)
        output.table(header, cells)
        for row in rows:
            if problem := row.get("problem"):
                if not names:
                    output.note(f"{row['server']}: error: {problem['message']}")
                output.hint(f"{row['server']}: {problem['hint']}")
            elif half := row.get("half_written"):
                output.note(f"{row['server']}: {half['message']}")
                output.hint(half["hint"])
        built = {row["server"]: row["stages"].get("build", {}).get("summary", {}) for row in rows}
        _note_development_builds([server for server, summary in built.items() if summary.get("stated")])


def _note_development_builds(servers: Sequence[str]) -> None:
    """Print which servers need a new version."""
    from mcpfactory_pipeline.base.text import pluralize

    if servers:
        builds = pluralize(len(servers), "development build")
        output.note(f"{builds}: the version in the sources was released with different bytes")
        output.hint(f"mcpfactory release apply {' '.join(servers)}")


def _draw(workspace: Workspace, names: Sequence[str], form: str) -> None:
    from mcpfactory_pipeline.plan.policy import read_channels
    from mcpfactory_pipeline.stages import workspace_stages
    from mcpfactory_pipeline.views.graph import FORMATS, stage_graph, to_text
    from mcpfactory_pipeline.views.graph_svg import render_graph_svg
    from mcpfactory_pipeline.views.status import status as read_status

    if form not in (*FORMATS, "svg"):
        output.usage_error(f"unknown format {form!r}", f"formats: {', '.join((*FORMATS, 'svg'))}")
    if len(names) > 1:
        output.usage_error("--graph accepts at most one server", f"mcpfactory pipeline status --graph {form}")
    if form == "svg":
        output.print_document(render_graph_svg(workspace, "".join(names)))
        return
    row = read_status(workspace, names)[0] if names else None
    nodes = stage_graph(workspace_stages(workspace), row, read_channels(workspace))
    output.print_document(to_text(nodes, output.width()) if form == "text" else FORMATS[form](nodes))


def history(
    name: Name,
    stage: Annotated[
        str, typer.Argument(metavar="[STAGE]", help="Print the output of this stage", autocompletion=completion.stages)
    ] = "",
    show: Show = 20,
    whole: Annotated[
        bool, typer.Option("--all", help="With STAGE: print all output, even if the stage failed")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the events of a server, newest last.

    With STAGE, print the output of the stage's last run on this machine. If the stage did not pass, print its cause and
    the part of the output about the failure.
    """
    from mcpfactory_pipeline.run.runner import failed_stage_log_excerpt
    from mcpfactory_pipeline.state.store import Store
    from mcpfactory_pipeline.state.timeline import actor_of
    from mcpfactory_pipeline.views.status import history as read_history
    from mcpfactory_pipeline.views.status import read_log

    if stage:
        workspace = selected_workspace()
        text = read_log(workspace, name, stage)
        if as_json:
            output.data({"server": name, "stage": stage, "log": text})
            return
        record = Store(workspace).state(name).stages.get(stage)
        if record is not None and record.outcome != "passed":
            output.note(f"{stage} {record.outcome}: {record.message}")
            lines = text.splitlines()
            shown = failed_stage_log_excerpt(lines, record.summary.get("gates", ()))
            if not whole and len(shown) < len(lines):
                output.note(f"{len(shown)} of {len(lines)} lines: mcpfactory pipeline history {name} {stage} --all")
                text = "\n".join((*shown, ""))
        output.print_untrusted_text(text)
        return
    events = read_history(selected_workspace(), name)[-show:]
    if as_json:
        output.data(events)
        return
    rows = [
        (e["at"], actor_of(e), e["event"], " ".join(dict.fromkeys(str(e[k]) for k in _SHOWN_FIELDS if e.get(k))))
        for e in events
    ]
    output.table(("WHEN", "WHO", "EVENT", "WHAT"), rows)


def verify(
    names: Names = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rewrite each state file that differs from its history")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare state files with their histories.

    The history must still contain every event of the last commit. Approvals must have the required signatures. The
    channel folders on this machine must contain the recorded files, unchanged, and no other files. State files that
    lack the newest events, as after a merge, are written again.

    Exit code 1: a file was edited or damaged. Exit code 0: there are no findings, or only notes.
    """
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.decisions.integrity import channel_folder_faults, report_faults, signature_faults
    from mcpfactory_pipeline.state.store import Store
    from mcpfactory_pipeline.state.verify import refresh_views
    from mcpfactory_pipeline.state.verify import repair as repair_states
    from mcpfactory_pipeline.state.verify import verify as compare

    workspace = selected_workspace()
    found = (repair_states if repair else compare)(workspace, names or None)
    for check in (signature_faults, channel_folder_faults, report_faults):
        found += check(workspace, names or None)
    broken = {entry["server"] for entry in found if entry.get("level") != "warning"}
    store = Store(workspace)
    sound = [server for server in names or store.servers() if server not in broken]
    found += refresh_views(workspace, sound)
    halves = [(server, store.half_written(server)) for server in names or store.servers()]
    found += [{"server": server, **half, "changes": [], "level": "warning"} for server, half in halves if half]
    left = [entry for entry in found if not entry.get("mended") and entry.get("level") != "warning"]
    if as_json:
        output.data(found)
    else:
        for entry in found:
            _print_difference(entry)
        count = len({entry["server"] for entry in left})
        verdict = f"{pluralize(count, 'server')} {'differs' if count == 1 else 'differ'}"
        verdict = verdict if left else "state matches history"
        mended = sum(bool(entry.get("mended")) for entry in found)
        output.note(f"{mended} repaired; {verdict}" if repair and found else verdict)
    if left:
        raise typer.Exit(Exit.NEGATIVE)


_SHOWN_CHANGES: Final = 20


def _print_difference(entry: dict[str, Any]) -> None:
    level = "note: " if entry.get("level") == "warning" else ""
    output.line(f"{level}{entry['server']}: {entry['message']}")
    for change in entry["changes"][:_SHOWN_CHANGES]:
        output.line(f"  {change}")
    if len(entry["changes"]) > _SHOWN_CHANGES:
        output.line(f"  … and {len(entry['changes']) - _SHOWN_CHANGES} more: --json prints all of them")
    if not entry.get("mended"):
        output.hint(entry["hint"])


def restore(
    names: Names = None,
    candidate: Annotated[
        str, typer.Option(metavar="CANDIDATE", help="Restore the files of this candidate [requires one NAME]")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Restore the channel folders from the recorded state.

    Missing wheels are built again.
    """
    from mcpfactory_pipeline.decisions.restore import restore as restore_channels
    from mcpfactory_pipeline.decisions.restore import restore_candidate_files

    workspace = selected_workspace()
    if candidate:
        if len(names or ()) != 1:
            output.usage_error("--candidate needs one NAME", "mcpfactory pipeline history NAME")
        found = [restore_candidate_files(workspace, (names or [""])[0], candidate)]
    else:
        found = restore_channels(workspace, names or None)
    missing = [entry for entry in found if entry.outcome == "missing"]
    if as_json:
        output.data([entry.to_json() for entry in found])
    else:
        if found:
            output.table(
                ("SERVER", "CHANNEL", "CANDIDATE", "", "FROM"),
                [(e.server, e.channel or "-", e.candidate, e.outcome, e.source or "-") for e in found],
            )
        for entry in missing:
            output.hint(f"{entry.server}: {entry.hint}")
        if not found:
            output.note("no server is in a channel")
    if missing:
        raise typer.Exit(Exit.NEGATIVE)


def prune(
    names: Names = None,
    history: Annotated[
        bool, typer.Option("--history", help="Replace old results in histories, instead of deleting files")
    ] = False,
    days: Annotated[int, typer.Option(min=0, help="Days of events that --history keeps")] = 30,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Delete the files of old candidates.

    `keep` in [artifacts] sets how many of the newest candidates stay. Published candidates also stay, and so do
    candidates that are or were in a channel.

    With --history, no files are deleted. Decisions, promotions, and results that the state depends on stay in the
    histories. A history with uncommitted changes is refused, because only Git keeps the replaced lines.
    """
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.channels.candidate import prune as prune_files

    if history:
        from mcpfactory_pipeline.state.verify import compact_histories

        replaced, broken = compact_histories(selected_workspace(), names or (), days=days, dry_run=dry_run)
        if as_json:
            output.data(replaced)
        else:
            for server, count in replaced.items():
                output.line(f"{server}: {pluralize(count, 'event')} {'would be ' if dry_run else ''}replaced by one")
        for one in broken:
            output.error(f"{one.name}: {one.message}", one.hint)
        if broken:
            raise typer.Exit(Exit.SYSTEM_ERROR)
        return
    found = prune_files(selected_workspace(), names or None, dry_run=dry_run)
    if as_json:
        output.data([entry.to_json() for entry in found])
        return
    gone = [entry for entry in found if not entry.kept]
    for entry in found:
        output.line(f"{entry.path}  {f'kept: {entry.kept}' if entry.kept else f'{entry.bytes / 1e6:.1f} MB'}")
    size = sum(entry.bytes for entry in gone) / 1e6
    output.note(f"{pluralize(len(gone), 'folder')}, {size:.1f} MB {'would be deleted' if dry_run else 'deleted'}")
