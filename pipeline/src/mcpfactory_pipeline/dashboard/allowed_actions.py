"""Actions available for a server in its current state, with channels or stages: each is tried as a command.

Pure except for the trial function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcpfactory_pipeline.dashboard.actions import ACTIONS
from mcpfactory_pipeline.dashboard.decision import decidable
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.plan.policy import signing_option


def possible_actions(detail: ServerDetail, goes_through: Callable[[str], bool]) -> dict[str, tuple[str, ...]]:
    """Return the available actions of a server with their channels or stages; ("",) for actions without either.

    `goes_through` tries a command in the name of a permitted person. Decisions that must be signed are left to a
    terminal; the policy determines these (`decision_refusal`), and they are not tried.
    """
    if detail.facts.row.get("problem"):  # nothing of it is known to be so
        return {}
    server = detail.facts.name
    if detail.state.get("retired"):
        return {"revive": ("",)} if goes_through(f"mcpfactory pipeline revive {server}") else {}
    found: dict[str, list[str]] = {"rerun": [""], "waive": [""]}
    for action, about, command in (*_of_channels(detail), *_of_stages(detail)):
        if goes_through(command):
            found.setdefault(action, []).append(about)
    return {name: tuple(found[name]) for name in ACTIONS if name in found}


def _of_channels(detail: ServerDetail) -> Iterator[tuple[str, str, str]]:
    """Yield what may be worth trying at the channels: the action, the channel, the command."""
    server, due = detail.facts.name, set(decidable(detail))
    for channel in detail.channels:
        name, about = channel.name, f"{server} --channel {channel.name}"
        signed = signing_option(signed=channel.signed)
        if name in due and channel.source:
            yield "approve", name, f"mcpfactory pipeline approve {about}{signed}"
            yield "reject", name, f"mcpfactory pipeline reject {about} --reason '…'{signed}"
        if name in due:
            yield "promote", name, f"mcpfactory pipeline promote {about}"
        if detail.state.get("channels", {}).get(name, {}).get("before"):
            yield "rollback", name, f"mcpfactory pipeline rollback {about} --reason '…'"
        if name in detail.state.get("holds", {}):
            yield "release", name, f"mcpfactory pipeline unhold {about}"
        else:
            yield "hold", name, f"mcpfactory pipeline hold {about} --reason '…'"


def _of_stages(detail: ServerDetail) -> Iterator[tuple[str, str, str]]:
    """Yield what may be worth trying at the stages of kind approval: the action, the stage, the command."""
    for stage in detail.stages:
        if stage.approval:
            about = f"{detail.facts.name} --stage {stage.name}"
            signed = signing_option(signed=stage.approval.signed)
            yield "approve-stage", stage.name, f"mcpfactory pipeline approve {about}{signed}"
            yield "reject-stage", stage.name, f"mcpfactory pipeline reject {about} --reason '…'{signed}"
