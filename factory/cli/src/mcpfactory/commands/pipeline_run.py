"""Commands `mcpfactory pipeline plan`, `run` and `refresh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import typer

from mcpfactory import output
from mcpfactory.operations import make_typer_command, print_result, run_operation
from mcpfactory.options import AsJson, Names, selected_workspace
from mcpfactory_pipeline.operations.operation import OperationContext
from mcpfactory_pipeline.operations.refresh import Refresh
from mcpfactory_pipeline.operations.run import Run
from mcpfactory_pipeline.plan.plan import PlanStep
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.errors import Exit

# maximum servers of a run whose pending items are printed; otherwise, a command that lists them is printed
_NAMED_SERVERS: Final = 3
_SHOWN_FINDINGS: Final = 3


def plan(names: Names = None, as_json: AsJson = False) -> None:
    """Show the stages to run and the reasons; run nothing."""
    _plan(Run(servers=tuple(names or ())), OperationContext(selected_workspace()), as_json=as_json)


def _plan(wanted: Run, context: OperationContext, *, as_json: bool) -> None:
    steps = wanted.plan(context)
    if as_json:
        output.data([step.to_json() for step in steps])
    else:
        _print_plan(steps)
    if any(step.verdict == "broken" for step in steps):
        raise typer.Exit(Exit.SYSTEM_ERROR)


def _print_plan(steps: Sequence[PlanStep]) -> None:
    due = [step for step in steps if step.verdict != "up-to-date"]
    if due:
        output.table(
            ("SERVER", "STAGE", "VERDICT", "WHY"),
            [(s.server, s.stage or "-", s.verdict, "; ".join(s.reasons)) for s in due],
        )
    running = sum(step.verdict == "run" for step in steps)
    output.note(
        f"{running} of {len(steps)} steps to run" if due else f"nothing to do: {len(steps)} steps are up to date"
    )


def _run(wanted: Run, context: OperationContext, *, as_json: bool) -> None:
    if context.dry_run:
        _plan(wanted, context, as_json=as_json)
        return
    from mcpfactory_pipeline.reporting import make_reporter
    from mcpfactory_pipeline.views.inbox_notifications import notify_inbox_items

    reporter = make_reporter("json" if as_json else "live" if output.supports_styling(sys.stdout) else "plain")
    outcome = wanted.carry_out(replace(context, reporter=reporter))
    warn_missing_isolation(context.workspace, outcome)
    notify_inbox_items(context.workspace, list(outcome.servers))
    if not as_json:
        for name in list(outcome.servers)[:_NAMED_SERVERS]:
            if any(event.get("stage") == "validate" for event in outcome.recorded.get(name, ())):
                _note_worst_findings(context.workspace, name)
        if not wanted.until:  # after a partial run, pending decisions are about the candidate of an earlier run
            _note_waiting(context.workspace, list(outcome.servers))
    raise typer.Exit(outcome.exit_code)


run = make_typer_command(Run, perform=_run)


def _note_worst_findings(workspace: Workspace, name: str) -> None:
    """Print the rules whose findings cost most, and the command that shows all findings."""
    from mcpfactory_pipeline.base.errors import PipelineError
    from mcpfactory_pipeline.base.text import pluralize, printable_line
    from mcpfactory_pipeline.checks.report import describe_first_locations
    from mcpfactory_pipeline.views.status import read_candidate_report

    try:
        findings = json.loads(read_candidate_report(workspace, name)[2])["findings"]
    except (PipelineError, KeyError, ValueError):  # the stage made no report
        return
    by_rule: dict[str, list[dict[str, Any]]] = {}
    for finding in findings:
        by_rule.setdefault(finding["rule"], []).append(finding)
    worst = sorted(by_rule.values(), key=lambda each: (not each[0]["gate"], -each[0]["severity"], -len(each)))
    for each in worst[:_SHOWN_FINDINGS]:
        where = describe_first_locations([finding["where"] for finding in each])
        output.note(
            printable_line(f"{name}: {each[0]['rule']}: {each[0]['message']}" + (f": {where}" if where else ""))
        )
    if findings:
        output.note(f"{pluralize(len(findings), 'finding')}: mcpfactory pipeline history {name} validate")


def _note_waiting(workspace: Workspace, names: Sequence[str]) -> None:
    """Print the pending items of the servers, or for many servers only the command `mcpfactory inbox`."""
    from mcpfactory_pipeline.views.inbox import read_inbox

    if len(names) > _NAMED_SERVERS:
        output.note("see what needs your attention: mcpfactory inbox")
        return
    for item in read_inbox(workspace, names) if names else []:
        if item.kind in {"approval", "ready"}:
            output.note(f"{item.server}: {item.message}\nnext: {item.command}")


def warn_missing_isolation(workspace: Workspace, outcome: Any) -> None:
    """Warn if server code ran without isolation while the setting is `auto`."""
    from mcpfactory_pipeline.isolation.levels import AUTO, NONE, describe_unavailable_levels

    if outcome.ran and outcome.isolation == NONE.name and workspace.settings.pipeline.isolation == AUTO:
        output.warning(f"code of servers ran without isolation ({describe_unavailable_levels()})")
        output.hint('isolation = "required" in [pipeline] refuses such runs; mcpfactory doctor shows what is missing')


def _refresh(wanted: Refresh, context: OperationContext, *, as_json: bool) -> None:
    from mcpfactory_pipeline.reporting import make_reporter

    run_operation(
        print_result, wanted, context if as_json else replace(context, reporter=make_reporter("plain")), as_json=as_json
    )


refresh = make_typer_command(Refresh, perform=_refresh)
