"""Order of stages, and the stages before a channel. Pure: stages in, stages out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.workspace import setting_error


def arrange(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages, each behind those that it needs, and otherwise in the order given. `before` becomes needs of others.

    Raises:
        ConfigError: for two stages of one name, a need that there is not, and stages that need each other.
    """
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise setting_error(f"stage {twice} already exists", "give it another name")
    waits = {stage.name: list(stage.needs) for stage in stages}
    for stage in stages:
        for field, others in (("needs", stage.needs), ("before", stage.before)):
            if missing := [name for name in others if name not in names]:
                raise setting_error(
                    f"stage {stage.name}: {field} names the unknown stage {missing[0]!r}",
                    listed(missing[0], [name for name in names if name != stage.name], "stages"),
                )
        for name in stage.before:
            waits[name].append(stage.name)
    left = [replace(stage, needs=tuple(dict.fromkeys(waits[stage.name]))) for stage in stages]
    placed: list[Stage] = []
    while left:
        done = {stage.name for stage in placed}
        following = next((stage for stage in left if done.issuperset(stage.needs)), None)
        if following is None:
            circle = ", ".join(stage.name for stage in left)
            raise setting_error(
                f"stages depend on each other in a cycle: {circle}", "remove one entry of needs or before"
            )
        placed.append(following)
        left.remove(following)
    return tuple(placed)


def needed_stages(stages: Sequence[Stage], name: str) -> set[str]:
    """Return the names of all stages that must have passed before a stage: those that it needs, that these need, and so on."""
    by_name = {stage.name: stage for stage in stages}
    found: set[str] = set()
    todo = list(by_name[name].needs)
    while todo:
        current = todo.pop()
        if current not in found and current in by_name:
            found.add(current)
            todo += by_name[current].needs
    return found


def channels_before(stages: Sequence[Stage], name: str) -> set[str]:
    """Return the names of the channels that must offer the candidate before a stage runs."""
    needed = needed_stages(stages, name)
    return {stage.channel.name for stage in stages if stage.name in needed and stage.channel}


def source_channels(channels: Sequence[ChannelPolicy], name: str) -> set[str]:
    """Return the channels that a candidate goes through before one."""
    sources = {channel.name: channel.source for channel in channels}
    found: set[str] = set()
    source = sources.get(name)
    while source is not None and source not in found:
        found.add(source)
        source = sources.get(source)
    return found


def required_stages(
    stages: Sequence[Stage], channel: ChannelPolicy, channels: Sequence[ChannelPolicy]
) -> tuple[Stage, ...]:
    """Return the checks and approvals that a candidate needs for a channel: those behind no channel that it need not be in.

    Where the channel names its `checks`, of the stages of the workspace behind a channel only those.
    """
    allowed, found = source_channels(channels, channel.name), []
    for stage in stages:
        before = channels_before(stages, stage.name)
        if not stage.check or not before <= allowed:
            continue
        if before and channel.checks is not None and stage.name not in channel.checks:
            continue
        found.append(stage)
    return tuple(found)


def required_checks(
    stages: Sequence[Stage], channel: ChannelPolicy, channels: Sequence[ChannelPolicy]
) -> tuple[str, ...]:
    """Return the names of the checks that must stand in the record of a candidate for a channel: stages that ran on its bytes."""
    found = required_stages(stages, channel, channels)
    return tuple(stage.name for stage in found if "candidate" in stage.reads and not stage.approval)
