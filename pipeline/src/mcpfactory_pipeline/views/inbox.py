"""The inbox: pending decisions and problems, most blocking first, then oldest first."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord
from mcpfactory_pipeline.base.ids import Clock, format_time, parse_time, utc_now
from mcpfactory_pipeline.base.locks import is_locked
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.decisions.channel_review import ChannelReview, pending_candidate
from mcpfactory_pipeline.decisions.drift import drift_blockers
from mcpfactory_pipeline.decisions.integrity import orphaned_channel_offers
from mcpfactory_pipeline.decisions.precondition import stage_decision_facts
from mcpfactory_pipeline.decisions.stage_decision import approve_stage_command, stage_output_items
from mcpfactory_pipeline.plan.fingerprint import InputReader, stage_inputs
from mcpfactory_pipeline.plan.plan import required_checks, required_stages
from mcpfactory_pipeline.plan.policy import (
    describe_decision,
    find_promotion_blockers,
    normalize_person_name,
    read_channels,
    unhold_command,
)
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import (
    decisions_about,
    failing_since,
    in_channel_since,
    last_event_time,
    soaked_since,
)
from mcpfactory_pipeline.state.verify import head_history_blobs
from mcpfactory_pipeline.views.status import status_row
from mcpfactory_pipeline.views.suggestions import SuggestionValidator
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE, read_known_drift, replacement_hash
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.waivers import uncovered_reason, waivers_expiring_soon
from mcpfactory_pipeline.workspace.workspace import BrokenServer, Workspace, WorkspaceServer, isolate_server_errors


def ready_since(
    channel: ChannelPolicy, candidate: str, events: Sequence[Event], stages: Iterable[Stage] = ()
) -> datetime | None:
    """Return the time since when a candidate has been ready for a channel; None for the first channel.

    The result is the latest of these times: arrival in the previous channel, last required approval, end of the soak
    time, end of a hold, revival of the server. Approvals at `stages` count as required approvals.
    """
    if channel.source is None:
        return None
    moments = [
        in_channel_since(events, channel.source, candidate),
        soaked_since(events, channel.source, candidate, channel.soak),
        _approved_since(decisions_about(events, channel.name, candidate), channel.approvals, channel.approvers),
        last_event_time(
            event for event in events if event["event"] == "released" and event.get("channel") == channel.name
        ),
        last_event_time(event for event in events if event["event"] == "revived"),
    ]
    for stage in stages:
        if (policy := stage.approval) is not None:
            said = (event for event in events if event.get("stage") == stage.name and "shown" in event)
            moments.append(_approved_since(said, policy.approvals, policy.approvers))
    return max(filter(None, moments), default=None)


def _approved_since(decisions: Iterable[Event], wanted: int, approvers: Iterable[str]) -> datetime | None:
    """Return the time of the last required approval; None if no approval was required.

    Any other decision revokes earlier approvals, and at least one new approval is then required. Approvals of different
    content are not counted together.
    """
    given, enough, since = set[str](), wanted == 0, None
    shown, able = None, set(map(normalize_person_name, approvers))
    for event in decisions:
        if event["event"] != "approved" or event.get("shown") != shown:
            given, enough, since = set(), False, None
            shown = event.get("shown")
        if event["event"] != "approved" or enough:
            continue
        who = normalize_person_name(str(event["actor"]))
        if not able or who in able:
            given.add(who)
            enough, since = len(given) >= wanted, parse_time(str(event["at"]))
    return since


# Kinds of items. The kind that blocks most is first.
KINDS: Final = (
    "problem", "failed", "errored", "interrupted", "inconclusive", "publish", "gate", "approval", "ready", "hold", "waiver", "drift",
    "never", "stale",
)  # fmt: skip
# Kinds of drift that also make stages stale. The inbox then lists only the drift.
_STALE_TOO: Final = {"document", "edited", "moved", "replaced", "offers"}

_RUN: Final = "mcpfactory pipeline run"
_RELEASE: Final = "mcpfactory release apply"
_STATUS: Final = "mcpfactory pipeline status"
_VERIFY: Final = "mcpfactory pipeline verify"
_RENEWED: Final = 90  # days by which a suggestion extends a waiver
_SURE: Final = {"approval", "hold"}  # kinds of items whose suggested commands always succeed
# maximum number of server names in a suggested run; a run of more servers names no server
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class InboxItem(JsonRecord):
    """A pending item.

    `about` is a stage, a channel or a kind of drift. `since` is None if the time is unknown. `waited` is the waiting
    time in seconds. For a decision, `precondition` is the token of the shown state (`decisions.precondition`), else "".
    `risks` are the risks of a pending promotion.
    """

    kind: str
    server: str
    about: str
    message: str
    command: str
    since: str | None = None
    waited: float | None = None
    precondition: str = ""
    risks: tuple[str, ...] = ()


def read_inbox(
    workspace: Workspace,
    names: Sequence[str] | None = None,
    *,
    refresh: bool = False,
    stages: Sequence[Stage] | None = None,
    clock: Clock = utc_now,
    count: Callable[[int, int], None] = lambda _done, _servers: None,
) -> list[InboxItem]:
    """Return all pending items of a workspace, or of the named servers.

    `refresh` reads the documents' URLs again. Before each server, `count` gets the number of finished servers and the
    number of all servers.

    Raises:
        NotFoundError: the server is unknown.
        ConfigError: the workspace cannot be read.
    """
    reader = InboxReader.open(workspace, stages=stages, clock=clock)
    items: list[InboxItem] = []
    servers, broken = workspace.load_servers(names)
    items += [_broken_item(one) for one in broken]
    items += [] if names else deleted_server_items(workspace)
    for done, server in enumerate(servers):
        count(done, len(servers))
        found = isolate_server_errors(server.name, partial(reader.read, server, refresh=refresh))
        items += [_broken_item(found)] if isinstance(found, BrokenServer) else found
    return sort_inbox_items(items)


def deleted_server_items(workspace: Workspace) -> list[InboxItem]:
    """Return the items of deleted servers whose releases are still in channels."""
    found = {
        one.server: one for one in reversed(list(orphaned_channel_offers(workspace)))
    }  # if several servers have the same name, keep the first server
    return [
        InboxItem("drift", name, one.kind, f"{one.message}; {one.means}", one.command) for name, one in found.items()
    ]


def sort_inbox_items(items: Iterable[InboxItem]) -> list[InboxItem]:
    """Sort items by kind, the most blocking kind first, and then by waiting time, the longest first."""
    return sorted(items, key=lambda item: (KINDS.index(item.kind), item.since or "~", item.server, item.about))


_WORD: Final = re.compile(r"[\w-]+")
# A version, and its candidate in parentheses.
_CANDIDATE: Final = re.compile(r"\b\d[\w.+-]* \([\w.-]+\)(?: for)? ?")


def item_cause(message: str, server: str) -> str:
    """Return an item's message without server and candidate, so that equal causes have equal texts."""
    # One pattern per server would be slow to compile.
    named = _WORD.sub(lambda found: "…" if found[0] == server else found[0], _CANDIDATE.sub("", message)).strip(" ;:")
    return f"a candidate {named}" if named.startswith("is ") else named


