"""Evaluation cases of a server for `validate`, and the model of its API, which runs in its own sandbox."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mcpfactory_pipeline.base.hashing import source_files
from mcpfactory_pipeline.build.environment import environment_for_model
from mcpfactory_pipeline.build.pep517 import copy_files
from mcpfactory_pipeline.checks.declared_calls import Evaluations
from mcpfactory_pipeline.isolation.levels import Sandbox, clean_environ, make_sandbox
from mcpfactory_pipeline.launch.connection import ModelledApi, run_model
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs
from mcpfactory_pipeline.workspace.evaluation_case import read_cases
from mcpfactory_pipeline.workspace.model_files import PROGRAM, model_files


def make_evaluations(inputs: StageInputs, candidate: Artifact) -> tuple[Evaluations | None, tuple[Path, ...]]:
    """Return the evaluations with everything to run them, and the state folders that the server can write.

    None if the server has no cases, or is made from a document and has no model of its API.

    Raises:
        ConfigError: the cases cannot be read.
        ProgramRefusedError: the dependency group of the tests cannot be installed.
    """
    cases = read_cases(inputs.folder)
    modelled = model_files(source_files(inputs.folder))
    generated = (inputs.folder / "tests" / "_generated" / "cases.json").exists()
    if not cases or (generated and not modelled):
        return None, ()
    state = inputs.work / "state"
    state.mkdir()
    homes = (clean_environ(state / f"home-{number}") for number in itertools.count(1))
    if not modelled:
        return Evaluations(cases, None, lambda: next(homes)), (state,)
    python = environment_for_model(inputs, candidate)
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(python.folder,), name="model")
    copy_files(inputs.folder, modelled, sandbox.folder)
    model = _Model(sandbox, str(python.python))
    return Evaluations(cases, model.serve, lambda: next(homes)), (state, Path(sandbox.environ["TMPDIR"]))


class _Model:
    """The program of the model, for as many processes as there are cases."""

    def __init__(self, sandbox: Sandbox, python: str) -> None:
        self._sandbox = sandbox
        self._python = python

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[ModelledApi]:
        """Serve the API on loopback until the block ends."""
        file = self._sandbox.folder / PROGRAM
        environ: Mapping[str, str] = self._sandbox.environ
        command = self._sandbox.command([self._python, file.name])
        async with run_model(command, cwd=file.parent, environ=environ) as api:
            yield api
