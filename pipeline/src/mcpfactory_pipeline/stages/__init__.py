"""The stages: one file each, and one line in the registry below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.plan.limits import apply_limits
from mcpfactory_pipeline.plan.policy import cost_limits, read_channels
from mcpfactory_pipeline.plan.stage import Artifact, Built, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.stages import build, generate, staging, test, validate
from mcpfactory_pipeline.stages.own import own_stages
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

__all__ = ["STAGES", "Artifact", "Built", "Stage", "StageInputs", "StageOutputs", "stages_until", "workspace_stages"]

STAGES: Final[tuple[Stage, ...]] = (
    generate.STAGE,
    build.STAGE,
    test.STAGE,
    validate.STAGE,
    staging.STAGE,
)


def workspace_stages(workspace: Workspace) -> tuple[Stage, ...]:
    """Return the stages of a workspace, each behind those that it needs: ours, and its own before the promotion.

    The promotion has the name of the workspace's first channel; `validate` knows what the channels allow a server to cost.

    Raises:
        ConfigError: when a stage of the workspace has a name that is taken, or needs one that is not before it.
    """
    own = own_stages(workspace)
    *before, promotion = STAGES
    channels = read_channels(workspace)
    channel, needs = channels[0], (*promotion.needs, *(stage.name for stage in own))
    promotion = replace(promotion, name=channel.name, needs=needs, channel=channel, settings={"channel": channel.name})
    if limits := cost_limits(channels):
        before = [replace(stage, settings={"limits": limits}) if stage is validate.STAGE else stage for stage in before]
    stages: list[Stage] = []
    for stage in (*before, *own, promotion):
        names = [known.name for known in stages]
        if stage.name in names or (stage.name == promotion.name and stage in own):
            raise setting_error(f"there is a stage {stage.name} already", "give it another name")
        if missing := [name for name in stage.needs if name not in names]:
            raise setting_error(
                f"stage {stage.name} needs {missing[0]!r}, which is not before it",
                f"needs may name: {', '.join(names)}",
            )
        stages.append(stage)
    return apply_limits(stages, workspace.settings.get("limits", {}))


def stages_until(stages: Sequence[Stage], name: str | None) -> tuple[Stage, ...]:
    """Return the stage of that name and all that it needs; all stages when no name is given.

    Raises:
        NotFoundError: for an unknown stage.
    """
    if name is None:
        return tuple(stages)
    by_name = {stage.name: stage for stage in stages}
    if name not in by_name:
        raise NotFoundError(f"there is no stage {name!r}", hint=listed(name, by_name, "stages"))
    wanted, todo = set(), [name]
    while todo:
        current = todo.pop()
        wanted.add(current)
        todo += by_name[current].needs
    return tuple(stage for stage in stages if stage.name in wanted)
