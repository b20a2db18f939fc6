from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import NotFoundError, StageError
from mcpfactory_pipeline.base.files import open_below
from mcpfactory_pipeline.base.locks import running_stages_of_server
from mcpfactory_pipeline.decisions.channel_review import pending_candidate
from mcpfactory_pipeline.decisions.decision import choose_candidate
from mcpfactory_pipeline.decisions.precondition import channel_decision_facts
from mcpfactory_pipeline.plan.fingerprint import InputReader, read_stage_inputs
from mcpfactory_pipeline.plan.plan import RUN, UP_TO_DATE, PlanStep
from mcpfactory_pipeline.plan.policy import describe_decision, read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.run.runner import log_file, plan_server_stages
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import ServerState, StageRecord, extend
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.drift import find_drift, refresh_adopted_drift
from mcpfactory_pipeline.workspace.adopted import Drift
from mcpfactory_pipeline.workspace.coverage import inspection_report
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import BrokenServer, Workspace, WorkspaceServer, isolate_server_errors


def list_servers(workspace: Workspace) -> list[dict[str, Any]]:
    """Return name, folder, template, number of tools and source of each server; None for unknown values.

    A server with an invalid `mcpfactory.toml` has a `problem`.
    """
    servers, broken = workspace.load_servers()
    rows: list[dict[str, Any]] = [
        _listed(server.folder, template=server.template, tools=_tools(server), source=server.source)
        for server in servers
    ]
    for one in broken:
        problem = {"message": one.message, "hint": one.hint}
        rows.append({**_listed(workspace.root / "servers" / one.name), "problem": problem})
    return sorted(rows, key=lambda row: str(row["server"]))


def _listed(folder: Path, *, template: str = "", tools: int | None = None, source: str | None = None) -> dict[str, Any]:
    return {"server": folder.name, "path": str(folder), "template": template, "tools": tools, "source": source}


def _tools(server: WorkspaceServer) -> int | None:
    try:
        report = inspection_report(server.folder)
    except StageError:  # the stage `generate` reports the broken file and writes it again
        return None
    return len(report["tools"]) if report is not None else None


def status(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    count: Callable[[int, int], None] = lambda _done, _servers: None,
) -> list[dict[str, Any]]:
    """Return a row for each server (shape: docs/reference/state.md). A server with broken files has a `problem`.

    Before each server, `count` gets the number of finished servers and the number of all servers.
    """
    stages, store = workspace_stages(workspace), Store(workspace)
    servers, broken = workspace.load_servers(names)
    rows = []
    for done, server in enumerate(servers):
        count(done, len(servers))
        rows.append(status_row(workspace, store, stages, server)[0])
    rows += [broken_row(one) for one in broken]
    return rows if names else sorted(rows, key=lambda row: str(row["server"]))


def history(workspace: Workspace, server: str) -> list[dict[str, Any]]:
    """Return all events of a server, oldest first.

    Raises:
        NotFoundError: the server has never existed.
    """
    store = Store(workspace)
    events = store.history(server) if server in store.servers() else []
    if not events:
        workspace.server(server)
    return [dict(event) for event in events]


def read_log(workspace: Workspace, server: str, stage: str) -> str:
    """Return the output of a stage's last run."""
    workspace.server(server)
    known = [one.name for one in workspace_stages(workspace)]
    if stage not in known:
        raise NotFoundError(f"unknown stage {stage!r}", hint=did_you_mean(stage, known, "stages"))
    file = log_file(workspace, server, stage)
    try:
        with io.TextIOWrapper(open_below(file, workspace.artifacts), encoding="utf-8", errors="replace") as text:
            return text.read()
    except OSError as error:
        raise NotFoundError(
            f"the log of {stage} of {server} is not on this machine", hint=f"mcpfactory pipeline run {server} --force"
        ) from error


def read_candidate_report(workspace: Workspace, server: str, candidate: str = "") -> tuple[str, str, str]:
    """Return ID, version and text of the `validate` report of a candidate.

    `candidate` is a prefix of the ID; the default is the newest candidate.

    Raises:
        PromotionError: the candidate is unknown.
    """
    workspace.server(server)
    state = Store(workspace).state(server)
    chosen = choose_candidate(state, candidate)
    file = workspace.artifacts / server / chosen / "validate" / "report.json"
    try:
        return chosen, state.candidates[chosen].version, file.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(
            f"the report on candidate {chosen} of {server} is not on this machine",
            hint=f"mcpfactory pipeline run {server} --force",
        ) from error


