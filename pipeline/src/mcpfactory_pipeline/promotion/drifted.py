"""Whether a server may go on although it is known that it is no longer what was adopted."""

from __future__ import annotations

from collections.abc import Sequence

from mcpfactory_pipeline.base.errors import RefusedError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.plan.policy import Blocker
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.known_drift import DRIFT_RULE, OFFERS, KnownDrift, offered_now, read_known_drift
from mcpfactory_pipeline.workspace.waivers import in_force, read_waivers, uncovering
from mcpfactory_pipeline.workspace.workspace import WorkspaceServer

__all__ = ["ask_again", "drift_blockers", "is_of_other_offer"]


def drift_blockers(server: WorkspaceServer, state: ServerState, candidate: str = "") -> list[Blocker]:
    """Return the known drift of an adopted server that stands in its way; nothing once `validate` has passed with a waiver of just that.

    A `candidate` of a URL drifted as well when another offer was adopted since: the URL serves that one.

    Raises:
        ConfigError: what is known, or waived, cannot be read.
    """
    if candidate and is_of_other_offer(server, state, candidate):
        message = f"candidate {candidate} is of an earlier offer; what its URL offers now was adopted since"
        return [Blocker("drift", message, f"mcpfactory pipeline run {server.name}")]
    known = read_known_drift(server.folder, server.adopted)
    if not known or _accepted(state, offered_now(known)):
        return []
    way_out = f"adopt what is there now, or waive {DRIFT_RULE}, and run it{_other_waiver(server, known)}"
    return [Blocker("drift", f"{one.message}: {way_out}", one.command) for one in known]


def ask_again(server: WorkspaceServer, what: str) -> None:
    """Ask a server at a URL what it offers now, before something is done that `what` names, and write down how that differs from what was adopted.

    Of others nothing is asked: they run the bytes that were checked.

    Raises:
        RefusedError: it does not answer, or what was found cannot be written down.
    """
    if server.adopted is None or not server.adopted.url:
        return
    from mcpfactory_pipeline.adoption.watch import note_seen, watch  # noqa: PLC0415 - heavy, and most servers are at no URL

    seen = watch(server)
    if unanswered := next((one for one in seen if one.unanswered), None):
        raise RefusedError(
            f"{server.name} may not be {what}: whether it is still what was adopted is not known, for {unanswered.message}",
            hint=f"see to it that {server.adopted.url} answers, and type the same again: only it can tell what it offers now",
        )
    try:
        note_seen(server, seen)
    except OSError as error:
        raise RefusedError(
            f"{server.name} may not be {what}: what it offers now cannot be written down: {error}",
            hint=f"make servers/{server.name} writable",
        ) from error


def is_of_other_offer(server: WorkspaceServer, state: ServerState, candidate: str) -> bool:
    """Return whether a candidate of a server at a URL was made of another offer than the one that was adopted last."""
    if server.adopted is None or not server.adopted.url:
        return False
    adopted = hash_file(server.folder / OFFERS)
    return state.candidates[candidate].files.get(OFFERS, adopted) != adopted


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
