"""Decisions about approval stages. Each decision is one event about the exact content that the stage showed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError, StateError
from mcpfactory_pipeline.base.hashing import ABSENT, hash_file, hash_named_texts
from mcpfactory_pipeline.base.ids import Clock, confirmed_by, current_actor, describe_actor, utc_now
from mcpfactory_pipeline.base.text import normalize_reason
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.decisions.precondition import DecisionFacts, require_precondition, stage_decision_facts
from mcpfactory_pipeline.decisions.signatures import drop_unsigned_stage_approvals, require_signing_key, sign_decision
from mcpfactory_pipeline.plan.fingerprint import InputReader, read_stage_inputs, stage_inputs
from mcpfactory_pipeline.plan.plan import UP_TO_DATE, plan, required_stages
from mcpfactory_pipeline.plan.policy import PromotionBlocker, normalize_person_name, signing_option
from mcpfactory_pipeline.plan.stage import (
    Stage,
    describe_missing_approvals,
    shown_content_approvers,
    shown_content_rejections,
)
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store, Transaction
from mcpfactory_pipeline.state.timeline import last_stage_records
from mcpfactory_pipeline.workspace.policy import ApprovalPolicy, ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

# Content that a person approves → report with its tool list.
_WITH_TOOLS: Final = {"candidate": f"validate/{contract.FILE}", "stage:generate": f"generate/{contract.FILE}"}


class DecisionOptions(TypedDict, total=False):
    """Common options of all decisions. `precondition` is the token of the facts that the user saw."""

    dry_run: bool
    precondition: str
    stages: Sequence[Stage] | None
    clock: Clock


@dataclass(frozen=True, slots=True)
class _StageQuestion:
    workspace: Workspace
    stage: Stage
    policy: ApprovalPolicy
    transaction: Transaction
    shown: Mapping[str, str]
    facts: DecisionFacts
    reason: str
    dry_run: bool

    def record(self, event: str, key: Path | None, **facts: Any) -> dict[str, Any]:
        state = self.transaction.state
        candidate = state.candidate if "candidate" in self.stage.reads else None
        known = state.candidates.get(candidate or "")
        about = {"stage": self.stage.name, "candidate": candidate, "version": known.version if known else None}
        items, tools = stage_output_items(self.stage, state), self._tools()
        # Compare with the last approved tool list, if it is on this machine.
        approved = self.workspace.artifacts / state.server / "approved" / self.stage.name / contract.FILE
        before = _read_tools(approved)
        said = {**about, "shown": dict(self.shown), "reason": self.reason, **facts}
        signed = sign_decision(key, state.server, event, said) if key else {}
        self.transaction.append(event, **said, **signed)
        made = self.transaction.state.decisions[self.stage.name]
        missing = describe_missing_approvals(self.policy, made, self.shown)
        if event == "approved" and tools and not (missing or self.dry_run):
            approved.parent.mkdir(parents=True, exist_ok=True)
            approved.write_text(contract.contract_to_text(tools.tools), encoding="utf-8")
        found = {
            "question": self.policy.message,
            "shown": items,
            "tools": list(tools.tools) if tools else [],
            "changes": [asdict(one) for one in contract.compare_contracts(before, tools).changes]
            if before and tools
            else None,
            "fingerprint": hash_named_texts(self.shown),
            "missing": missing,
        }
        rests_on = {"precondition": self.facts.precondition, "facts": dict(self.facts.parts)}
        return {"server": state.server, **about, **found, **rests_on, "dry_run": self.dry_run}

    def _tools(self) -> contract.Contract | None:
        state, root = self.transaction.state, self.workspace.root
        kept = [
            root / one["file"]
            for one in stage_output_items(self.stage, state)
            if one["file"] and one["part"] in _WITH_TOOLS
        ]
        found = next(filter(None, map(_read_tools, kept)), None)
        if found or "candidate" not in self.stage.reads or not state.candidate:
            return found
        with contextlib.suppress(StateError):
            return contract.stored_contract(self.workspace.artifacts / state.server / state.candidate, manifest=True)
        return None


def _read_tools(file: Path) -> contract.Contract | None:
    """Return the tool list in a file. Errors are ignored, because an unreadable list must not prevent a decision."""
    try:
        return contract.parse_contract(file.read_bytes(), file.name)
    except (OSError, StateError):
        return None


def approve_stage(
    workspace: Workspace,
    server: str,
    stage: str,
    *,
    candidate: str = "",
    reason: str = "",
    sign_with: Path | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Record the approval of an approval stage's output. Earlier rejections of the same output are withdrawn.

    `candidate` may be an ID prefix. If a newer candidate exists, the decision is refused.

    Raises:
        PromotionError: the actor must not approve, or the stage has no valid output.
    """
    with _question(workspace, server, stage, candidate, reason=reason, **options) as question:
        require_signing_key(workspace, sign_with, f"a decision about {stage}", signed=question.policy.signed)
        state = question.transaction.state
        _require_recorded(workspace, question.stage, state)
        events = question.transaction.events
        counted = drop_unsigned_stage_approvals(workspace, state, lambda: events, [question.stage])
        given = shown_content_approvers(question.policy, counted.decisions.get(stage), question.shown)
        about = {"stage": stage, "shown": dict(question.shown)}
        refuse_second_approval(
            events, about, given, f"the output of {stage} of {server}", f"mcpfactory pipeline run {server}"
        )
        return question.record("approved", sign_with)