def status_row(
    workspace: Workspace, store: Store, stages: Sequence[Stage], server: WorkspaceServer, *, refresh: bool = False
) -> tuple[dict[str, Any], ServerState]:
    """Return the row of one server, and its state. If the state is unreadable, an empty state is returned.

    A stage whose process died is shown as interrupted, even if the state does not contain the interruption yet.
    """
    at_work = running_stages_of_server(store.locks, server.name)

    def read() -> tuple[dict[str, Any], ServerState]:
        state, channels = store.state(server.name), read_channels(workspace)
        now = extend(state, store.crashed_stages(server.name))
        # Update the known drift before reading the inputs, because drift is one of the inputs.
        seen = refresh_adopted_drift(server) if refresh and not state.retired else []
        inputs = read_stage_inputs(stages, InputReader(server, now))
        steps = plan_server_stages(workspace, server, stages, now, inputs=inputs)
        known = {stage.name: stage for stage in stages}
        cells = {step.stage: _stage(now, step, known[step.stage]) for step in steps}
        drift = find_drift(workspace, server, state, inputs, refresh=refresh, seen=seen)
        return _row(state, channels, cells, drift), state

    found = isolate_server_errors(server.name, read)
    row, state = (broken_row(found), ServerState(server.name)) if isinstance(found, BrokenServer) else found
    half = store.half_written(server.name)
    return {**row, "running": next(iter(at_work), None), "at_work": list(at_work), "half_written": half}, state


def broken_row(one: BrokenServer) -> dict[str, Any]:
    """Return the row of a broken server."""
    return {**_row(ServerState(one.name)), "problem": {"message": one.message, "hint": one.hint}}


def _row(
    state: ServerState,
    channels: Sequence[ChannelPolicy] = (),
    stages: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    drift: Sequence[Drift] = (),
) -> dict[str, Any]:
    candidate, policies = state.candidates.get(state.candidate or ""), {channel.name: channel for channel in channels}
    return {
        "server": state.server,
        "version": candidate.version if candidate else None,
        "candidate": state.candidate,
        "stages": dict(stages),
        "channels": {
            name: {"candidate": release.candidate, "version": release.version}
            for name, release in sorted(state.channels.items())
        },
        "published": {target: asdict(live) for target, live in sorted(state.published.items())},
        "publishing": sorted(state.publishing),
        # The holds of a removed channel are hidden until the channel returns.
        "holds": {name: dict(hold) for name, hold in sorted(state.holds.items()) if name in policies},
        "rejected": {name: known for name, policy in policies.items() if (known := _rejected(state, policy))},
        "precondition": {name: channel_decision_facts(state, policy).precondition for name, policy in policies.items()},
        "retired": dict(state.retired) if state.retired else None,
        "coverage": _coverage(state),
        "drift": [entry.to_json() for entry in drift],
        "stale": any(cell["stale"] for cell in stages.values()),
        "running": None,
        "at_work": [],
        "half_written": None,
    }


def _rejected(state: ServerState, policy: ChannelPolicy) -> dict[str, Any]:
    candidate = pending_candidate(state, policy)
    known = state.candidates.get(candidate)
    if known is None or not known.rejections.get(policy.name):
        return {}
    said = [{"actor": who, "reason": why} for who, why in known.rejections[policy.name].items()]
    return {"candidate": candidate, "version": known.version, "by": said}


def _coverage(state: ServerState) -> dict[str, Any] | None:
    record = state.stages.get("generate")
    return record.summary.get("coverage") or None if record else None


def _decided(state: ServerState, stage: Stage) -> str:
    if stage.approval is None:
        return f"{stage.name} offers the newest candidate"
    made = state.decisions.get(stage.name)
    said = made.approvals.items() if made else ()
    return "; ".join(describe_decision("approved", {"actor": who, "reason": why}) for who, why in sorted(said))


def _stage(state: ServerState, step: PlanStep, stage: Stage) -> dict[str, Any]:
    """Return the cell of a stage.

    Approval stages, and stages that await a channel, have no record and show their verdict.
    """
    record = state.stages.get(step.stage)
    if stage.approval or stage.awaits:
        record = StageRecord("passed", message=_decided(state, stage)) if step.verdict == UP_TO_DATE else None
    return {
        "outcome": record.outcome if record else None,
        "stale": step.verdict == RUN,
        "verdict": step.verdict,
        "reasons": list(step.reasons),
        "candidate": record.candidate if record else None,
        "message": record.message if record else "",
        "summary": dict(record.summary) if record else {},
    }
