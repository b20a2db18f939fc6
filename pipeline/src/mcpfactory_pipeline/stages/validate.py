"""`validate`: the server is started from its wheel and checked by the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.build.environment import UNINSTALLABLE, environment_for_validate
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.isolation.levels import make_sandbox
from mcpfactory_pipeline.launch.diagnosis import STARTERS, diagnose_start, one_line
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.stages import adopted
from mcpfactory_pipeline.stages.adopted import keep_report, summarise
from mcpfactory_pipeline.workspace.waivers import read_waiver_policy, read_waivers
from mcpfactory_runtime.server.generated.search_mode import CALLS

_SHOWN: Final = 3  # files that a message names


def run(inputs: StageInputs) -> StageOutputs:
    """Start the installed server over stdio, speak every revision, call its tools against a stub upstream."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to validate", hint="run the stage build first")
    from mcpfactory_pipeline.stages.api_model import make_evaluations  # noqa: PLC0415 - heavy, and only this job needs it

    try:
        environment = environment_for_validate(inputs, candidate)
        evaluations, state = make_evaluations(inputs, candidate)
    except ProgramRefusedError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    from mcpfactory_pipeline.checks import ValidationTarget, validate  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_pipeline.checks.source import FULL_TOOL_SET, with_locations  # noqa: PLC0415 - as above

    cases = inputs.folder / "tests" / "_generated" / "cases.json"
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS), writable=state)
    empty = sandbox.folder / "empty"  # no source tree is reachable: the installed package is started
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
    policy, waivers = read_waiver_policy(inputs.settings.get("waivers", {})), read_waivers(inputs.folder)
    report = asyncio.run(validate(target, waivers=waivers, policy=policy, evaluations=evaluations))
    report = with_locations(report, inputs.root, inputs.folder)
    tools = [*report.listed, *_searched_tools(report.listed, candidate.folder)]
    keep_report(inputs, report, tools)
    gates = report.failed_gates  # including those that could not be checked
    message, summary = summarise(inputs, report, tools, level=sandbox.level.name, gates=gates)
    if any(finding.rule == "startup.starts" for finding in report.findings):
        mistake = diagnose_start(environment.python, inputs.package, inputs.folder, sandbox=sandbox)
        message = f"the server does not start: {one_line(mistake)}" if mistake else message
    if changes := environment.changes():
        shown = ", ".join(changes[:_SHOWN])
        return StageOutputs("failed", f"the server changed what is installed while it was checked: {shown}", summary)
    return StageOutputs("passed" if report.passed else "failed", message, summary)


def _searched_tools(listed: Sequence[Any], folder: Path) -> Sequence[Any]:
    """In search mode: the tools behind those that are listed. They are part of the contract, for they are called by name."""
    metas = [tool.get("_meta") for tool in listed if isinstance(tool, dict)]
    searching = any(isinstance(meta, dict) and meta.get(CALLS) for meta in metas)
    found = contract.stored_contract(folder, manifest=True) if searching else None
    return found.tools if found else ()


STAGE: Final = Stage(
    name="validate",
    needs=("build",),
    reads=("candidate", "cases", "evals", "model", "runtime", "rules", "waivers", "drift", "python"),
    writes=("checks",),
    version=5,
    run=run,
    timeout=600,
    check=True,
    sandboxed=True,
    adopted=adopted.validate,
)
