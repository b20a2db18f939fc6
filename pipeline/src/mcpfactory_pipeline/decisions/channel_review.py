"""Candidates for a channel, and blockers of promotions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from zipfile import BadZipFile

from mcpfactory_pipeline.build.wheels import read_dist_info
from mcpfactory_pipeline.channels.contract import BreakingChanges, find_breaking_changes
from mcpfactory_pipeline.decisions.stage_decision import approval_stage_blockers
from mcpfactory_pipeline.plan.fingerprint import InputReader, read_stage_inputs, stale_checks
from mcpfactory_pipeline.plan.gates import describe_broken_contract
from mcpfactory_pipeline.plan.plan import required_checks, required_stages
from mcpfactory_pipeline.plan.policy import PromotionBlocker, approve_command, find_promotion_blockers
from mcpfactory_pipeline.plan.stage import Stage, offered_file_name
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.timeline import decisions_about
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace


def next_candidate(state: ServerState, channel: ChannelPolicy) -> str:
    """Return the candidate in the preceding channel, or "". For the first channel, return the newest candidate."""
    candidate = (state.offered(channel.source) if channel.source else state.candidate) or ""
    return candidate if candidate in state.candidates else ""


def is_older_than_offer(state: ServerState, channel: str, candidate: str) -> bool:
    """Return True if a candidate was built before the candidate in the channel."""
    current = state.candidates.get(state.offered(channel))
    return current is not None and state.candidates[candidate].number < current.number


def pending_candidate(state: ServerState, channel: ChannelPolicy) -> str:
    """Return the candidate in the preceding channel if it is newer than the channel's candidate, otherwise ""."""
    candidate = next_candidate(state, channel) if channel.source else ""
    offered = candidate == state.offered(channel.name)
    return "" if not candidate or offered or is_older_than_offer(state, channel.name, candidate) else candidate


@dataclass(frozen=True, slots=True)
class ChannelReview:
    """Review of a server's candidates for a channel. `events` returns the server's history."""

    workspace: Workspace
    stages: Sequence[Stage]
    channels: Sequence[ChannelPolicy]
    policy: ChannelPolicy
    state: ServerState
    events: Callable[[], Sequence[Event]]
    now: datetime

    @property
    def checks(self) -> tuple[str, ...]:
        """Return the stages that must check a candidate before a promotion."""
        return required_checks(self.stages, self.policy, self.channels)

    def stale(self, candidate: str) -> list[str]:
        """Describe the checks of a candidate that must run again."""
        required = required_stages(self.stages, self.policy, self.channels)
        inputs = read_stage_inputs(self.stages, InputReader(self.workspace.server(self.state.server), self.state))
        return stale_checks(self.stages, required, self.state, candidate, inputs)

    def blockers(
        self, candidate: str, *, stale: Sequence[str] = (), drift: Sequence[PromotionBlocker] = ()
    ) -> list[PromotionBlocker]:
        """Return the reasons why a candidate cannot be promoted to the channel."""
        offered, known, broken = self.state.channels.get(self.policy.name), self.state.candidates[candidate], ""
        breaking = self.breaking(candidate) if self.policy.keeps_contract else BreakingChanges()
        # An adopted server has the version of its authors, so only an approval can accept the changes.
        if offered and breaking.count and "kind" not in known.facts:
            words = describe_broken_contract(known.version, offered, breaking.count)
            broken = words and words + breaking.named
        found = find_promotion_blockers(
            self.policy,
            self.checks,
            self.state,
            candidate,
            events=self.state.timeline,
            now=self.now,
            due=stale,
            drift=drift,
            broken=broken,
        )
        if offered and self.has_unnamed_changes(candidate) and "approval" not in {one.kind for one in found}:
            words = f"no approval names the changes that break callers of {offered.version}{breaking.named}"
            command = approve_command(self.state.server, self.policy, candidate)
            found.append(PromotionBlocker("approval", words, command))
        return found + approval_stage_blockers(
            self.workspace,
            self.stages,
            self.policy,
            self.channels,
            state=self.state,
            events=self.events,
            candidate=candidate,
        )

    def breaking(self, candidate: str) -> BreakingChanges:
        """Return the changes that break callers of the channel's release."""
        return find_breaking_changes(self.workspace, self.state, candidate, self.state.channels.get(self.policy.name))

    def risks(self, candidate: str) -> tuple[str, ...]:
        """Return the risks of a promotion: `breaking`, `waived`, `score down`, `new dependency`."""
        offered, known = self.state.offered(self.policy.name), self.state.candidates[candidate]
        before, after = self.state.candidates.get(offered, known).summary("validate"), known.summary("validate")
        scores = [one["score"] for one in (before, after) if "score" in one]
        found = {
            "breaking": self.breaking(candidate).count,
            "waived": after.get("waived"),
            "score down": len(scores) > 1 and scores[1] < scores[0],
            "new dependency": offered and self._dependencies(candidate) - self._dependencies(offered),
        }
        return tuple(name for name, value in found.items() if value)

    def _dependencies(self, candidate: str) -> set[str]:
        """Return the requirements of a candidate's wheel; empty if the wheel is not on this machine."""
        known = self.state.candidates.get(candidate)
        wheel = offered_file_name(known.files) if known else None
        with suppress(OSError, BadZipFile):
            if wheel and wheel.endswith(".whl"):
                file = self.workspace.artifacts / self.state.server / candidate / wheel
                return {
                    re.split(r"[^\w.-]", one)[0]
                    for one in read_dist_info(file, "METADATA").get_all("Requires-Dist", [])
                }
        return set()

    def has_unnamed_changes(self, candidate: str) -> bool:
        """Return True if an approval must name the changes that break callers, and no approval names all of them.

        An approval names the changes since the release that the channel offered at that time.
        """
        if not (self.policy.approvals and self.policy.keeps_contract):
            return False
        wanted = set(self.breaking(candidate).recorded)
        made = decisions_about(self.state.timeline, self.policy.name, candidate)
        return bool(wanted) and not any(
            wanted <= {*one.get("breaking", ())} for one in made if one["event"] == "approved"
        )
