"""Whether a server may go on although it is known that it is no longer what was adopted."""

from __future__ import annotations

from collections.abc import Sequence

from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.plan.policy import Blocker
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.known_drift import DRIFT_RULE, KnownDrift, offered_now, read_known_drift
from mcpfactory_pipeline.workspace.waivers import in_force, read_waivers, uncovering
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["drift_blockers"]


def drift_blockers(server: WorkspaceServer, state: ServerState) -> list[Blocker]:
    """Return the known drift of an adopted server that stands in its way; nothing once `validate` has passed with a waiver of just that.

    Raises:
        ConfigError: what is known, or waived, cannot be read.
    """
    known = read_known_drift(server.folder, server.adopted)
    if not known or _accepted(state, offered_now(known)):
        return []
    way_out = f"adopt what is there now, or waive {DRIFT_RULE}, and run it{_other_waiver(server, known)}"
    return [Blocker("drift", f"{one.message}: {way_out}", one.command) for one in known]


def _accepted(state: ServerState, offer: str) -> bool:
    """Whether `validate` has passed with a waiver of what is there instead of what was adopted."""
    record = state.stages.get("validate")
    if record is None or record.outcome != "passed" or record.inputs.get("drift") != offer:
        return False
    return DRIFT_RULE in record.summary.get("waived_rules", ())


def _other_waiver(server: WorkspaceServer, known: Sequence[KnownDrift]) -> str:
    """Return in words whose waiver there is that covers something else; "" where there is none."""
    held = in_force(read_waivers(server.folder), utc_now().date())
    others = [one for one in held if one.rule == DRIFT_RULE and uncovering(one, offered_now(known))]
    return "".join(
        f"; the waiver by {one.person} does not count: {uncovering(one, offered_now(known))}" for one in others
    )
