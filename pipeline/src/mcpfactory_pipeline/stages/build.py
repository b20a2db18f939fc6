"""`build`: the candidate. One wheel, built once from a copy of the sources; its id is the hash of its bytes."""

from __future__ import annotations

from mcpfactory_pipeline.candidate import build_candidate, keep
from mcpfactory_pipeline.coverage import facts
from mcpfactory_pipeline.stage import Built, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.tools import Refused
from mcpfactory_pipeline.wheels import wheel_version

__all__ = ["STAGE"]


def run(inputs: StageInputs) -> StageOutputs:
    """Builds the wheel and puts it into the folder of its candidate."""
    try:
        made = build_candidate(inputs.folder, inputs.work)
    except Refused as error:
        return StageOutputs("failed", f"the wheel does not build: {error}")
    keep(made, inputs.artifacts / inputs.server / made.id)
    name, size = made.wheel.name, made.wheel.stat().st_size
    built = Built(made.id, wheel_version(name), made.files, facts(inputs.folder))
    return StageOutputs("passed", f"{name}, candidate {made.id}", {"bytes": size}, built=built)


STAGE = Stage(
    name="build",
    needs=("generate",),
    reads=("source", "report", "uv"),
    writes=("candidate",),
    version=2,
    run=run,
    timeout=600,
)
