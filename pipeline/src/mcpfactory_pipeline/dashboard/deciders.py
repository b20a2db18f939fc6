"""Who may decide, by the policies of channels and stages, and why somebody may not: what a page offers whom.

This is about what is offered. What is asked for all the same is judged where it is done (`promotion`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.plan.policy import ChannelPolicy, person_key
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.promotion.signatures import unsigned_approvals
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["Deciders", "approvers_of", "channel_deciders", "deciders_of", "decision_refusal", "stage_deciders"]

_DECISIONS: Final = {"approve": False, "reject": False, "approve-stage": True, "reject-stage": True}  # of a stage?
_NAMED: Final = 4  # people that a reason names


@dataclass(frozen=True, slots=True)
class Deciders:
    """Who may approve and reject for the channel `about`, or what the stage `about` shows.

    `approvers` are those who may, anyone where none is named; `approved` those who have. `asked` says that approvals are asked
    for at all, `signed` that only those count that their makers signed.
    """

    about: str
    stage: bool
    approvers: tuple[str, ...]
    approved: tuple[str, ...]
    asked: bool
    signed: bool


def channel_deciders(policy: ChannelPolicy, approved: Collection[str] = ()) -> Deciders:
    """Return who may decide for a channel; `approved` are those who approved the candidate that is next for it."""
    asked = bool(policy.source and policy.approvals)
    return Deciders(policy.name, False, policy.approvers, tuple(sorted(approved)), asked, policy.signed)


def stage_deciders(stage: Stage) -> Deciders:
    """Return who may decide about what a stage of kind approval shows."""
    assert stage.approval is not None
    return Deciders(stage.name, True, stage.approval.approvers, (), True, stage.approval.signed)


def deciders_of(channels: Sequence[ChannelPolicy], stages: Sequence[Stage]) -> Iterator[Deciders]:
    """Yield who may decide, for every channel that asks for approvals and every stage of kind approval."""
    yield from (channel_deciders(channel) for channel in channels if channel.source and channel.approvals)
    yield from (stage_deciders(stage) for stage in stages if stage.approval)


def decision_refusal(known: Iterable[Deciders], action: str, actor: str, about: str = "") -> str:
    """Return in words why somebody may not do an action of the dashboard; "" where they may, and for what is no decision.

    Without `about` it is refused where it would be so for every channel, or stage, of `known`.
    """
    if action not in _DECISIONS:
        return ""
    fitting = [one for one in known if one.stage == _DECISIONS[action] and about in {"", one.about}]
    reasons = [_refusal(one, action, actor) for one in fitting]
    return reasons[0] if all(reasons) and reasons else ""


def _refusal(deciders: Deciders, action: str, actor: str) -> str:
    approves = action.startswith("approve")
    key = person_key(actor)
    # As the decisions themselves compare: exactly for a channel, whatever the spelling for a stage.
    may = key in map(person_key, deciders.approvers) if deciders.stage else actor in deciders.approvers
    if deciders.approvers and not may:
        more = len(deciders.approvers) - _NAMED
        shown = [*deciders.approvers[:_NAMED], *([f"{more} more"] if more > 0 else [])]
        named = " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        return f"only {named} may decide about {deciders.about}; you are {actor}"
    if not deciders.asked and not approves:
        return f"{deciders.about} asks for no approval, so there is none to refuse"
    if deciders.signed:
        return f"decisions about {deciders.about} are signed, which is done in a terminal"
    if approves and key in map(person_key, deciders.approved):
        return "you have approved it already"
    return ""


def approvers_of(
    workspace: Workspace, channels: Iterable[ChannelPolicy], state: ServerState
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield who approved the candidate that is next for a channel, with a signature where it asks for one.

    Of a candidate that was there before not all approvals may count, so nobody is named.
    """
    for channel in channels:
        release = state.channels.get(channel.source or "")
        known = state.candidates.get(release.candidate) if release else None
        if release is None or known is None or channel.name in known.channels:
            continue
        if given := known.approvals.get(channel.name):
            history = Store(workspace).history(state.server) if channel.signed else ()
            unsigned = (
                unsigned_approvals(workspace, state, history, channel.name, release.candidate) if channel.signed else {}
            )
            yield channel.name, tuple(who for who in given if who not in unsigned)