def group_by_cause(items: Iterable[InboxItem]) -> list[list[InboxItem]]:
    """Return the items in groups of one kind and cause, in the order of the first item of each group."""
    groups: dict[tuple[str, str], list[InboxItem]] = {}
    for item in items:
        groups.setdefault((item.kind, item_cause(item.message, item.server)), []).append(item)
    return list(groups.values())


def next_commands(items: Sequence[InboxItem], count: int = 3) -> list[str]:
    """Return commands to run next: the commands of the first items, then the usual commands.

    If several servers need a run or a release, one command names all of them. Commands with a gap for a person to fill
    (`…`), and commands of other programs, are left out.
    """
    named: dict[str, dict[str, None]] = {_RUN: {}, _RELEASE: {}}
    for item in items:
        named.get(item.command.removesuffix(f" {item.server}"), {})[item.server] = None
    together = {command: " ".join([command, *servers]) for command, servers in named.items()}
    if len(named[_RUN]) > _NAMED:
        together[_RUN] = _RUN
    found = [together.get(item.command.removesuffix(f" {item.server}"), item.command) for item in items]
    typed = [command for command in found if command.startswith("mcpfactory ") and "…" not in command]
    usual = (*([_RUN] if named[_RUN] else []), _STATUS, "mcpfactory dashboard")
    return list(dict.fromkeys([*typed, *usual]))[:count]


