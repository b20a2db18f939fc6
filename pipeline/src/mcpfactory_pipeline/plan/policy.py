"""Channels, and the obstacles between a candidate and a channel.

A pipeline run moves candidates into the first channel. Every other channel takes candidates from an earlier channel.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packaging.utils import canonicalize_version

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.base.text import format_duration, join_lines, pluralize
from mcpfactory_pipeline.plan.gates import COST_GATES, GATES, closed_gates
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import Candidate, ServerState
from mcpfactory_pipeline.state.timeline import (
    approvers_since_rollback,
    candidates_by_offered_version,
    candidates_rolled_back,
    seconds_in_channel,
)
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace


def read_channels(workspace: Workspace) -> tuple[ChannelPolicy, ...]:
    """Return the channels of a workspace in their order."""
    return workspace.settings.pipeline.channels


def cost_limits(channels: Iterable[ChannelPolicy]) -> dict[str, float]:
    """Return the strictest limit of each cost gate in these channels, by gate name."""
    limits: dict[str, float] = {}
    for channel in channels:
        for name in COST_GATES:
            if name in channel.gates:
                limits[name] = min(channel.gates[name], limits.get(name, channel.gates[name]))
    return limits


def find_channel(channels: Sequence[ChannelPolicy], name: str) -> ChannelPolicy:
    """Return the channel of that name."""
    for channel in channels:
        if channel.name == name:
            return channel
    raise NotFoundError(
        f"unknown channel {name!r}", hint=did_you_mean(name, [channel.name for channel in channels], "channels")
    )


# --- requirements of a channel ---


def candidate_approvers(channel: ChannelPolicy, candidate: Candidate, since: Container[str] | None = None) -> list[str]:
    """Return the approvers of a candidate for a channel, sorted by name.

    Only people in the current list of approvers count. Names that differ only in case or spaces belong to one person.
    `since` are the people who approved after a rollback; None without a rollback.
    """
    given = [who for who in candidate.approvals.get(channel.name, {}) if since is None or who in since]
    allowed = [who for who in given if not channel.approvers or who in channel.approvers]
    return sorted({normalize_person_name(who): who for who in allowed}.values())


def missing_approvals(wanted: int, given: Collection[str], approvers: Iterable[str]) -> str:
    """Describe the missing approvals, as `1 of 2 approvals missing, from Grace`; "" if none are missing.

    `given` are the people who approved. `approvers` are the people who can approve; empty for everybody.
    """
    if len(given) >= wanted:
        return ""
    said = {normalize_person_name(who) for who in given}
    left = ", ".join(who for who in approvers if normalize_person_name(who) not in said)
    anyone = f"anyone but {', '.join(given)}" if given else "anyone"
    return f"{wanted - len(given)} of {pluralize(wanted, 'approval')} missing, from {left or anyone}"


def signing_option(*, signed: bool) -> str:
    """Return the command option for signed decisions; "" if decisions need no signature."""
    return " --sign-with ~/.ssh/id_ed25519" if signed else ""


@dataclass(frozen=True, slots=True)
class PromotionBlocker:
    """An obstacle between a candidate and a channel, and the command that removes it.

    `kind` is `retired`, `hold`, `drift`, `check`, `gate`, `source`, `rejection`, `approval` or `soak`. The kind `stage`
    means an approval stage.
    """

    kind: str
    message: str
    command: str


def find_promotion_blockers(
    channel: ChannelPolicy,
    checks: Iterable[str],
    state: ServerState,
    candidate: str,
    *,
    events: Sequence[Event],
    now: datetime,
    due: Sequence[str] = (),
    drift: Sequence[PromotionBlocker] = (),
    broken: str = "",
) -> list[PromotionBlocker]:
    """Return the obstacles between a candidate and a channel.

    `checks` are the names of the stages that check candidates. `due` describes the checks that must run again
    (`stale_checks`). `drift` are the differences from the adopted version (`drift_blockers`). `broken` describes
    changes that break callers, if they require a higher version. A person should remove the obstacles in the returned order.
    """
    known, server, name = state.candidates[candidate], state.server, channel.name
    run, found = f"mcpfactory pipeline run {server}", []
    if state.retired:
        found.append(
            PromotionBlocker(
                "retired", describe_decision("retired", state.retired), f"mcpfactory pipeline revive {server}"
            )
        )
    if hold := state.holds.get(name):
        found.append(
            PromotionBlocker("hold", f"{name} is {describe_decision('held', hold)}", unhold_command(server, channel))
        )
    found += drift
    found += [PromotionBlocker("check", words, run) for words in (*describe_failed_checks(checks, known), *due)]
    if words := version_reuse_fault(channel, known, candidate, events):
        command = f"mcpfactory release apply {server}" if channel.source else f"{run} --again build"
        found.append(PromotionBlocker("gate", words, command))
    closed = closed_gates(channel.gates, known, state.channels.get(name), today=now.date())
    if broken:
        closed["contract"] = broken
    for gate, words in closed.items():
        found.append(PromotionBlocker("gate", words, GATES[gate].remedy.format(server=server, channel=name)))
    if channel.source is None:
        return found
    approve = approve_command(server, channel, candidate)
    if channel.source not in known.channels:
        promote = f"mcpfactory pipeline promote {server} --channel {channel.source}"
        return [*found, PromotionBlocker("source", f"it was never in {channel.source}", promote)]
    for place, way_back in ((channel.source, f"mcpfactory pipeline run {server}"), (name, approve)):
        if withdrawn := candidates_rolled_back(events, place).get(candidate):
            words = f"it was {describe_decision('rolled back', withdrawn)} out of {place}"
            found.append(PromotionBlocker("rejection", words, way_back))
    for who, why in known.rejections.get(name, {}).items():
        found.append(
            PromotionBlocker("rejection", describe_decision("rejected", {"actor": who, "reason": why}), approve)
        )
    given = candidate_approvers(channel, known, approvers_since_rollback(events, name, candidate))
    if missing := missing_approvals(channel.approvals, given, channel.approvers):
        found.append(PromotionBlocker("approval", missing, approve))
    if (left := soak_seconds_left(channel, candidate, events, now)) > 0:
        words = f"{format_duration(left)} of {format_duration(channel.soak)} in {channel.source} left"
        command = f"in {format_duration(left)}: mcpfactory pipeline promote {server} --channel {name}"
        found.append(PromotionBlocker("soak", words, command))
    return found


def version_reuse_fault(channel: ChannelPolicy, known: Candidate, candidate: str, events: Iterable[Event]) -> str:
    """Return the reason why a channel must not offer a candidate under its version; "" if there is none.

    Installers cache wheels by version, so a version must always mean the same bytes. Adopted servers are exempt,
    because installers do not get them from an index.
    """
    if "kind" in known.facts:
        return ""
    if channel.source and "+" in known.version:
        return f"it is a development build, and {channel.name} takes released versions only"
    others = candidates_by_offered_version(events, channel.name).get(canonicalize_version(known.version), set())
    if others and candidate not in others:
        return f"{channel.name} offered {known.version} with other bytes before ({', '.join(sorted(others))})"
    return ""


def approve_command(server: str, channel: ChannelPolicy, candidate: str) -> str:
    """Return the command that approves a candidate for a channel."""
    command = f"mcpfactory pipeline approve {server} --channel {channel.name} --candidate {candidate}"
    return command + signing_option(signed=channel.signed)


def unhold_command(server: str, channel: ChannelPolicy) -> str:
    """Return the command that lifts the hold of a channel."""
    return f"mcpfactory pipeline unhold {server} --channel {channel.name} --reason '…'{signing_option(signed=channel.signed)}"


def describe_decision(what: str, made: Mapping[str, Any]) -> str:
    """Describe a decision on one line, as `held by Ada: two was bad`."""
    return join_lines(f"{what} by {made['actor']}" + (f": {made['reason']}" if made.get("reason") else ""))


def normalize_person_name(name: str) -> str:
    """Normalize a name: to lower case, without spaces and invisible characters."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if unicodedata.category(char)[0] in "LNPSM")


def describe_failed_checks(checks: Iterable[str], candidate: Candidate) -> list[str]:
    """Describe the checks that a candidate did not pass."""
    found = []
    for name in checks:
        outcome = candidate.checks.get(name, {}).get("outcome")
        if outcome is None:
            found.append(f"{name} was not run on it")
        elif outcome != "passed":
            found.append(f"{name} {outcome}")
    return found


def soak_seconds_left(channel: ChannelPolicy, candidate: str, events: Sequence[Event], now: datetime) -> float:
    """Return the remaining soak time of a candidate in the previous channel, in seconds."""
    if not channel.soak or channel.source is None:
        return 0.0
    return max(0.0, channel.soak - seconds_in_channel(events, channel.source, candidate, now))
