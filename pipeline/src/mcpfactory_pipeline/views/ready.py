"""Since when a candidate is ready for a channel: since the last of what made it ready. Pure: events in, a moment out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from mcpfactory_pipeline.base.ids import parse_time
from mcpfactory_pipeline.plan.policy import ChannelPolicy, person_key
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import Event
from mcpfactory_pipeline.state.timeline import decisions_about, in_channel_since, last_time, soaked_since

__all__ = ["ready_since"]


def ready_since(
    channel: ChannelPolicy, candidate: str, events: Sequence[Event], stages: Iterable[Stage] = ()
) -> datetime | None:
    """Return since when nothing has kept a candidate out of a channel, as far as events tell; None for a channel that none stands before.

    What counts is when it came to the channel before, the last approval that was needed, for the channel and at the approval
    `stages` on the way to it, the end of its soak time, and when a hold was released or the server revived.
    """
    if channel.source is None:
        return None
    moments = [
        in_channel_since(events, channel.source, candidate),
        soaked_since(events, channel.source, candidate, channel.soak),
        _approved_since(decisions_about(events, channel.name, candidate), channel.approvals, channel.approvers),
        last_time(event for event in events if event["event"] == "released" and event.get("channel") == channel.name),
        last_time(event for event in events if event["event"] == "revived"),
    ]
    for stage in stages:
        if (policy := stage.approval) is not None:
            said = (event for event in events if event.get("stage") == stage.name and "shown" in event)
            moments.append(_approved_since(said, policy.approvals, policy.approvers))
    return max(filter(None, moments), default=None)


def _approved_since(decisions: Iterable[Event], wanted: int, approvers: Iterable[str]) -> datetime | None:
    """Return when the approval came with which there were enough; None where none was needed.

    Any other decision takes those before it back, and one approval is then needed in any case. Of approvals that were about something
    else each counts for itself.
    """
    given, enough, since = set[str](), wanted == 0, None
    shown, able = None, set(map(person_key, approvers))
    for event in decisions:
        if event["event"] != "approved" or event.get("shown") != shown:
            given, enough, since = set(), False, None
            shown = event.get("shown")
        if event["event"] != "approved" or enough:
            continue
        who = person_key(str(event["actor"]))
        if not able or who in able:
            given.add(who)
            enough, since = len(given) >= wanted, parse_time(str(event["at"]))
    return since
