"""Approvals that are signed by ssh keys: what is signed, who may sign, and what is wrong with those that are not.

The public keys are in `pipeline/allowed_signers`, tracked with the workspace, in ssh-keygen's own form: a name, as approvals have
it, and a key. Signed are the facts of the decision and a `nonce`, so that a signature says yes once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.ids import actor, new_id
from mcpfactory_pipeline.base.ssh import sign, signature_fault
from mcpfactory_pipeline.plan.policy import ChannelPolicy, approved_by
from mcpfactory_pipeline.state.state import Event, ServerState
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["SIGNERS", "approval_faults", "event_fault", "key_fault", "sign_decision", "unsigned_approvals"]

SIGNERS: Final = "pipeline/allowed_signers"
_NAMESPACE: Final = "mcpfactory-decision"
_SIGNED: Final = ("event", "channel", "candidate", "version", "reason", "actor", "nonce")


def sign_decision(key: Path, server: str, event: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the members that make a decision of who acts a signed one.

    Raises:
        ConfigError: the key cannot sign.
    """
    nonce = new_id()
    signature = sign(key, _NAMESPACE, _payload(server, {**facts, "event": event, "actor": actor(), "nonce": nonce}))
    return {"nonce": nonce, "signature": signature}


def key_fault(workspace: Workspace, key: Path) -> str:
    """Return why what a key signs does not count as that of who acts; "" when it does.

    Raises:
        ConfigError: the key cannot sign.
    """
    signature = sign(key, _NAMESPACE, b"")
    return signature_fault(workspace.root / SIGNERS, actor(), _NAMESPACE, b"", signature)


def event_fault(workspace: Workspace, server: str, event: Event) -> str:
    """Return what is wrong with the signature of a decision; "" when it is that of its actor."""
    signature = event.get("signature")
    if not isinstance(signature, str) or not isinstance(event.get("nonce"), str):
        return "is not signed"
    who = str(event["actor"])
    return signature_fault(workspace.root / SIGNERS, who, _NAMESPACE, _payload(server, event), signature)


def unsigned_approvals(
    workspace: Workspace, state: ServerState, events: Sequence[Event], channel: str, candidate: str
) -> dict[str, str]:
    """Return whose approval of a candidate for a channel stands without a signature that counts, with what is wrong with it.

    A signature that stands in two events counts in neither.
    """
    uses = Counter(event.get("nonce") for event in events if event.get("nonce"))
    found = {}
    for who in state.candidates[candidate].approvals.get(channel, {}):
        about = {"event": "approved", "channel": channel, "candidate": candidate, "actor": who}
        event = next((event for event in reversed(events) if about.items() <= event.items()), None)
        if event is None:
            found[who] = "is in no event"
        elif uses[event.get("nonce")] > 1:
            found[who] = "has a signature that another event has, too"
        elif fault := event_fault(workspace, state.server, event):
            found[who] = fault
    return found


def approval_faults(
    workspace: Workspace, state: ServerState, events: Sequence[Event], channels: Sequence[ChannelPolicy]
) -> Iterator[str]:
    """Yield what is wrong with approvals for channels that ask for signed ones: of what may come into them, and of what they offer."""
    for channel in channels:
        if not channel.signed:
            continue
        release = state.channels.get(channel.name)
        for name, known in state.candidates.items():
            offered = release is not None and release.candidate == name
            if channel.name in known.channels and not offered:
                continue
            faults = unsigned_approvals(workspace, state, events, channel.name, name)
            if not offered:
                for who, fault in faults.items():
                    yield f"the approval of {name} for {channel.name} by {who}: {fault}"
                continue
            counted = [who for who in approved_by(channel, known) if who not in faults]
            if len(counted) < channel.approvals:
                why = "".join(f"; {who}: {fault}" for who, fault in faults.items())
                yield f"{channel.name} offers {name}, with {len(counted)} of {channel.approvals} signed approvals{why}"


def _payload(server: str, event: Mapping[str, Any]) -> bytes:
    said = {"server": server, **{key: event.get(key) for key in _SIGNED}}
    return json.dumps(said, sort_keys=True, ensure_ascii=False).encode()
