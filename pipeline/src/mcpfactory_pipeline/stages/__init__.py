"""The table of stages.

Each stage has a module, which only the process of a job imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.plan.plan import (
    channels_needed_before,
    channels_passed_before,
    needed_stages,
    required_stages,
    sort_stages,
)
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.plan.stage import (
    Artifact,
    BuiltFiles,
    Stage,
    StageInputs,
    StageOutputs,
    apply_isolation,
    apply_stage_limits,
)
from mcpfactory_pipeline.stages.custom import check_restart, custom_stages
from mcpfactory_pipeline.workspace.policy import DEFAULT, ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

__all__ = [
    "STAGES",
    "Artifact",
    "BuiltFiles",
    "Stage",
    "StageInputs",
    "StageOutputs",
    "stages_from",
    "stages_until",
    "workspace_stages",
]

_MODULE: Final = "mcpfactory_pipeline.stages"
_GENERATE: Final = Stage(
    name="generate",
    needs=(),
    reads=("document", "config", "generated", "template", "codegen"),
    writes=("generated",),
    version=3,
    run=f"{_MODULE}.generate:run",
    timeout=300,
    adopted=f"{_MODULE}.adopted:generate",
)
_BUILD: Final = Stage(
    name="build",
    needs=("generate",),
    reads=("source", "report", "uv"),
    writes=("candidate",),
    version=6,
    run=f"{_MODULE}.build:run",
    timeout=600,
    sandboxed=True,
    adopted=f"{_MODULE}.adopted:build",
)
_TEST: Final = Stage(
    name="test",
    needs=("build",),
    reads=("candidate", "dependencies", "tests", "runtime", "python"),
    writes=("checks",),
    version=5,
    run=f"{_MODULE}.test:run",
    timeout=900,
    check=True,
    sandboxed=True,
    adopted=f"{_MODULE}.adopted:test",
)
_VALIDATE: Final = Stage(
    name="validate",
    needs=("build",),
    reads=("candidate", "dependencies", "cases", "evals", "model", "runtime", "rules", "waivers", "drift", "python"),
    writes=("checks",),
    version=6,
    run=f"{_MODULE}.validate:run",
    timeout=600,
    check=True,
    sandboxed=True,
    adopted=f"{_MODULE}.adopted:validate",
)
_EVALUATE: Final = Stage(  # this stage exists only in workspaces that configure models
    name="evaluate",
    needs=("validate",),
    reads=("candidate", "evals", "reports"),
    writes=("checks",),
    version=3,
    run=f"{_MODULE}.evaluate:run",
    timeout=120,
    check=True,
)
_BEFORE: Final = (_GENERATE, _BUILD, _TEST, _VALIDATE)
_PROMOTION: Final = Stage(
    name=DEFAULT[0].name,
    needs=tuple(stage.name for stage in _BEFORE if stage.check),
    reads=("candidate", "checks"),
    writes=("channel",),
    version=2,
    run=f"{_MODULE}.promote:run",
    timeout=120,
    settings={"channel": DEFAULT[0].name},
    channel=DEFAULT[0],
)
STAGES: Final = (*_BEFORE, _PROMOTION)
_CHANNEL: Final = "channel:"
_GATES: Final = ("min_pass_rate", "max_report_days")


def workspace_stages(workspace: Workspace) -> tuple[Stage, ...]:
    """Return the stages of a workspace, sorted by their needs.

    The result has the built-in stages, the workspace's own stages, and the stages of awaited channels. The stage that
    promotes has the name of the first channel, and needs every check that awaits no channel. `validate` gets the cost
    limits of the channels and the waiver policy.

    Raises:
        ConfigError: a stage of the workspace has a name that is taken, or needs an unknown stage or itself.
    """
    channels = read_channels(workspace)
    own = [_named(stage, channels) for stage in custom_stages(workspace)]
    *before, promotion = STAGES
    channel = channels[0]
    promotion = replace(promotion, name=channel.name, channel=channel, settings={"channel": channel.name})
    if judging := _judging(workspace, channels):
        before = [replace(stage, settings=judging) if stage is _VALIDATE else stage for stage in before]
    awaited = _awaited(own, channels)
    if (evaluated := _evaluation_stage(workspace, channels)) is not None:
        before.append(evaluated)
    stages = sort_stages((*before, *own, promotion, *awaited))
    stages = sort_stages([_with_checks(stages, stage, channels) for stage in stages])
    _check_channels(stages, channels)
    stages = apply_isolation([_completed(stages, stage, channels) for stage in stages], workspace.settings.pipeline)
    return apply_stage_limits(stages, workspace.settings.pipeline.limits)


def _evaluation_stage(workspace: Workspace, channels: Sequence[ChannelPolicy]) -> Stage | None:
    known = workspace.settings.pipeline.evaluation
    for channel in channels:
        if (gates := [name for name in _GATES if name in channel.gates]) and not known.models:
            raise setting_error(
                f"channel {channel.name} has the gate {gates[0]}, but pipeline.evaluation has no models",
                'set models = ["openai:NAME"] in [pipeline.evaluation]',
            )
    if not known.models:
        return None
    from mcpfactory_pipeline.checks.evaluation.model_endpoint import find_endpoint  # noqa: PLC0415 - heavy

    settings: dict[str, Any] = {"models": list(known.models), "mode": known.mode}
    places = {
        name: find_endpoint(name, endpoint, environ={}).place
        for name, endpoint in known.endpoints.items()
        if name in known.models and endpoint.url
    }
    return replace(_EVALUATE, settings={**settings, "endpoints": places} if places else settings)


def _judging(workspace: Workspace, channels: Sequence[ChannelPolicy]) -> dict[str, Any]:
    limits, waivers = cost_limits(channels), workspace.settings.waivers.model_dump(mode="json", exclude_unset=True)
    return ({"limits": limits} if limits else {}) | ({"waivers": waivers} if waivers else {})


def _named(stage: Stage, channels: Sequence[ChannelPolicy]) -> Stage:
    """Replace each need `channel:NAME` of a stage with the name of the channel's stage."""
    known = [channel.name for channel in channels]
    for name in stage.needs:
        if name.startswith(_CHANNEL) and (wanted := name.removeprefix(_CHANNEL)) not in known:
            raise setting_error(
                f"stage {stage.name} needs {name!r}, which is not a channel", did_you_mean(wanted, known, "channels")
            )
    return replace(stage, needs=tuple(name.removeprefix(_CHANNEL) for name in stage.needs))


