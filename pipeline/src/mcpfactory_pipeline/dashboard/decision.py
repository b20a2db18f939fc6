"""Decision page: comparison of a candidate with the candidate that a channel offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.servers.manifest_diff import Change, diff
from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.hashing import ABSENT
from mcpfactory_pipeline.base.ids import format_time
from mcpfactory_pipeline.dashboard.candidates import (
    CandidateView,
    DecisionView,
    FindingView,
    build_sources,
    candidate_views,
    finding_views,
    format_value,
)
from mcpfactory_pipeline.dashboard.facts import ServerDetail, StoredCandidate, shorten
from mcpfactory_pipeline.decisions.channel_review import next_candidate
from mcpfactory_pipeline.plan.policy import approve_command, find_channel, missing_approvals
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.timeline import actor_of, candidates_rolled_back, in_channel_since
from mcpfactory_pipeline.workspace.policy import ChannelPolicy

# Dry run of a command. Returns a command that would succeed, and the error of the given command (or None).
_Advise = Callable[[str], tuple[str, PipelineError | None]]

_CHANGES: Final = 40  # maximum number of displayed changes of each kind
_TEXT: Final = 240  # maximum number of characters of a change
_TESTS: Final = (
    ("passed", "tests passed"),
    ("failed", "tests failed"),
    ("skipped", "tests skipped"),
    ("tools_run", "tools that tests ran"),
)


@dataclass(frozen=True, slots=True)
class ContractChangeView:
    """A change for callers. `kind` is `breaking`, `additive` or `cosmetic`."""

    kind: str
    code: str
    tool: str
    argument: str
    message: str


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """A fact about two candidates as text."""

    name: str
    old: str
    new: str
    same: bool


@dataclass(frozen=True, slots=True)
class ToolChanges:
    """Changes of one kind: `breaking`, `changed` (compatible), `added` or `wording`.

    `total` includes changes that are not displayed.
    """

    kind: str
    total: int
    changes: tuple[ContractChangeView, ...]


@dataclass(frozen=True, slots=True)
class ChannelBlock:
    """A hold or a retirement that blocks a channel. `command` lifts the hold or the retirement."""

    kind: str
    who: str
    why: str
    since: str
    command: str


@dataclass(frozen=True, slots=True)
class DecisionPage:
    """A candidate for a channel, with all facts for and against it.

    Attributes:
        offered: candidate that the channel offers, or "".
        asks: message of the pending decision, or "".
        command: next command for the pending decision, or "".
        stands: reason why the candidate must not be promoted, if no decision is pending.
        way: command that resolves the reason in `stands`, or "".
        approve_after_all: command that approves the candidate although no decision is pending, or "".
        in_source_since: time at which the preceding channel began to offer the candidate.
        waits_since: time at which the decision became pending, or "".
        known: True if both tool lists are on this machine.
        judged: True if both validation reports are on this machine.
        source: command that shows the source changes, or "".
        uncommitted: versions that were built from uncommitted changes.
    """

    workspace: str
    server: str
    channel: str
    candidate: str
    version: str
    offered: str
    offered_version: str
    asks: str
    command: str
    stands: str
    way: str
    closed: tuple[ChannelBlock, ...]
    rejected: tuple[DecisionView, ...]
    rolled_back: tuple[DecisionView, ...]
    approve_after_all: str
    precondition: str
    built_at: str
    built_by: str
    run: str
    source_channel: str
    in_source_since: str
    waits_since: str
    asked_by: str
    known: bool
    breaking: int
    tools: tuple[ToolChanges, ...]
    judged: bool
    come: tuple[FindingView, ...]
    come_total: int
    gone: tuple[FindingView, ...]
    gone_total: int
    stayed: int
    waived: tuple[str, ...]
    facts: tuple[ComparedFact, ...]
    decisions: tuple[DecisionView, ...]
    source: str
    uncommitted: tuple[str, ...]


def decidable_channels(detail: ServerDetail) -> Iterator[str]:
    """Yield the channels that could get another candidate."""
    for channel in detail.channels if not detail.state.retired else ():
        if next_candidate(detail.state, channel) not in {"", detail.state.offered(channel.name)}:
            yield channel.name


def candidate_to_decide(detail: ServerDetail, channel: str) -> str:
    """Return the next candidate for a channel, or ""."""
    return next_candidate(detail.state, find_channel(detail.channels, channel))


def decision_page(
    detail: ServerDetail,
    channel: str,
    before: StoredCandidate,
    after: StoredCandidate,
    *,
    candidate: str = "",
    advise: _Advise,
) -> DecisionPage:
    """Return the decision page of a candidate for a channel. The default is the next candidate.

    `advise` runs a command as a dry run. `advise` returns a command that would succeed, and the error of the given
    command.
    """
    name, every = detail.facts.name, {one.id: one for one in candidate_views(detail.state, detail.history)}
    chosen = _chosen(detail, channel, candidate, every)
    new, offered = every[chosen], detail.state.offered(channel)
    old = every.get(offered)
    known, changes = _contract(before, after, offered, chosen)
    judged = bool(before.report and after.report) or (bool(after.report) and not offered)
    gone, come, stayed = _findings_between(before.report, after.report) if judged else ([], [], 0)
    policy = find_channel(detail.channels, channel)
    source_command, uncommitted = _source(name, detail.history, old, new)
    about = [one for one in new.decisions if one.channel == channel]
    return DecisionPage(
        workspace=detail.facts.workspace,
        server=name,
        channel=channel,
        candidate=chosen,
        version=new.version,
        offered=offered,
        offered_version=old.version if old else "",
        closed=tuple(_closed(detail, channel)),
        **_question(detail, policy, chosen, about if offered != chosen else None, advise),
        precondition=detail.facts.row.get("precondition", {}).get(channel, ""),
        built_at=new.at,
        built_by=new.actor,
        run=new.run,
        source_channel=policy.source or "",
        asked_by=_moved_by(detail.history, policy.source or "", chosen),
        known=known,
        breaking=sum(change.kind == "breaking" for change in changes),
        tools=tuple(_grouped(changes, after.manifest)),
        judged=judged,
        come=finding_views(come),
        come_total=len(come),
        gone=finding_views(gone),
        gone_total=len(gone),
        stayed=stayed,
        waived=tuple(map(str, detail.state.candidates[chosen].summary("validate").get("waived_rules", ()))),
        facts=tuple(_facts(detail.state, old, new, before, after)),
        decisions=tuple(about),
        source=source_command,
        uncommitted=uncommitted,
    )


def _chosen(detail: ServerDetail, channel: str, candidate: str, known: Container[str]) -> str:
    name, chosen = detail.facts.name, candidate or candidate_to_decide(detail, channel)
    if chosen not in known:
        raise NotFoundError(f"{name} has no candidate for {channel}", hint=f"mcpfactory pipeline status {name}")
    return chosen


def _contract(
    before: StoredCandidate, after: StoredCandidate, offered: str, chosen: str
) -> tuple[bool, Sequence[Change]]:
    known = bool(after.manifest and (before.manifest or not offered))
    if not known or offered == chosen:
        return known, ()
    return known, diff(before.manifest if offered else {"tools": []}, after.manifest)


def _asked(detail: ServerDetail, channel: str) -> tuple[str, str]:
    asked = (one for one in detail.facts.items if one.about == channel and one.kind not in {"hold", "stale", "never"})
    return next(((one.message, one.command) for one in asked), ("", ""))


def _question(
    detail: ServerDetail, policy: ChannelPolicy, candidate: str, about: Sequence[DecisionView] | None, advise: _Advise
) -> dict[str, Any]:
    """Return the fields about a pending decision. If no decision is pending, return the possible actions.

    `about` has earlier decisions about this candidate, or None if the channel already offers the candidate.
    """
    name, since = policy.name, _since(detail.history, policy.source, candidate) if policy.source else ""
    asks, command = _asked(detail, name) if about is not None else ("", "")
    idle = about is not None and not asks
    stands, way = _refusal(detail, name, candidate, advise) if idle else ("", "")
    refusals = _refusals(detail, name, candidate, about or ())
    approved = [one.who for one in about or () if one.what == "approved" and one.counts]
    counted = [who for who in approved if not policy.approvers or who in policy.approvers]
    lacks = refusals or missing_approvals(policy.approvals, counted, policy.approvers)
    approve = approve_command(detail.facts.name, policy, candidate) if idle and lacks and policy.source else ""
    return {
        "asks": asks,
        "command": command,
        "stands": stands,
        "way": way,
        "rejected": tuple(one for one in refusals if one.what == "rejected"),
        "rolled_back": tuple(one for one in refusals if one.what == "rolled back"),
        "approve_after_all": approve if approve and not advise(approve)[1] else "",
        "in_source_since": since,
        "waits_since": since if asks else "",
    }


def _refusal(detail: ServerDetail, channel: str, candidate: str, advise: _Advise) -> tuple[str, str]:
    """Return the reason why a promotion is impossible, and a command that resolves this reason."""
    name = detail.facts.name
    command, refused = advise(f"mcpfactory pipeline promote {name} --channel {channel} --candidate {candidate}")
    return str(refused or ""), "" if command == f"mcpfactory pipeline status {name}" else command


def _refusals(
    detail: ServerDetail, channel: str, candidate: str, about: Iterable[DecisionView]
) -> tuple[DecisionView, ...]:
    """Return the rejections of a candidate, and a rollback without a later approval."""
    back = candidate in candidates_rolled_back(detail.history, channel)
    return tuple(one for one in about if one.what == "rejected" or (one.what == "rolled back" and back))


def _closed(detail: ServerDetail, channel: str) -> Iterator[ChannelBlock]:
    yield from retirement_blocks(detail)
    hold = detail.facts.row.get("holds", {}).get(channel)
    said = [item for item in detail.facts.items if (item.kind, item.about) == ("hold", channel)]
    for item in said if hold else ():
        yield ChannelBlock("held", str(hold["actor"]), str(hold.get("reason", "")), item.since or "", item.command)


def retirement_blocks(detail: ServerDetail) -> tuple[ChannelBlock, ...]:
    """Return the retirement of a server."""
    made = detail.facts.row.get("retired")
    if not made:
        return ()
    said = [event for event in detail.history if event["event"] == "retired" and event.get("channel") is None]
    since, command = str(said[-1]["at"]) if said else "", f"mcpfactory pipeline revive {detail.facts.name}"
    return (ChannelBlock("retired", str(made["actor"]), str(made.get("reason", "")), since, command),)


def _since(history: Sequence[Event], source: str, candidate: str) -> str:
    since = in_channel_since(history, source, candidate)
    return format_time(since) if since else ""


def _grouped(changes: Sequence[Change], manifest: Mapping[str, Any]) -> Iterator[ToolChanges]:
    kinds: dict[str, list[Change]] = {"breaking": [], "changed": [], "added": [], "wording": []}
    for change in changes:
        added = change.code == "tool-added"
        kind = {"breaking": "breaking", "cosmetic": "wording"}.get(change.kind, "added" if added else "changed")
        kinds[kind].append(change)
    for kind, some in kinds.items():
        if some:
            yield ToolChanges(kind, len(some), tuple(_change_view(one, manifest) for one in some[:_CHANGES]))


def _change_view(change: Change, manifest: Mapping[str, Any]) -> ContractChangeView:
    tools = (tool for tool in manifest.get("tools", ()) if isinstance(tool, dict) and tool.get("name") == change.tool)
    described = next((str(tool.get("description") or "") for tool in tools), "") if change.code == "tool-added" else ""
    words = change.message.removeprefix(change.tool).removeprefix(":").strip()
    if change.argument:
        words = words.removeprefix(change.argument).removeprefix(":").strip()
    message = shorten(" ".join(described.split()) or words, _TEXT)
    return ContractChangeView(change.kind, change.code, change.tool, change.argument, message)


def _findings_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[Any], list[Any], int]:
    old, new = (
        [{key: value for key, value in one.items() if key != "evidence"} for one in report.get("findings", ())]
        for report in (before, after)
    )
    gone, come = _beyond(old, new), _beyond(new, old)
    return gone, come, len(new) - len(come)


def _beyond(some: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    left, found = Counter(map(_finding_key, others)), []
    for one in some:
        left[_finding_key(one)] -= 1
        found += [one] if left[_finding_key(one)] < 0 else []
    return found


def _finding_key(finding: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(finding.get("rule")), str(finding.get("where")), str(finding.get("message"))


def _facts(
    state: ServerState, old: CandidateView | None, new: CandidateView, before: StoredCandidate, after: StoredCandidate
) -> Iterator[ComparedFact]:
    sides = [dict(_figures(state, one, kept)) for one, kept in ((old, before), (new, after))]
    for name in dict.fromkeys((*sides[1], *sides[0])):
        a, b = sides[0].get(name, ""), sides[1].get(name, "")
        yield ComparedFact(name, a, b, a == b)


def _figures(state: ServerState, candidate: CandidateView | None, kept: StoredCandidate) -> Iterator[tuple[str, str]]:
    if candidate is None:
        return
    for check in candidate.checks:
        yield check.stage, check.status.word
    judged, tested = map(state.candidates[candidate.id].summary, ("validate", "test"))
    if "score" in judged:
        yield "score", format_value(judged["score"])
        yield "findings", format_value(judged.get("findings", ""))
        yield "waived", format_value(judged.get("waived", 0))
    yield from ((words, format_value(tested[key])) for key, words in _TESTS if key in tested)
    tools = kept.manifest.get("tools")
    if isinstance(tools, list):
        yield "tools", f"{len(tools):,}"
    yield from ((fact.name, fact.value) for fact in candidate.facts if fact.name in {"tokens", "coverage"})
    if kept.sizes:
        yield "bytes", f"{sum(kept.sizes.values()):,}"


def _moved_by(history: Sequence[Event], channel: str, candidate: str) -> str:
    moves = (e for e in reversed(history) if e.get("channel") == channel and e.get("candidate") == candidate)
    found = next((event for event in moves if event["event"] in {"promoted", "stage.finished", "rolled-back"}), None)
    return actor_of(found) if found else ""


def _source(
    server: str, history: Sequence[Event], old: CandidateView | None, new: CandidateView
) -> tuple[str, tuple[str, ...]]:
    """Return the command that shows source changes between two candidates.

    Also return versions with uncommitted changes.
    """
    commits: dict[str, str] = {}
    for event in history:
        commit, candidate = build_sources(event).get("commit", ABSENT), str(event.get("candidate"))
        if event.get("built") and commit != ABSENT and ("+" in commits.get(candidate, "+") or "+" not in commit):
            commits[candidate] = commit  # prefer a commit without uncommitted changes
    pair = [one for one in (old, new) if one and one.id in commits]
    uncommitted = tuple(one.version for one in pair if "+" in commits[one.id])
    made = [commits[one.id][:12] for one in pair]
    if len(set(made)) < 2 or uncommitted:
        return "", uncommitted
    return f"git diff {made[0]} {made[1]} -- servers/{server}", ()
