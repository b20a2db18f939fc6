"""Promotions that a push brings as events: whether the policy of the commit before the push permitted them.

Whoever promotes with mcpfactory was judged when it happened. Who writes the line by hand was not, so it is judged here, at the
moment that the event has, by the channels of the commit before: a push that lowers what a channel asks for does not profit from
it, and one that raises it takes nothing back. A channel that comes with the push is judged by itself.
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
from mcpfactory_pipeline.promotion.signatures import unsigned_approvals
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
    `stages` take the place of those of the workspace.

    Raises:
        ConfigError: the channels cannot be read.
    """
    moves = [event for event in events if event["event"] in {"promoted", "published"}]
    if not moves:
        return
    if len(moves) > _MOST:
        yield f"it brings {len(moves)} promotions at once"
        return
    stages, policies = stages or workspace_stages(workspace), _policies(workspace, base)
    for event in moves:
        before = [one for one in history if str(one["id"]) < str(event["id"])]
        state = fold(server, before)
        if event.get("candidate") not in state.candidates:
            yield f"{event['event']} ({event['id']}): no build made the candidate {event.get('candidate')}"
        elif event["event"] == "published":
            yield from _never_offered(state, event)
        else:
            channels = next((one for one in policies if event["channel"] in {channel.name for channel in one}), ())
            yield from _blockers(workspace, stages, channels, state=state, before=before, event=event)


def _policies(workspace: Workspace, base: str) -> list[tuple[ChannelPolicy, ...]]:
    """Return the channels of the commit, where it has a workspace, and those of today."""
    found = [read_channels(workspace)]
    settings = git_output(workspace.root, "show", f"{base}:./{CONFIG}")
    if settings is None:
        return found  # there was no workspace yet
    then = read_channels(replace(workspace, config=_table(settings)))
    return [then, *found]


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
    for blocker in find_blockers(channel, checks, state, str(event["candidate"]), events=before, now=now):
        yield f"{event['event']} ({event['id']}) to {channel.name}: {blocker.message}"


def _never_offered(state: ServerState, event: Event) -> Iterator[str]:
    if event["channel"] not in state.candidates[str(event["candidate"])].channels:
        yield f"{event['event']} ({event['id']}): {event['channel']} never offered {event['candidate']}"