def _broken_item(one: BrokenServer) -> InboxItem:
    return unreadable_server_item(one.name, "files", one.message, one.hint)


def unreadable_server_item(server: str, about: str, message: str, hint: str) -> InboxItem:
    """Return the item for a server with unreadable files.

    The item's command is the command in the hint, or shows the error.
    """
    named = (command for command in (f"{_VERIFY} --repair {server}", f"{_VERIFY} {server}") if command in hint)
    command = next(named, f"{_STATUS} {server}")
    return InboxItem("problem", server, about, f"{message}; hint: {hint}" if hint else message, command)


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class InboxReader:
    """Reader of items. All items are computed for the time `now`."""

    workspace: Workspace
    stages: tuple[Stage, ...]
    channels: tuple[ChannelPolicy, ...]
    now: datetime

    @cached_property
    def _head(self) -> dict[str, str]:
        """Return the histories in git's HEAD."""
        return head_history_blobs(self.workspace)

    @cached_property
    def store(self) -> Store:
        """The state and history of the workspace."""
        return Store(self.workspace)

    @classmethod
    def open(
        cls, workspace: Workspace, *, stages: Sequence[Stage] | None = None, clock: Clock = utc_now
    ) -> InboxReader:
        """Return the reader of a workspace. `stages` replaces the workspace's stages.

        Raises:
            ConfigError: the workspace cannot be read.
        """
        return cls(workspace, tuple(stages or workspace_stages(workspace)), read_channels(workspace), clock())

    def status(self, server: WorkspaceServer, *, refresh: bool = False) -> tuple[dict[str, Any], ServerState]:
        """Return the `status_row` of a server, and its state."""
        return status_row(self.workspace, self.store, self.stages, server, refresh=refresh)

    def read(self, server: WorkspaceServer, *, refresh: bool = False) -> list[InboxItem]:
        """Return all pending items of one server."""
        return list(self.of(server, *self.status(server, refresh=refresh)))

    def of(self, server: WorkspaceServer, row: Mapping[str, Any], state: ServerState) -> Iterator[InboxItem]:
        """Yield all pending items of one server from its `status_row`.

        Dry runs have tested the commands in the items.
        """
        suggestion_validator = self.suggestion_validator(row, state)
        for item in self._waiting(server, row, state):
            yield item if item.kind in _SURE else self._tried(item, suggestion_validator)

    def suggestion_validator(self, row: Mapping[str, Any], state: ServerState) -> SuggestionValidator:
        """Return the validator for commands about the server in a `status_row`."""
        return SuggestionValidator(self.workspace, self.stages, self.channels, self.now, state, row, lambda: self._head)

    def _tried(self, item: InboxItem, suggestion_validator: SuggestionValidator) -> InboxItem:
        """Return the item with a command that succeeds.

        A `ready` item with a refused command becomes a problem with the command's error.
        """
        command, refused = suggestion_validator.replace_refused_command(item.command)
        if refused is None:
            return item
        if item.kind != "ready":
            return replace(item, command=command)
        return replace(item, kind="problem", command=command, message=f"{item.message}, but {refused}")

    def _waiting(self, server: WorkspaceServer, row: Mapping[str, Any], state: ServerState) -> Iterator[InboxItem]:
        if problem := row.get("problem"):
            yield unreadable_server_item(server.name, "files", problem["message"], problem["hint"])
            return
        if half := row["half_written"]:
            command = f"mcpfactory pipeline verify {server.name} --repair"
            yield InboxItem("problem", server.name, "history", f"{half['message']}; hint: {half['hint']}", command)
        if state.retired:
            return
        due = [
            *self._stages(server, state, row), *self._publishing(state), *self._channels(server, state), *self._holds(state),
        ]  # fmt: skip
        events = [*state.timeline, *self.store.crashed_stages(server.name)] if due else ()
        tokens = {**row["precondition"], **self._stage_tokens(server, state, due)}
        for item in self._timed(due, events, state):
            yield replace(item, precondition=tokens.get(item.about, ""))
        drift = [
            entry for entry in row["drift"] if entry["kind"] != "behind" or self._may_follow(state, entry["message"])
        ]
        yield from self._waivers(server)
        for entry in drift:
            message, command = f"{entry['message']}; {entry['means']}", entry["command"]
            if entry["kind"] == "behind":
                command = f"mcpfactory pipeline promote {server.name} --channel {self.channels[0].name}"
            yield InboxItem("drift", server.name, entry["kind"], message, command)
        kinds = {entry["kind"] for entry in drift}
        first = self._first_stale(row)
        if not due and first and not _STALE_TOO & kinds and not row["at_work"]:
            reasons = "; ".join(row["stages"][first]["reasons"])
            # If only the template changed, suggest no run, because the item about drift suggests an update first.
            if "template" not in kinds or reasons != "template changed":
                kind = "never" if row["stages"][first]["outcome"] is None else "stale"
                yield InboxItem(
                    kind, server.name, first, f"{first}: {reasons}", f"mcpfactory pipeline run {server.name}"
                )

    def _stage_tokens(self, server: WorkspaceServer, state: ServerState, due: Sequence[InboxItem]) -> dict[str, str]:
        """Return the precondition token of each approval stage that awaits a decision."""
        asked = {item.about for item in due}
        reader = InputReader(server, state)
        return {
            stage.name: stage_decision_facts(
                state, stage.name, stage.approval, stage_inputs(stage, reader)
            ).precondition
            for stage in self.stages
            if stage.approval and stage.name in asked
        }

    def _may_follow(self, state: ServerState, message: str) -> bool:
        """Return True if the newest candidate can be promoted to the first channel."""
        first = self.channels[0]
        if not message.startswith(f"{first.name} ") or state.candidate is None:
            return False
        checks = required_checks(self.stages, first, self.channels)
        drift = drift_blockers(self.workspace.server(state.server), state, state.candidate)
        return not find_promotion_blockers(first, checks, state, state.candidate, events=(), now=self.now, drift=drift)

    def _first_stale(self, row: Mapping[str, Any]) -> str:
        """Return the first stale stage. Ignore stages that wait for a soak time, directly or indirectly."""
        waiting: set[str] = set()
        needs = {stage.name: stage.needs for stage in self.stages}
        for name, stage in row["stages"].items():
            if stage["summary"].get("soaking") or waiting.intersection(needs.get(name, ())):
                waiting.add(name)
            elif stage["stale"]:
                return str(name)
        return ""

    def _stages(self, server: WorkspaceServer, state: ServerState, row: Mapping[str, Any]) -> Iterator[InboxItem]:
        """Yield an item for the first stage that did not pass, and for each failed stage behind a channel."""
        first = list(self._first_stages(server, state, row))
        yield from first
        shown = {item.about for item in first} | set(row["at_work"])
        for known in self.stages:
            if known.watches and known.name not in shown and row["stages"][known.name]["outcome"] == "failed":
                yield self._failed(server, state, row, known.name)

    def _first_stages(self, server: WorkspaceServer, state: ServerState, row: Mapping[str, Any]) -> Iterator[InboxItem]:
        """Yield an item for the first stage that did not pass, and for approval stages before it."""
        run = f"mcpfactory pipeline run {server.name}"
        for name, stage in row["stages"].items():
            outcome = stage["outcome"]
            if name in row["at_work"]:
                return
            if outcome == "failed":
                yield self._failed(server, state, row, name)
                return
            if outcome == "inconclusive" and stage["summary"].get("soaking"):
                continue  # the stage only waits for the end of the soak time
            if outcome in {"errored", "interrupted", "inconclusive"}:
                yield InboxItem(outcome, server.name, name, f"{name} {outcome}: {stage['message']}", run)
                return
            known = next(known for known in self.stages if known.name == name)
            needs = known.needs
            if known.approval and stage["verdict"] == "waiting":
                if all(row["stages"][need]["verdict"] == "up-to-date" for need in needs):
                    yield self._approval(state, known, stage["reasons"])
                continue
            if known.approval and stage["verdict"] == "blocked" and name in state.decisions:
                words = f"{name}: {'; '.join(stage['reasons'])}"
                yield InboxItem("gate", server.name, name, words, approve_stage_command(state, known))
                return
            if stage["verdict"] == "blocked" and all(row["stages"][need]["verdict"] != "blocked" for need in needs):
                message = f"{name}: {'; '.join(stage['reasons'])}"
                yield InboxItem("gate", server.name, name, message, _inspect_command(server, "validate"))
                return

    def _failed(self, server: WorkspaceServer, state: ServerState, row: Mapping[str, Any], name: str) -> InboxItem:
        """Return the item for a failed stage, with the channels that offer the failed candidate."""
        message, command = f"{name} failed: {self._finding(state, name)}", _inspect_command(server, name)
        candidate = state.stages[name].candidate
        offering = ", ".join(one.name for one in self.channels[1:] if state.offered(one.name) == candidate)
        if candidate and offering:
            message += f"; {offering} offers this candidate, {state.candidates[candidate].version} ({candidate})"
        if row["stages"][name]["stale"]:
            message, command = f"{message}; what it reads has changed since", f"mcpfactory pipeline run {server.name}"
        return InboxItem("failed", server.name, name, message, command)

    def _approval(self, state: ServerState, stage: Stage, reasons: Sequence[str]) -> InboxItem:
        assert stage.approval is not None
        shown = [item["file"] or item["text"] or item["part"] for item in stage_output_items(stage, state)]
        words = "; ".join([*filter(None, [stage.approval.message]), *reasons, f"review: {', '.join(shown)}"])
        command = approve_stage_command(state, stage)
        return InboxItem("approval", state.server, stage.name, f"{stage.name}: {words}", command)

    def _finding(self, state: ServerState, stage: str) -> str:
        """Return the first finding in a failed stage's report. Without a report, return the stage's message."""
        record = state.stages[stage]
        file = self.workspace.artifacts / state.server / (record.candidate or "reports") / stage / "report.json"
        try:
            report = json.loads(file.read_bytes())
            worst = sorted(report["findings"], key=lambda finding: (not finding["gate"], -finding["severity"]))[0]
            return f"{record.message}; first: {worst['rule']} {worst['message']}"
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            return record.message

    def _channels(self, server: WorkspaceServer, state: ServerState) -> Iterator[InboxItem]:
        events = partial(self.store.history, server.name)
        for channel in self.channels:
            if not (candidate := pending_candidate(state, channel)):
                continue
            review = ChannelReview(self.workspace, self.stages, self.channels, channel, state, events, self.now)
            blockers = review.blockers(candidate, drift=drift_blockers(server, state, candidate))
            known = state.candidates[candidate]
            what = f"{known.version} ({candidate})"
            kinds = {blocker.kind for blocker in blockers}
            words = "; ".join(blocker.message for blocker in blockers)
            if not blockers and not review.stale(candidate):
                command = f"mcpfactory pipeline promote {state.server} --channel {channel.name}"
                message = f"{what} is ready for {channel.name}"
                risks = review.risks(candidate)
                yield InboxItem("ready", state.server, channel.name, message, command, risks=risks)
            elif "gate" in kinds and not kinds & {"hold", "drift", "check", "rejection"}:
                yield InboxItem(
                    "gate", state.server, channel.name, f"{what} for {channel.name}: {words}", blockers[0].command
                )
            elif "approval" in kinds and kinds <= {"approval", "soak"}:
                command = next(blocker.command for blocker in blockers if blocker.kind == "approval")
                message = f"{what} for {channel.name}: {words}"
                risks = review.risks(candidate)
                yield InboxItem("approval", state.server, channel.name, message, command, risks=risks)

    def _holds(self, state: ServerState) -> Iterator[InboxItem]:
        for channel in sorted(self.channels, key=lambda channel: channel.name):
            if hold := state.holds.get(channel.name):
                message = f"{channel.name} is {describe_decision('held', hold)}"
                yield InboxItem("hold", state.server, channel.name, message, unhold_command(state.server, channel))

    def _publishing(self, state: ServerState) -> Iterator[InboxItem]:
        if not state.publishing or is_locked(Store(self.workspace).locks / f"{state.server}.publish.lock"):
            return
        for target, known in sorted(state.publishing.items()):
            option = "" if known.channel == "production" else f" --channel {known.channel}"
            message = (
                f"the upload of {known.version} ({known.candidate}) to {target} stopped; publish again to continue"
            )
            yield InboxItem(
                "publish", state.server, target, message, f"mcpfactory publish {state.server} --target {target}{option}"
            )

    def _waivers(self, server: WorkspaceServer) -> Iterator[InboxItem]:
        try:
            ending = waivers_expiring_soon(server.folder, clock=lambda: self.now)
        except ConfigError as error:
            yield unreadable_server_item(server.name, "waivers", str(error), error.hint)
            return
        days = min(_RENEWED, self.workspace.settings.waivers.max_days) if ending else 0
        offer = replacement_hash(read_known_drift(server.folder, server.adopted)) if ending else ""
        for waiver, left in ending:
            if waiver.rule == DRIFT_RULE and (not offer or uncovered_reason(waiver, offer)):
                continue  # no finding needs the waiver
            what = f"{waiver.rule} of {waiver.tool}" if waiver.tool else waiver.rule
            when = "ends today" if left == 0 else f"ends in {pluralize(left, 'day')}" if left > 0 else "has ended"
            then = (
                "counts again, and may close a gate"
                if left < 0
                else "counts again after that day, and may close a gate"
            )
            tool = f" --tool {shlex.quote(waiver.tool)}" if waiver.tool else ""
            message = f"the waiver of {what} by {waiver.person} ({waiver.reason}) {when}: what it excused {then}"
            rule, until = shlex.quote(waiver.rule), self.now.date() + timedelta(days=days)
            command = f"mcpfactory waive {rule} --server {server.name}{tool} --reason '…' --expires {until}"
            if waiver.rule == DRIFT_RULE and server.adopted:  # a person must review drift again, not extend its waiver
                command = f"mcpfactory adopt {server.adopted.again} --name {server.name}"
            yield InboxItem("waiver", server.name, what, message, command)

    def _timed(self, items: Sequence[InboxItem], events: Sequence[Event], state: ServerState) -> Iterator[InboxItem]:
        for item in items:
            since = self._since(item, events, state)
            if since is None:
                yield item
            else:
                waited = max(0.0, (self.now - since).total_seconds())
                yield replace(item, since=format_time(since), waited=waited)

    def _since(self, item: InboxItem, events: Sequence[Event], state: ServerState) -> datetime | None:
        if item.kind == "publish":
            return last_event_time(
                e for e in events if e["event"] == "publish.started" and e.get("target") == item.about
            )
        if item.kind == "hold":
            holds = (e for e in events if e["event"] in {"held", "rolled-back", "retired"})
            return last_event_time(e for e in holds if e.get("channel") == item.about)
        channel = next((channel for channel in self.channels if channel.name == item.about and channel.source), None)
        if channel is not None and channel.source is not None:
            candidate = state.offered(channel.source)
            if item.kind == "ready":
                return ready_since(channel, candidate, events, required_stages(self.stages, channel, self.channels))
            return in_channel_since(events, channel.source, candidate)
        if item.kind in {"gate", "approval"}:
            return last_event_time(event for event in events if event["event"] == "stage.finished")
        return failing_since(events, item.about)


def _inspect_command(server: WorkspaceServer, stage: str) -> str:
    """Return the command to inspect a failed stage. For a server at a URL, the command repeats `validate`."""
    if stage == "validate":
        elsewhere = server.adopted is not None and server.adopted.url
        again = f"mcpfactory pipeline run {server.name} --again validate"
        return again if elsewhere else f"mcpfactory validate {server.name}"
    return f"mcpfactory pipeline history {server.name} {stage}"
