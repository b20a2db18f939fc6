"""`staging`: the candidate whose checks passed goes into the channel `staging`, byte for byte."""

from __future__ import annotations

from mcpfactory_pipeline.channel import publish
from mcpfactory_pipeline.errors import StageError
from mcpfactory_pipeline.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.wheels import runtime_wheel

__all__ = ["STAGE"]

CHANNEL = "staging"


def run(inputs: StageInputs) -> StageOutputs:
    """Publishes the candidate's wheel, and the runtime's where no public index has it."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to promote", hint="run the stage build first")
    wheel, runtime = candidate.wheel, runtime_wheel(inputs.artifacts)
    publish(
        inputs.root / "pipeline" / "channels", CHANNEL, wheel, candidate.files[wheel.name], [runtime] if runtime else []
    )
    return StageOutputs("passed", f"{candidate.version} ({candidate.id}) is in {CHANNEL}", channel=CHANNEL)


STAGE = Stage(
    name="staging",
    needs=("test", "validate"),
    reads=("candidate", "checks"),
    writes=("channel",),
    version=1,
    run=run,
    timeout=120,
)
