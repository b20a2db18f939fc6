"""Whether a server may go on although it is known that it is no longer what was adopted."""

from __future__ import annotations

from mcpfactory_pipeline.plan.fingerprint import INPUTS, InputReader
from mcpfactory_pipeline.plan.policy import Blocker
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.known_drift import DRIFT_RULE, read_known_drift
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["drift_blockers"]


def drift_blockers(server: WorkspaceServer, state: ServerState) -> list[Blocker]:
    """Return the known drift of an adopted server that stands in its way; nothing once `validate` has passed in the knowledge of it.

    Raises:
        ConfigError: what is known cannot be read.
    """
    known = read_known_drift(server.folder, server.adopted)
    record = state.stages.get("validate")
    if (
        record
        and record.outcome == "passed"
        and record.inputs.get("drift") == INPUTS["drift"](InputReader(server, state))
    ):
        return []
    way_out = f"adopt what is there now, or waive {DRIFT_RULE}, and run it"
    return [Blocker("drift", f"{one.message}: {way_out}", one.command) for one in known]
