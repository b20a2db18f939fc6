"""Promotions in a push, checked against the stages and channels of the commit before the push.

`promote` checks the policy of the working tree. A line written by hand was never checked, and the same push may have removed a
stage or lowered a policy. So each promotion is checked again, at its own time, by the stages and channels of the commit before the
push. A stricter policy in the push revokes nothing. A channel that is new in the push is checked by the push's own policy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.plan.order import required_checks
from mcpfactory_pipeline.plan.policy import ChannelPolicy, find_blockers, read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.promotion.signatures import unsigned_approvals, without_unsigned
from mcpfactory_pipeline.promotion.stage_decision import stage_blockers
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.state import Event, ServerState, fold
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

__all__ = ["unpermitted"]

_MOST: Final = 50  # promotions of one server in one push that are judged; whoever brings more has not pushed for long


def unpermitted(
    workspace: Workspace,
    base: str,
    server: str,
    history: Sequence[Event],
    events: Sequence[Event],
    *,
    stages: Sequence[Stage] | None = None,
) -> Iterator[str]:
    """Yield in words what stood between a candidate and the channel that an event of a push says it came into.

    `history` is the whole history of the server, `events` those of it that the commit `base` does not have;
    `stages` take the place of those of the workspace and of the commit.

    Raises:
        ConfigError: the stages or channels cannot be read.
    """
    moves = [event for event in events if event["event"] in {"promoted", "published"}]
    if not moves:
        return
    if len(moves) > _MOST:
        yield f"it brings {len(moves)} promotions at once"
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
    """Return the workspace as the commit configures it, if it has one, and as it is now."""
    settings = git_output(workspace.root, "show", f"{base}:./{CONFIG}")
    then = [] if settings is None else [replace(workspace, config=_table(settings))]
    return [*then, workspace]


def _table(settings: bytes) -> Mapping[str, object]:
    try:
        return tomllib.loads(settings.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}  # nobody could run anything then: the channels that a workspace has by itself


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
        yield f"{event['event']} ({event['id']}): there is no channel {event['channel']}"
        return
    candidate = str(event["candidate"])
    if channel.signed:
        for who, fault in unsigned_approvals(workspace, state, before, channel.name, candidate).items():
            yield f"{event['event']} ({event['id']}) to {channel.name}: the approval of {who} {fault}"
    checks = required_checks(stages, channel, channels)
    now = parse_time(str(event["at"]))
    blockers = find_blockers(channel, checks, state, candidate, events=before, now=now)
    counted = without_unsigned(workspace, state, lambda: before, stages)
    blockers += stage_blockers(
        workspace, stages, channel, channels, state=counted, events=lambda: before, candidate=candidate
    )
    for blocker in blockers:
        yield f"{event['event']} ({event['id']}) to {channel.name}: {blocker.message}"


def _never_offered(state: ServerState, event: Event) -> Iterator[str]:
    if event["channel"] not in state.candidates[str(event["candidate"])].channels:
        yield f"{event['event']} ({event['id']}): {event['channel']} never offered {event['candidate']}"
