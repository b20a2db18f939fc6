"""Channels and what each asks of a candidate: `[[pipeline.channels]]` of the workspace. Reading is strict, judging is pure.

The first channel is filled by the run on its own; every other takes candidates from one before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from packaging.utils import canonicalize_version

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.base.text import format_duration, on_one_line, pluralize
from mcpfactory_pipeline.plan.gates import COSTS, GATES, closed_gates
from mcpfactory_pipeline.state.schema import Event
from mcpfactory_pipeline.state.state import Candidate, ServerState
from mcpfactory_pipeline.state.timeline import approvers_since, offered_versions, seconds_in_channel, withdrawals
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FIELDS: Final = ("name", "from", "gates", "checks", "soak", "approvals", "approvers", "signed", "agents")
AGENT_ACTIONS: Final = ("approve", "reject", "promote", "rollback", "hold", "unhold", "publish")
_BY_NAME: Final = "publish"  # not included in `agents = true`, because a publication cannot be taken back


@dataclass(frozen=True, slots=True)
class ChannelPolicy:
    """One channel. `source` is the channel that it takes candidates from, None for the first, which the run fills.

    `gates` are limits by the name of the gate, `soak` is in seconds, `approvers` may be empty: then anyone may approve.
    With `signed` an approval counts with the signature of who gave it. `agents` are the actions (of `AGENT_ACTIONS`) that an agent may carry out through `mcpfactory serve` once a person said yes.
    `checks` names the stages behind channels before it that must have passed; None means all of them.
    """

    name: str
    source: str | None = None
    gates: Mapping[str, float] = field(default_factory=dict)
    soak: float = 0.0
    approvals: int = 0
    approvers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    signed: bool = False
    checks: tuple[str, ...] | None = None


DEFAULT: Final = (ChannelPolicy("staging"), ChannelPolicy("production", source="staging", approvals=1))


def read_channels(workspace: Workspace) -> tuple[ChannelPolicy, ...]:
    """Return the channels of a workspace in their order; staging and production when it names none.

    Raises:
        ConfigError: for a channel that cannot be used.
    """
    tables = workspace.settings.get("channels")
    if tables is None:
        return DEFAULT
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise setting_error(
            "pipeline.channels is not a list of tables", "write [[pipeline.channels]] before each channel"
        )
    channels: list[ChannelPolicy] = []
    for table in tables:
        channels.append(_channel(table, [channel.name for channel in channels]))
    return tuple(channels)


def cost_limits(channels: Iterable[ChannelPolicy]) -> dict[str, float]:
    """Return the strictest cost limits of these channels, by the names of the gates for measured costs."""
    limits: dict[str, float] = {}
    for channel in channels:
        for name in COSTS:
            if name in channel.gates:
                limits[name] = min(channel.gates[name], limits.get(name, channel.gates[name]))
    return limits


def find_channel(channels: Sequence[ChannelPolicy], name: str) -> ChannelPolicy:
    """Return the channel of that name.

    Raises:
        NotFoundError: the channel does not exist.
    """
    for channel in channels:
        if channel.name == name:
            return channel
    raise NotFoundError(
        f"unknown channel {name!r}", hint=listed(name, [channel.name for channel in channels], "channels")
    )


def _channel(table: Mapping[str, Any], known: Sequence[str]) -> ChannelPolicy:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise setting_error(
            f"channel name {name!r} is invalid: use lower-case letters, digits, - and _", 'name = "production"'
        )
    if name in known:
        raise setting_error(f"there are two channels {name}", "give one of them another name")
    if found := unknown_field(table, _FIELDS, f"channel {name}"):
        raise setting_error(*found)
    source = table.get("from")
    if known and source not in known:
        raise setting_error(
            f"channel {name}: from is {source!r}, which is not an earlier channel", f'from = "{known[-1]}"'
        )
    approvals, approvers = table.get("approvals", 0), table.get("approvers", [])
    if not isinstance(approvals, int) or isinstance(approvals, bool) or not 0 <= approvals <= 20:
        raise setting_error(
            f"channel {name}: approvals is {approvals!r}, but must be a number from 0 to 20", "approvals = 1"
        )
    if not isinstance(approvers, list) or not all(isinstance(one, str) and one for one in approvers):
        raise setting_error(f"channel {name}: approvers is not a list of names", 'approvers = ["Ada", "Grace"]')
    if approvers and len(set(approvers)) < approvals:
        raise setting_error(
            f"channel {name} requires {approvals} approvals, but names only {pluralize(len(set(approvers)), 'approver')}",
            "name more approvers",
        )
    soak = read_duration(table.get("soak", "0s"), f"channel {name}: soak")
    if not known and (source is not None or approvals or approvers or soak):
        raise setting_error(
            f"channel {name} is the first, which runs fill: it must not have from, soak, approvals or approvers",
            "give a later channel the fields from, soak and approvals",
        )
    agents, signed = _agents(name, table.get("agents", False)), table.get("signed", False)
    if not isinstance(signed, bool) or (signed and not approvals):
        raise setting_error(
            f"channel {name}: signed is {signed!r}, but must be true or false, and true requires approvals",
            "set signed = true only for a channel with approvals",
        )
    gates = _gates(name, table.get("gates", {}))
    return ChannelPolicy(
        name, source, gates, soak, approvals, tuple(approvers), agents, signed, _checks(name, table.get("checks"))
    )


def _checks(channel: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise setting_error(f"channel {channel}: checks is not a list of stages", 'checks = ["smoke"]')
    return tuple(value)


def _agents(channel: str, value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return tuple(one for one in AGENT_ACTIONS if value and one != _BY_NAME)
    if not isinstance(value, list) or not all(one in AGENT_ACTIONS for one in value):
        raise setting_error(
            f"channel {channel}: agents is {value!r}, which is not valid",
            f"use true (all but {_BY_NAME}), or a list of {', '.join(AGENT_ACTIONS)}",
        )
    return tuple(one for one in AGENT_ACTIONS if one in value)


def _gates(channel: str, table: object) -> dict[str, float]:
    if not isinstance(table, dict):
        raise setting_error(f"channel {channel}: gates is not a table", "gates = { min_score = 90 }")
    for name, limit in table.items():
        if name not in GATES:
            raise setting_error(f"channel {channel}: unknown gate {name!r}", listed(name, GATES, "gates"))
        if GATES[name].switch:
            if limit is not True:
                raise setting_error(
                    f"channel {channel}: gate {name} is {limit!r}, which is not valid",
                    f"{name} = true, or leave it out",
                )
        elif not isinstance(limit, int | float) or isinstance(limit, bool) or limit < 0:
            raise setting_error(f"channel {channel}: gate {name} is {limit!r}, which is not valid", f"{name} = 90")
        elif (most := GATES[name].most) is not None and limit > most:
            raise setting_error(
                f"channel {channel}: gate {name} is {limit!r}, but must be at most {most:g}", f"{name} = 0.8"
            )
    return {name: table[name] for name in GATES if name in table}


def read_duration(value: object, what: str) -> float:
    """Return a duration in seconds, from `30m`, `24h`, `7d`; `what` is the field that an error names.

    Raises:
        ConfigError: for anything else.
    """
    found = re.fullmatch(r"(\d{1,6})([smhd])", value) if isinstance(value, str) else None
    if found is None:
        raise setting_error(f"{what} is {value!r}, which is not a valid duration", 'soak = "24h"; units: s, m, h, d')
    return float(int(found[1]) * _UNITS[found[2]])


# --- judging ---


def approved_by(channel: ChannelPolicy, candidate: Candidate, since: Container[str] | None = None) -> list[str]:
    """Return the valid approvers of a candidate for a channel (by today's list of approvers), sorted by name.

    Different spellings of one name are one person. `since` are the people who approved after a rollback, None without
    a rollback.
    """
    given = [who for who in candidate.approvals.get(channel.name, {}) if since is None or who in since]
    allowed = [who for who in given if not channel.approvers or who in channel.approvers]
    return sorted({person_key(who): who for who in allowed}.values())


def missing_approvals(wanted: int, given: Collection[str], approvers: Iterable[str]) -> str:
    """Describe the missing approvals: `1 of 2 approvals missing, from Grace`; return "" if none are missing.

    `given` are the people who approved; `approvers` those who are allowed to, if the policy names them.
    """
    if len(given) >= wanted:
        return ""
    said = {person_key(who) for who in given}
    left = ", ".join(who for who in approvers if person_key(who) not in said)
    anyone = f"anyone but {', '.join(given)}" if given else "anyone"
    return f"{wanted - len(given)} of {pluralize(wanted, 'approval')} missing, from {left or anyone}"


def signing_option(*, signed: bool) -> str:
    """Return the command option for a channel or a stage that requires signed decisions; otherwise ""."""
    return " --sign-with ~/.ssh/id_ed25519" if signed else ""


@dataclass(frozen=True, slots=True)
class Blocker:
    """An obstacle between a candidate and a channel: its kind, a message, and the next step with a command.

    Kinds: `retired`, `hold`, `drift`, `check`, `gate`, `source`, `rejection`, `approval`, `soak`; `stage` for an
    approval stage.
    """

    kind: str
    message: str
    command: str


def find_blockers(
    channel: ChannelPolicy,
    checks: Iterable[str],
    state: ServerState,
    candidate: str,
    *,
    events: Sequence[Event],
    now: datetime,
    due: Sequence[str] = (),
    drift: Sequence[Blocker] = (),
) -> list[Blocker]:
    """Return the obstacles between a candidate and a channel.

    `checks` names the stages that check candidates; `due` describes those that must run again (`due_checks`); `drift`
    are the differences of an adopted server from the adopted version (`drift_blockers`). The blockers are in the
    order in which a person would remove them.
    """
    known, server, name = state.candidates[candidate], state.server, channel.name
    run, found = f"mcpfactory pipeline run {server}", []
    if state.retired:
        found.append(
            Blocker("retired", describe_decision("retired", state.retired), f"mcpfactory pipeline revive {server}")
        )
    if hold := state.holds.get(name):
        found.append(Blocker("hold", f"{name} is {describe_decision('held', hold)}", unhold_command(server, channel)))
    found += drift
    found += [Blocker("check", words, run) for words in (*failed_checks(checks, known), *due)]
    if words := version_fault(channel, known, candidate, events):
        command = f"mcpfactory release apply {server}" if channel.source else f"{run} --again build"
        found.append(Blocker("gate", words, command))
    for gate, words in closed_gates(channel.gates, known, state.channels.get(name), today=now.date()).items():
        found.append(Blocker("gate", words, GATES[gate].remedy.format(server=server)))
    if channel.source is None:
        return found
    approve = approve_command(server, channel, candidate)
    if channel.source not in known.channels:
        promote = f"mcpfactory pipeline promote {server} --channel {channel.source}"
        return [*found, Blocker("source", f"it was never in {channel.source}", promote)]
    for place, way_back in ((channel.source, f"mcpfactory pipeline run {server}"), (name, approve)):
        if withdrawn := withdrawals(events, place).get(candidate):
            words = f"it was {describe_decision('rolled back', withdrawn)} out of {place}"
            found.append(Blocker("rejection", words, way_back))
    for who, why in known.rejections.get(name, {}).items():
        found.append(Blocker("rejection", describe_decision("rejected", {"actor": who, "reason": why}), approve))
    given = approved_by(channel, known, approvers_since(events, name, candidate))
    if missing := missing_approvals(channel.approvals, given, channel.approvers):
        found.append(Blocker("approval", missing, approve))
    if (left := soak_left(channel, candidate, events, now)) > 0:
        words = f"{format_duration(left)} of {format_duration(channel.soak)} in {channel.source} left"
        command = f"in {format_duration(left)}: mcpfactory pipeline promote {server} --channel {name}"
        found.append(Blocker("soak", words, command))
    return found


def version_fault(channel: ChannelPolicy, known: Candidate, candidate: str, events: Iterable[Event]) -> str:
    """Return the reason why a channel must not offer a candidate under its version; "" if it can.

    Installers cache wheels by version, so a version must always mean the same bytes. An adopted server has the
    version of its source, and is not installed from an index.
    """
    if "kind" in known.facts:
        return ""
    if channel.source and "+" in known.version:
        return f"{known.version} is a development build, and {channel.name} takes released versions only"
    others = offered_versions(events, channel.name).get(canonicalize_version(known.version), set())
    if others and candidate not in others:
        return f"{channel.name} offered {known.version} with other bytes before ({', '.join(sorted(others))})"
    return ""


def approve_command(server: str, channel: ChannelPolicy, candidate: str) -> str:
    """Return the command that approves a candidate for a channel."""
    command = f"mcpfactory pipeline approve {server} --channel {channel.name} --candidate {candidate}"
    return command + signing_option(signed=channel.signed)


def unhold_command(server: str, channel: ChannelPolicy) -> str:
    """Return the command that lifts the hold of a channel."""
    return f"mcpfactory pipeline unhold {server} --channel {channel.name}" + signing_option(signed=channel.signed)


def describe_decision(what: str, made: Mapping[str, Any]) -> str:
    """Describe a decision on one line, even if its history contains line breaks: `held by Ada: two was bad`."""
    return on_one_line(f"{what} by {made['actor']}" + (f": {made['reason']}" if made.get("reason") else ""))


def person_key(name: str) -> str:
    """Return the normalized form of a name: without case, spaces and invisible characters."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if unicodedata.category(char)[0] in "LNPSM")


def failed_checks(checks: Iterable[str], candidate: Candidate) -> list[str]:
    """Describe the checks that a candidate did not pass."""
    found = []
    for name in checks:
        outcome = candidate.checks.get(name, {}).get("outcome")
        if outcome is None:
            found.append(f"{name} was not run on it")
        elif outcome != "passed":
            found.append(f"{name} {outcome}")
    return found


def soak_left(channel: ChannelPolicy, candidate: str, events: Sequence[Event], now: datetime) -> float:
    """Return the remaining seconds for which the previous channel must offer a candidate."""
    if not channel.soak or channel.source is None:
        return 0.0
    return max(0.0, channel.soak - seconds_in_channel(events, channel.source, candidate, now))