def refuse_second_approval(
    events: Iterable[Event], about: Mapping[str, Any], given: Collection[str], subject: str, hint: str
) -> None:
    """Refuse a second approval by the same person. An approval by the person's agent also counts.

    `given` lists the people who have already approved. `about` identifies the events of earlier approvals.
    """
    wanted = {**about, "event": "approved"}
    mine = (event for event in events if wanted.items() <= event.items() and event["actor"] in given)
    people = {*given, *(str(event["confirmed"]) for event in mine if "confirmed" in event)}
    keys = set(map(normalize_person_name, people))
    if again := [
        who for who in (confirmed_by() or current_actor(), current_actor()) if normalize_person_name(who) in keys
    ]:
        raise PromotionError(f"{again[0]} has already approved {subject}", hint=hint)


def reject_stage(
    workspace: Workspace,
    server: str,
    stage: str,
    *,
    reason: str,
    candidate: str = "",
    sign_with: Path | None = None,
    **options: Unpack[DecisionOptions],
) -> dict[str, Any]:
    """Record the rejection of an approval stage's output, and remove the approvals of this output.

    The stage's `on_rejection` then stops the later stages, or restarts an earlier stage.
    """
    with _question(workspace, server, stage, candidate, reason=reason, **options) as question:
        require_signing_key(workspace, sign_with, f"a decision about {stage}", signed=question.policy.signed)
        return question.record("rejected", sign_with, restart=question.policy.restart or None)


@contextlib.contextmanager
def _question(
    workspace: Workspace,
    server: str,
    name: str,
    candidate: str,
    *,
    reason: str = "",
    dry_run: bool = False,
    precondition: str = "",
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
) -> Iterator[_StageQuestion]:
    reason = normalize_reason(reason)
    known, stages = workspace.server(server), stages or workspace_stages(workspace)
    deciding = {stage.name: stage for stage in stages if stage.approval}
    if name not in deciding:
        if name in {stage.name for stage in stages}:
            raise PromotionError(
                f"stage {name} is not an approval stage",
                hint=f"choose a stage of kind 'approval': {', '.join(deciding) or 'none'}",
            )
        raise NotFoundError(f"unknown stage {name!r}", hint=did_you_mean(name, deciding, "stages of kind approval"))
    stage = deciding[name]
    assert stage.approval is not None
    with Store(workspace, clock).transaction(server, rehearsal=dry_run) as transaction:
        shown = _refuse(stages, stage, known, transaction.state, candidate)
        facts = stage_decision_facts(transaction.state, name, stage.approval, shown)
        require_precondition(precondition, facts, f"{name} of {server}")
        yield _StageQuestion(workspace, stage, stage.approval, transaction, shown, facts, reason, dry_run)


def _refuse(
    stages: Sequence[Stage], stage: Stage, server: WorkspaceServer, state: ServerState, candidate: str | None
) -> Mapping[str, str]:
    """Return the stage's current output. Refuse an actor who must not decide. Refuse a stage that is not ready."""
    policy = stage.approval
    assert policy is not None
    if policy.approvers and normalize_person_name(current_actor()) not in map(normalize_person_name, policy.approvers):
        raise PromotionError(
            f"{current_actor()} has no permission to decide about {stage.name}",
            hint=f"ask an approver: {', '.join(policy.approvers)} (mcpfactory.toml); {describe_actor()}",
        )
    if candidate and not (state.candidate or "").startswith(candidate):
        raise PromotionError(
            f"{stage.name} of {server.name} waits for a decision about candidate {state.candidate}, not {candidate}",
            hint="check the current output of the stage with 'mcpfactory inbox'",
        )
    inputs = read_stage_inputs(stages, InputReader(server, state))
    steps = {step.stage: step for step in plan(stages, state, inputs)}
    open_needs = [name for name in stage.needs if steps[name].verdict != UP_TO_DATE]
    if open_needs:
        reasons = "; ".join(steps[open_needs[0]].reasons)
        raise PromotionError(
            f"{stage.name} of {server.name} cannot be approved or rejected yet: {open_needs[0]}: {reasons}",
            hint=f"mcpfactory pipeline run {server.name}",
        )
    return inputs[stage.name]


