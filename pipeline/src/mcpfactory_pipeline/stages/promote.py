"""`promote`: the candidate whose checks passed enters the first channel, byte for byte.

Its job proves that the bytes exist and are those that were checked. The process that runs the stages then moves the
channel and writes the state in one transaction, so that a hold set in the meantime is respected.
"""

from __future__ import annotations

from mcpfactory_pipeline.build.distributions import runtime_wheel
from mcpfactory_pipeline.channels.channel import read_verified
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs


def run(inputs: StageInputs) -> StageOutputs:
    """Read the candidate's files, and build the runtime's if no public index has it."""
    candidate = inputs.built_candidate
    for name, content in candidate.files.items():
        read_verified(candidate.folder / name, content)
    if candidate.offered.suffix == ".whl":  # adopted servers list their dependencies in their own lock
        runtime_wheel(inputs.artifacts)
    channel = str(inputs.settings["channel"])
    return StageOutputs("passed", f"{candidate.version} ({candidate.id}) is in {channel}", channel=channel)
