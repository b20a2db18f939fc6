from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.files import copy_files
from mcpfactory_pipeline.base.hashing import list_source_files
from mcpfactory_pipeline.build.candidate_environment import (
    UNINSTALLABLE,
    environment_for_simulated_api,
    environment_for_validate,
)
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.isolation.levels import Sandbox, clean_environ, make_sandbox
from mcpfactory_pipeline.launch.start_command import STARTERS, diagnose_start, start_failure_summary
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs, StageOutputs
from mcpfactory_pipeline.stages.adopted import store_validation_report, summarize_validation
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import read_waivers
from mcpfactory_pipeline.workspace.workspace import API_MODEL_PROGRAM, CASES, simulated_api_files
from mcpfactory_runtime.server.generated.search_mode import CALLS

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.evaluation_calls import EvaluationSetup
    from mcpfactory_pipeline.launch.server_connection import SimulatedApi

_SHOWN: Final = 3  # maximum files that a message lists


def run(inputs: StageInputs) -> StageOutputs:
    """Check the installed server on stdio in every protocol revision, and call its tools against a stub API."""
    candidate = inputs.built_candidate
    try:
        environment = environment_for_validate(inputs, candidate)
        evaluations, state = _make_evaluations(inputs, candidate)
    except ToolRejectedInputError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    from mcpfactory_pipeline.checks.exchange import ValidationTarget  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.source_validation import FULL_TOOL_SET, with_locations  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.checks.validation import validate  # noqa: PLC0415 - heavy, and only this job needs it

    cases = inputs.folder / CASES
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS), writable=state)
    empty = sandbox.folder / "empty"  # an empty working directory, so that sources are not importable
    empty.mkdir()
    target = ValidationTarget(
        command=tuple(sandbox.command([str(environment.python), "-m", inputs.package])),
        cwd=empty,
        environ={**sandbox.environ, **FULL_TOOL_SET},
        cases=cases if cases.exists() else None,
        package=inputs.folder,
        wheel=candidate.wheel,
        limits=inputs.settings.get("limits", {}),
        isolation=inputs.settings,
    )
    policy, waivers = WaiverPolicy(**inputs.settings.get("waivers", {})), read_waivers(inputs.folder)
    report = asyncio.run(validate(target, waivers=waivers, policy=policy, evaluations=evaluations))
    report = with_locations(report, inputs.root, inputs.folder)
    tools = [*report.listed, *_searched_tools(report.listed, candidate.folder)]
    store_validation_report(inputs, report, tools)
    gates = report.failed_gates  # gates that could not be checked are included
    message, summary = summarize_validation(inputs, report, tools, level=sandbox.level.name, gates=gates)
    if any(finding.rule == "process.starts" for finding in report.findings):
        mistake = diagnose_start(environment.python, inputs.package, inputs.folder, sandbox=sandbox)
        message = f"the server does not start: {start_failure_summary(mistake)}" if mistake else message
    if changes := environment.changes():
        shown = ", ".join(changes[:_SHOWN])
        return StageOutputs("failed", f"the server changed its installation while it was checked: {shown}", summary)
    return StageOutputs("passed" if report.passed else "failed", message, summary)


def _searched_tools(listed: Sequence[Any], folder: Path) -> Sequence[Any]:
    """Return the tools that search mode hides. Callers can call hidden tools, so the contract includes them."""
    metas = [tool.get("_meta") for tool in listed if isinstance(tool, dict)]
    searching = any(isinstance(meta, dict) and meta.get(CALLS) for meta in metas)
    found = contract.stored_contract(folder, manifest=True) if searching else None
    return found.tools if found else ()


def _make_evaluations(inputs: StageInputs, candidate: Artifact) -> tuple[EvaluationSetup | None, tuple[Path, ...]]:
    """Return the evaluations, and the state folders that the server can write.

    There are no evaluations without cases, or for an API document without a simulated API.
    """
    from mcpfactory_pipeline.checks.evaluation_calls import EvaluationSetup  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases  # noqa: PLC0415 - heavy

    cases = read_evaluation_cases(inputs.folder)
    model_files = simulated_api_files(list_source_files(inputs.folder))
    if not cases or ((inputs.folder / CASES).exists() and not model_files):
        return None, ()
    state = inputs.work / "state"
    state.mkdir()
    homes = (clean_environ(state / f"home-{number}") for number in itertools.count(1))
    if not model_files:
        return EvaluationSetup(cases, None, lambda: next(homes)), (state,)
    python = environment_for_simulated_api(inputs, candidate)
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(python.folder,), name="model")
    copy_files(inputs.folder, model_files, sandbox.folder)
    model = _ApiModelProgram(sandbox, str(python.python))
    return EvaluationSetup(cases, model.serve, lambda: next(homes)), (state, Path(sandbox.environ["TMPDIR"]))


class _ApiModelProgram:
    def __init__(self, sandbox: Sandbox, python: str) -> None:
        self._sandbox = sandbox
        self._python = python

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[SimulatedApi]:
        from mcpfactory_pipeline.launch.server_connection import run_simulated_api  # noqa: PLC0415 - heavy, and only this job needs it

        file = self._sandbox.folder / API_MODEL_PROGRAM
        command = self._sandbox.command([self._python, file.name])
        async with run_simulated_api(command, cwd=file.parent, environ=self._sandbox.environ) as api:
            yield api
