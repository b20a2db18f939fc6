"""Decisions that are signed with SSH keys.

`pipeline/allowed_signers` lists the public keys in ssh-keygen's format. Each line has a person's name and a public key.
A signature covers the facts of the decision and a `nonce`, so that nobody can use a signature twice.

A `signed` channel requires signed approvals, rejections, holds and unholds. A `signed` approval stage requires signed
approvals and rejections. Rollbacks and automatic holds require no signature, because they release nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.git import sign_with_ssh_key, ssh_signature_fault
from mcpfactory_pipeline.base.ids import current_actor, new_id
from mcpfactory_pipeline.plan.policy import candidate_approvers
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace

SIGNERS: Final = "pipeline/allowed_signers"
_NAMESPACE: Final = "mcpfactory-decision"
_SIGNED: Final = ("event", "channel", "candidate", "version", "reason", "actor", "nonce")
_OF_STAGES: Final = ("stage", "shown", "restart")  # fields that are signed if the event has them


def sign_decision(key: Path, server: str, event: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys `nonce` and `signature` for an event of the current actor."""
    nonce = new_id()
    signature = sign_with_ssh_key(
        key, _NAMESPACE, _payload(server, {**facts, "event": event, "actor": current_actor(), "nonce": nonce})
    )
    return {"nonce": nonce, "signature": signature}


def require_signing_key(workspace: Workspace, key: Path | None, about: str, *, signed: bool) -> None:
    """Refuse a key that does not belong to the actor. If the policy requires a signature, also refuse a missing key."""
    who = current_actor()
    if signed and key is None:
        raise PromotionError(
            f"{about} must be signed",
            hint=f"pass --sign-with ~/.ssh/id_ed25519; {SIGNERS} must list the public key of {who}",
        )
    signature = sign_with_ssh_key(key, _NAMESPACE, b"") if key else ""
    if key and (fault := ssh_signature_fault(workspace.root / SIGNERS, who, _NAMESPACE, b"", signature)):
        raise PromotionError(
            f"{key} is not a key of {who} in {SIGNERS}: {fault}",
            hint=f'add a line "{who}" with the public key to {SIGNERS}',
        )


def event_signature_fault(workspace: Workspace, server: str, event: Event) -> str:
    """Describe the fault of an event's signature, or return ""."""
    signature = event.get("signature")
    if not isinstance(signature, str) or not isinstance(event.get("nonce"), str):
        return "is not signed"
    who = str(event["actor"])
    return ssh_signature_fault(workspace.root / SIGNERS, who, _NAMESPACE, _payload(server, event), signature)


def approval_signature_faults(
    workspace: Workspace, state: ServerState, events: Sequence[Event], channel: str, candidate: str
) -> dict[str, str]:
    """Return the people whose approval of a candidate has no valid signature, with the reason for each person.

    A signature that appears in two events is invalid in both events.
    """
    about = {"event": "approved", "channel": channel, "candidate": candidate}
    return _unsigned(workspace, state.server, events, about, state.candidates[candidate].approvals.get(channel, {}))


def _unsigned(
    workspace: Workspace, server: str, events: Sequence[Event], about: Mapping[str, Any], people: Iterable[str]
) -> dict[str, str]:
    uses = Counter(event.get("nonce") for event in events if event.get("nonce"))
    found = {}
    for who in people:
        wanted = {**about, "actor": who}
        event = next((event for event in reversed(events) if wanted.items() <= event.items()), None)
        if event is None:
            found[who] = "is in no event"
        elif uses[event.get("nonce")] > 1:
            found[who] = "has the signature of another event"
        elif fault := event_signature_fault(workspace, server, event):
            found[who] = fault
    return found


def decision_signature_faults(
    workspace: Workspace,
    state: ServerState,
    events: Sequence[Event],
    channels: Iterable[ChannelPolicy],
    stages: Iterable[Stage],
) -> Iterator[str]:
    """Describe missing and invalid signatures, if channels or stages require signatures.

    Three kinds of decisions are checked: approvals of candidates that a channel offers or can offer, rejections, and
    the last hold or unhold of each channel.
    """
    for channel in channels:
        if channel.signed:
            for name in state.candidates:
                yield from _candidate_faults(workspace, state, events, channel, name)
            yield from _hold_faults(workspace, state, events, channel)
    for stage in stages:
        if stage.approval and stage.approval.signed:
            for who, fault in stage_approval_signature_faults(workspace, state, events, stage).items():
                yield f"the approval of {stage.name} by {who}: {fault}"


def _candidate_faults(
    workspace: Workspace, state: ServerState, events: Sequence[Event], channel: ChannelPolicy, name: str
) -> Iterator[str]:
    known, offered = state.candidates[name], state.offered(channel.name) == name
    if offered or channel.name not in known.channels:
        faults = approval_signature_faults(workspace, state, events, channel.name, name)
        counted = [who for who in candidate_approvers(channel, known) if who not in faults]
        if not offered:
            for who, fault in faults.items():
                yield f"the approval of {name} for {channel.name} by {who}: {fault}"
        elif len(counted) < channel.approvals:
            why = "".join(f"; {who}: {fault}" for who, fault in faults.items())
            yield f"{channel.name} offers {name}, with {len(counted)} of {channel.approvals} signed approvals{why}"
    about = {"event": "rejected", "channel": channel.name, "candidate": name}
    people = known.rejections.get(channel.name, {})
    for who, fault in _unsigned(workspace, state.server, events, about, people).items():
        yield f"the rejection of {name} for {channel.name} by {who}: {fault}"


def _hold_faults(
    workspace: Workspace, state: ServerState, events: Sequence[Event], channel: ChannelPolicy
) -> Iterator[str]:
    holds = (one for one in reversed(events) if one.get("channel") == channel.name and one["event"] in _HOLDS)
    last = next(holds, None)
    if last is None or last["event"] == "rolled-back" or last.get("stage"):
        return
    about = {"event": last["event"], "channel": channel.name, "id": last["id"]}
    for who, fault in _unsigned(workspace, state.server, events, about, [str(last["actor"])]).items():
        yield f"{channel.name} was {last['event']} by {who}, which {fault}"


_HOLDS: Final = ("held", "released", "rolled-back")


def stage_approval_signature_faults(
    workspace: Workspace, state: ServerState, events: Sequence[Event], stage: Stage
) -> dict[str, str]:
    """Return the people whose approval of a stage's last output has no valid signature, with the reasons."""
    made = state.decisions.get(stage.name)
    about = {"event": "approved", "stage": stage.name, "shown": dict(made.shown)} if made else {}
    return _unsigned(workspace, state.server, events, about, made.approvals) if made else {}


def drop_unsigned_stage_approvals(
    workspace: Workspace, state: ServerState, events: Callable[[], Sequence[Event]], stages: Iterable[Stage]
) -> ServerState:
    """Return the state without stage approvals that lack a required signature."""
    decisions = dict(state.decisions)
    for stage in stages:
        if stage.approval and stage.approval.signed and (made := decisions.get(stage.name)) and made.approvals:
            wrong = stage_approval_signature_faults(workspace, state, events(), stage)
            left = {who: why for who, why in made.approvals.items() if who not in wrong}
            decisions[stage.name] = replace(made, approvals=left)
    return replace(state, decisions=decisions)


def _payload(server: str, event: Mapping[str, Any]) -> bytes:
    said = {"server": server, **{key: event.get(key) for key in _SIGNED}}
    said |= {key: event[key] for key in _OF_STAGES if event.get(key) is not None}
    return json.dumps(said, sort_keys=True, ensure_ascii=False).encode()
