"""Stage `promote`: move the candidate that passed its checks into the first channel.

The job verifies the bytes of the candidate's files. After the job, the run moves the channel and writes the state in
one transaction. A hold that is set during the job therefore stops the promotion.
"""

from __future__ import annotations

from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel
from mcpfactory_pipeline.channels.channel import read_verified_file
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs


def run(inputs: StageInputs) -> StageOutputs:
    """Read the candidate's files. Build the runtime's wheel if no public index has it."""
    candidate = inputs.built_candidate
    for name, content in candidate.files.items():
        read_verified_file(candidate.folder / name, content)
    if candidate.offered.suffix == ".whl":  # an adopted server has its own list of dependencies
        cached_runtime_wheel(inputs.artifacts)
    channel = str(inputs.settings["channel"])
    return StageOutputs("passed", f"{candidate.version} ({candidate.id}) is in {channel}", channel=channel)
