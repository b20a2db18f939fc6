"""A stage of the workspace's own: a command that passes with exit code 0."""

from __future__ import annotations

import os

from mcpfactory_pipeline.build.programs import run_program
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs

__all__ = ["run"]


def run(inputs: StageInputs) -> StageOutputs:
    """Run the command in the workspace's root. What it is about stands in its environment (how-to/write-a-stage)."""
    environ = {
        **os.environ,
        "MCPFACTORY_SERVER": inputs.server,
        "MCPFACTORY_SERVER_FOLDER": str(inputs.folder),
        "MCPFACTORY_CANDIDATE": inputs.candidate.id if inputs.candidate else "",
        "MCPFACTORY_WHEEL": str(inputs.candidate.wheel) if inputs.candidate else "",
        "MCPFACTORY_REPORTS": str(inputs.keep),
    }
    inputs.keep.mkdir(parents=True, exist_ok=True)
    command = list(inputs.settings["command"])
    code = run_program(command, cwd=inputs.root, environ=environ)
    if code < 0:
        return StageOutputs("errored", f"{command[0]} was ended by signal {-code}")
    return StageOutputs("passed" if code == 0 else "failed", f"{command[0]} ended with exit {code}", {"exit": code})
