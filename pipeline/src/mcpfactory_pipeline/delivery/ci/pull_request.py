"""Refusal of forbidden changes in a pull request or a push.

A pull request must not add events to a history. If a channel requires signatures, signed approvals are permitted. The
base commit must already list the signer's public key.

A pull request that CI jobs opened may add the events of stages and releases, but no other decisions.

A push to the branch may also add people's decisions about candidates that were already pushed. A push must not contain
both a candidate and a decision about this candidate.

Promotions in a push or in results are checked again, because the same change could have lowered the policy. For each
promotion, the stages and channels of the commit before the change apply. If the change adds a channel, its own policy
applies to this channel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mcpfactory_codegen.settings import SettingsError, read_settings
from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.decisions.channel_review import ChannelReview
from mcpfactory_pipeline.decisions.signatures import (
    SIGNERS,
    approval_signature_faults,
    drop_unsigned_stage_approvals,
    event_signature_fault,
)
from mcpfactory_pipeline.delivery.ci.admission import RELEASE_EVENTS
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import ServerState, fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import events_added_since, histories_missing_events
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings, WorkspaceTable
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

_MOST: Final = 50  # maximum number of promotions per server and push; a push with more is refused


def find_unpermitted_releases(
    workspace: Workspace,
    base: str,
    server: str,
    history: Sequence[Event],
    events: Sequence[Event],
    *,
    stages: Sequence[Stage] | None = None,
) -> Iterator[str]:
    """Describe the blockers that should have prevented promotions and publications in a push.

    `history` has all events of the server. `events` has the events that the commit `base` lacks.
    """
    moves = [event for event in events if event["event"] in {"promoted", "published"}]
    if not moves:
        return
    if len(moves) > _MOST:
        yield f"it has {len(moves)} new promotions, and at most {_MOST} are allowed"
        return
    policies = [
        (tuple(stages or workspace_stages(space)), read_channels(space)) for space in _workspaces(workspace, base)
    ]
    for event in moves:
        before = [one for one in history if str(one["id"]) < str(event["id"])]
        state = fold(server, before)
        if event.get("candidate") not in state.candidates:
            yield f"{event['event']} ({event['id']}): no build made the candidate {event.get('candidate')}"
        elif event["event"] == "published":
            yield from _never_offered(state, event)
        else:
            named = (one for one in policies if event["channel"] in {channel.name for channel in one[1]})
            judging, channels = next(named, ((), ()))
            yield from _blockers(workspace, judging, channels, state=state, before=before, event=event)


def _workspaces(workspace: Workspace, base: str) -> list[Workspace]:
    settings = git_output(workspace.root, "show", f"{base}:./{CONFIG}")
    then = [] if settings is None else [replace(workspace, settings=_table(settings))]
    return [*then, workspace]


def _table(settings: bytes) -> WorkspaceSettings:
    try:
        return read_settings(WorkspaceSettings, settings.decode("utf-8-sig"), CONFIG)
    except (SettingsError, UnicodeDecodeError):
        # With invalid settings, no stage could run, so use the default channels.
        return WorkspaceSettings(workspace=WorkspaceTable())


def _blockers(
    workspace: Workspace,
    stages: Sequence[Stage],
    channels: Sequence[ChannelPolicy],
    *,
    state: ServerState,
    before: Sequence[Event],
    event: Event,
) -> Iterator[str]:
    channel = next((one for one in channels if one.name == event["channel"]), None)
    if channel is None:
        yield f"{event['event']} ({event['id']}): unknown channel {event['channel']}"
        return
    candidate = str(event["candidate"])
    if channel.signed:
        for who, fault in approval_signature_faults(workspace, state, before, channel.name, candidate).items():
            yield f"{event['event']} ({event['id']}) to {channel.name}: the approval of {who} {fault}"
    counted = drop_unsigned_stage_approvals(workspace, state, lambda: before, stages)
    moment = parse_time(str(event["at"]))
    review = ChannelReview(workspace, stages, channels, channel, counted, lambda: before, moment)
    for blocker in review.blockers(candidate):
        yield f"{event['event']} ({event['id']}) to {channel.name}: {blocker.message}"


def _never_offered(state: ServerState, event: Event) -> Iterator[str]:
    if event["channel"] not in state.candidates[str(event["candidate"])].channels:
        yield f"{event['event']} ({event['id']}): {event['channel']} never offered {event['candidate']}"


_DECISIONS: Final = frozenset({"approved", "promoted", "published"})
_HINTS: Final = {
    False: "remove decisions and results from the pull request: git checkout {base} -- pipeline/history pipeline/state",
    True: "push what was built first, wait for the CI results, then decide; or sign approvals. If no person decided: git revert to {base}",
}
_PROMOTED_HINT: Final = "push changes of stages and channels first, then run mcpfactory pipeline promote; git revert entries that no person made"


@dataclass(frozen=True, slots=True)
class RefusedHistory:
    """A forbidden change: server ("" for the workspace), description, and hint."""

    server: str
    message: str
    hint: str


def refusals(
    workspace: Workspace,
    base: str,
    *,
    pushed: bool = False,
    results: bool = False,
    stages: Sequence[Stage] | None = None,
) -> list[RefusedHistory]:
    """Return the forbidden changes of histories, compared with the commit `base`.

    If `pushed` is True, `base` must be the commit before the push. If `results` is True, the changes come from a pull
    request of CI jobs.
    """
    found = [
        RefusedHistory(one["server"], f"{one['message']}: {one['changes'][0]}", one["hint"])
        for one in histories_missing_events(workspace, base)
    ]
    found += _tracked_local_folders(workspace)
    signed = {channel.name for channel in read_channels(workspace) if channel.signed}
    if not _same_signers(workspace, base):
        signed = set()  # ignore all signatures: a branch that adds a key could sign with that key
    store = Store(workspace)
    for server, events in events_added_since(workspace, base).items():
        history = store.history(server)
        uses = Counter(event.get("nonce") for event in history)
        own = [one for one in events if uses[one.get("nonce")] > 1 or not _is_signed(workspace, server, one, signed)]
        if pushed or results:
            found += [
                RefusedHistory(server, f"{store.where(server, 'history')}: {words}", _PROMOTED_HINT)
                for words in find_unpermitted_releases(workspace, base, server, history, events, stages=stages)
            ]
        if results:
            own = [event for event in own if event["event"] not in RELEASE_EVENTS]
        elif pushed:
            own = _about_new_candidates(history, own)
        if own:
            where = store.where(server, "history")
            words = ", ".join(dict.fromkeys(f"{event.get('event')} by {event.get('actor')}" for event in own[:3]))
            message = f"{where} has {pluralize(len(own), 'event')} that {base} does not have: {words}"
            hint = _HINTS[pushed].format(base=base)
            found.append(RefusedHistory(server, message, hint))
    return found


def _about_new_candidates(history: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    new = {event["id"] for event in events}
    known = {event["candidate"] for event in history if event.get("built") and event["id"] not in new}
    return [event for event in events if event["event"] in _DECISIONS and event.get("candidate") not in {None, *known}]


def _tracked_local_folders(workspace: Workspace) -> Iterator[RefusedHistory]:
    """Refuse tracked files in the folders that belong to one machine: they could replace what a job checked."""
    for folder in (workspace.artifacts, channels_folder(workspace), Store(workspace).locks):
        place = folder.relative_to(workspace.root).as_posix()
        tracked = (
            (git_output(workspace.root, "ls-files", "-z", "--", place) or b"").decode(errors="replace").split("\0")
        )
        if tracked[0]:
            message = f"{place}/ must not be tracked: it contains {tracked[0]}"
            yield RefusedHistory("", message, f"git rm -r --cached -- {place}, and add /{place}/ to .gitignore")


def _same_signers(workspace: Workspace, base: str) -> bool:
    there = git_output(workspace.root, "show", f"{base}:./{SIGNERS}")
    return there is not None and hash_bytes(there) == hash_file(workspace.root / SIGNERS)


def _is_signed(workspace: Workspace, server: str, event: Event, channels: set[str]) -> bool:
    if event.get("event") != "approved" or event.get("channel") not in channels:
        return False
    return not event_signature_fault(workspace, server, event)
