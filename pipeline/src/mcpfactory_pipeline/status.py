"""Where every server stands, as plain data for the command line, the dashboard and other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory_pipeline.errors import PipelineError
from mcpfactory_pipeline.locks import read_holder
from mcpfactory_pipeline.plan import RUN, Step
from mcpfactory_pipeline.runner import server_plan
from mcpfactory_pipeline.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state import State
from mcpfactory_pipeline.store import Store
from mcpfactory_pipeline.workspace import Server, Workspace

__all__ = ["history", "status"]


def status(workspace: Workspace, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """A row for each server (docs/reference/state.md has its shape). A server whose files are broken has a `problem`."""
    stages, store = workspace_stages(workspace), Store(workspace)
    return [_row(workspace, store, stages, server) for server in workspace.choose(list(names or ()))]


def history(workspace: Workspace, server: str) -> list[dict[str, Any]]:
    """Every event of a server, oldest first. Raises `NotFoundError` for a server that is not and never was."""
    store = Store(workspace)
    events = store.history(server) if server in store.servers() else []
    if not events:
        workspace.server(server)
    return [dict(event) for event in events]


def _row(workspace: Workspace, store: Store, stages: Sequence[Stage], server: Server) -> dict[str, Any]:
    holder, problem = read_holder(store.locks, server.name), None
    try:
        state = store.state(server.name)
        steps = server_plan(workspace, server, stages, state)
    except PipelineError as error:
        state, steps, problem = State(server.name), (), {"message": str(error), "hint": error.hint}
    candidate = state.candidates.get(state.candidate or "")
    row: dict[str, Any] = {
        "server": server.name,
        "version": candidate.version if candidate else None,
        "candidate": state.candidate,
        "stages": {step.stage: _stage(state, step) for step in steps},
        "channels": {
            name: {"candidate": release.candidate, "version": release.version}
            for name, release in sorted(state.channels.items())
        },
        "holds": {name: dict(hold) for name, hold in sorted(state.holds.items())},
        "retired": dict(state.retired) if state.retired else None,
        "stale": any(step.verdict == RUN for step in steps),
        "running": holder["stage"] if holder.get("alive") else None,
    }
    return {**row, "problem": problem} if problem else row


def _stage(state: State, step: Step) -> dict[str, Any]:
    record = state.stages.get(step.stage)
    return {
        "outcome": record.outcome if record else None,
        "stale": step.verdict == RUN,
        "verdict": step.verdict,
        "reasons": list(step.reasons),
        "candidate": record.candidate if record else None,
        "message": record.message if record else "",
        "summary": dict(record.summary) if record else {},
    }