def _require_recorded(workspace: Workspace, stage: Stage, state: ServerState) -> None:
    """Refuse to approve a report that differs from the recorded report."""
    artifacts = [pair for record in state.stages.values() for pair in record.artifacts.items()]
    recorded = {f"pipeline/artifacts/{state.server}/{path}": value for path, value in artifacts}
    for file in (item["file"] for item in stage_output_items(stage, state)):
        if file in recorded and (here := hash_file(workspace.root / file)) not in {ABSENT, recorded[file]}:
            raise PromotionError(
                f"{file} has changed since the stage wrote the file: the hash is {here}, expected {recorded[file]}",
                hint=f"mcpfactory pipeline run {state.server} --force makes the file again",
            )


def approval_stage_blockers(
    workspace: Workspace,
    stages: Sequence[Stage],
    channel: ChannelPolicy,
    channels: Sequence[ChannelPolicy],
    *,
    state: ServerState,
    events: Callable[[], Sequence[Event]],
    candidate: str,
) -> list[PromotionBlocker]:
    """Return blockers for required approval stages that the candidate has not passed.

    Approval stages before the build apply only to the newest candidate.
    """
    found: list[PromotionBlocker] = []
    asked = [stage for stage in required_stages(stages, channel, channels) if stage.approval]
    if not asked:
        return found
    if candidate != state.candidate:
        asked = [stage for stage in asked if "candidate" in stage.reads]
        records = {**state.stages, **last_stage_records(events(), candidate)}
        state = replace(state, candidate=candidate, stages=records)
    reader = InputReader(workspace.server(state.server), state)
    for stage in asked:
        assert stage.approval is not None
        made, shown = state.decisions.get(stage.name), stage_inputs(stage, reader)
        command = approve_stage_command(state, stage)
        words = [f"{stage.name} was rejected by {who}: {why}" for who, why in shown_content_rejections(made, shown)]
        missing = describe_missing_approvals(stage.approval, made, shown)
        found += [
            PromotionBlocker("stage", one, command)
            for one in words or ([f"{stage.name}: {missing}"] if missing else [])
        ]
    return found


def approve_stage_command(state: ServerState, stage: Stage) -> str:
    """Return the command that approves a stage's current output."""
    about = f" --candidate {state.candidate}" if "candidate" in stage.reads and state.candidate else ""
    signed = stage.approval is not None and stage.approval.signed
    return f"mcpfactory pipeline approve {state.server} --stage {stage.name}{about}{signing_option(signed=signed)}"


def shown_artifacts(stages: Iterable[Stage], stage: Stage, artifacts: Mapping[str, str]) -> dict[str, str]:
    """Return the reports of a stage that an approval stage shows. Approvals in a fresh clone need their hashes."""
    parts = {part for one in stages if one.approval for part in one.reads}
    names = {_WITH_TOOLS.get(part, "") for part in parts} | {part.removeprefix("artifact:") for part in parts}
    return {
        path: content
        for path, content in artifacts.items()
        if not path.startswith("logs/") and (f"stage:{stage.name}" in parts or path.partition("/")[2] in names)
    }


def stage_output_items(stage: Stage, state: ServerState) -> list[dict[str, str]]:
    """Return the parts of a stage's output. A part has a description, and possibly a file."""
    items = []
    kept = {
        path.partition("/")[2]: f"pipeline/artifacts/{state.server}/{path}"
        for record in state.stages.values()
        for path in record.artifacts
        if "candidate" not in stage.reads or path.startswith((f"{state.candidate}/", "reports/"))
    }
    for part in stage.reads:
        kind, _, name = part.partition(":")
        record = state.stages.get(name)
        text = (state.candidate or "") if kind == "candidate" else record.message if kind == "stage" and record else ""
        report = kept.get(name if kind == "artifact" else _WITH_TOOLS.get(part, ""), "")
        file = f"servers/{state.server}/{name}" if kind == "file" else report
        items.append({"part": part, "text": text, "file": file})
    return items