def _awaited(own: Sequence[Stage], channels: Sequence[ChannelPolicy]) -> list[Stage]:
    """Return a stage for each later channel that a workspace stage needs, and for the channels before it."""
    wanted = {channel.name for channel in channels[1:] for stage in own if channel.name in stage.needs}
    wanted |= {source for name in wanted for source in channels_passed_before(channels, name)}
    return [
        Stage(
            name=channel.name,
            needs=(channel.source,) if channel.source else (),
            reads=("candidate",),
            writes=(),
            version=1,
            channel=channel,
            awaits=True,
        )
        for channel in channels[1:]
        if channel.name in wanted
    ]


def _with_checks(stages: Sequence[Stage], stage: Stage, channels: Sequence[ChannelPolicy]) -> Stage:
    """Add the checks that a channel requires to the needs of the channel's stage."""
    if stage.channel is None:
        return stage
    checks = [one.name for one in required_stages(stages, stage.channel, channels)]
    if stage.awaits:  # checks that need no channel have run before the first channel
        checks = [name for name in checks if channels_needed_before(stages, name)]
    return replace(stage, needs=tuple(dict.fromkeys((*stage.needs, *checks))))


def _check_channels(stages: Sequence[Stage], channels: Sequence[ChannelPolicy]) -> None:
    names = [stage.name for stage in stages if stage.check]
    for channel in channels:
        if missing := [name for name in channel.checks or () if name not in names]:
            raise setting_error(
                f"channel {channel.name}: 'checks' contains the unknown check {missing[0]!r}",
                did_you_mean(missing[0], names, "checks"),
            )


def _completed(stages: Sequence[Stage], stage: Stage, channels: Sequence[ChannelPolicy]) -> Stage:
    """Set the watched channel of a stage; add the candidate to the content that an approval stage shows."""
    before = needed_stages(stages, stage.name)
    check_restart(stage, before)
    offering = channels_needed_before(stages, stage.name)
    watched = [channel.name for channel in channels if channel.name in offering]
    if not watched and (stage.soak or stage.rollback):
        field = "soak" if stage.soak else "on_failure"
        raise setting_error(
            f"stage {stage.name}: '{field}' can be used only in a stage that runs after a promotion",
            f'needs = ["channel:{channels[0].name}"]',
        )
    builds = {one.name for one in stages if "candidate" in one.writes}
    reads = ("candidate", *stage.reads) if stage.approval and builds & before else stage.reads
    return replace(stage, watches=watched[-1] if watched else "", reads=reads)


def stages_until(stages: Sequence[Stage], name: str | None) -> tuple[Stage, ...]:
    """Return the stage of that name and all stages that it needs; if `name` is None, return all stages."""
    if name is None:
        return tuple(stages)
    by_name = {stage.name: stage for stage in stages}
    if name not in by_name:
        raise NotFoundError(f"unknown stage {name!r}", hint=did_you_mean(name, by_name, "stages"))
    wanted = {name, *needed_stages(stages, name)}
    return tuple(stage for stage in stages if stage.name in wanted)


def stages_from(stages: Sequence[Stage], name: str) -> tuple[str, ...]:
    """Return the names of a stage and of all its direct and indirect dependents."""
    if name not in {stage.name for stage in stages}:
        raise NotFoundError(
            f"unknown stage {name!r}", hint=did_you_mean(name, [stage.name for stage in stages], "stages")
        )
    return tuple(stage.name for stage in stages if stage.name == name or name in needed_stages(stages, stage.name))
