"""`validate`: the server is started from its wheel and checked by the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.environment import UNINSTALLABLE, environment_for_validate
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.isolation.sandbox import make_sandbox
from mcpfactory_pipeline.launch.failure import STARTERS, diagnose_start, one_line
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.waivers import read_waiver_policy, read_waivers
from mcpfactory_runtime.server.generated.search_mode import CALLS

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.report import Report

__all__ = ["STAGE"]

_SHOWN: Final = 3  # files that a message names
_CRITICAL: Final = 5  # the worst severity (docs/reference/rules.md)


def run(inputs: StageInputs) -> StageOutputs:
    """Start the installed server over stdio, speak every revision, call its tools against a stub upstream."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to validate", hint="run the stage build first")
    from mcpfactory_pipeline.stages.modelled import make_evaluations  # noqa: PLC0415 - heavy, and only this job needs it

    try:
        environment = environment_for_validate(inputs, candidate)
        evaluations, state = make_evaluations(inputs, candidate)
    except ProgramRefusedError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    from mcpfactory_pipeline.checks import ValidationTarget, validate  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_pipeline.checks.formats import FORMATS  # noqa: PLC0415 - as above
    from mcpfactory_pipeline.checks.source import FULL_TOOL_SET, with_locations  # noqa: PLC0415 - as above

    cases = inputs.folder / "tests" / "_generated" / "cases.json"
    sandbox = make_sandbox(inputs.settings, inputs.work, readable=(environment.folder, STARTERS), writable=state)
    empty = sandbox.folder / "empty"  # no source tree in sight: what is started is what was installed
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
    inputs.keep.mkdir(parents=True, exist_ok=True)
    for form in FORMATS.values():
        text = form.write(report).replace(str(inputs.root), ".")
        (inputs.keep / form.file).write_text(text, encoding="utf-8")
    tools = [*report.listed, *_searched_tools(report.listed, candidate.folder)]
    (inputs.keep / contract.FILE).write_text(contract.contract_text(tools, candidate.version), encoding="utf-8")
    print(report.to_text())  # noqa: T201 - stdout of a job is the log of its stage
    message = _message(report)
    if any(finding.rule == "startup.starts" for finding in report.findings):
        mistake = diagnose_start(environment.python, inputs.package, inputs.folder, sandbox=sandbox)
        message = f"the server does not start: {one_line(mistake)}" if mistake else message
    critical = sum(finding.severity == _CRITICAL for finding in report.findings)
    summary = {
        "score": report.score,
        "findings": len(report.findings),
        "critical": critical,
        **_waived(report),
        "gates": list(report.failed_gates),  # those that could not be checked, too
        "measured": dict(report.measured),
        "isolation": sandbox.level.name,
        "contract": contract.count_breaking_changes(tools, inputs.artifacts / inputs.server, candidate.id),
    }
    if changes := environment.changes():
        shown = ", ".join(changes[:_SHOWN])
        return StageOutputs("failed", f"the server changed what is installed while it was checked: {shown}", summary)
    return StageOutputs("passed" if report.passed else "failed", message, summary)


def _waived(report: Report) -> dict[str, Any]:
    """Return how many findings were waived, and of which rules; nothing where none was."""
    rules = sorted({entry.rule for entry in report.waived})
    return {"waived": len(report.waived), "waived_rules": rules} if rules else {}


def _message(report: Report) -> str:
    """Say in a line how the checks ended."""
    gates = f"; closed: {', '.join(report.failed_gates)}" if report.failed_gates else ""
    refused = sum(one.state == "not allowed" for one in report.waivers)
    ignored = f"; {pluralize(refused, 'waiver')} not allowed by policy" if refused else ""
    found = pluralize(len(report.findings), "finding")
    return f"score {report.score}{report.waived_words}, {found}{gates}{ignored}"


def _searched_tools(listed: Sequence[Any], folder: Path) -> Sequence[Any]:
    """In search mode: the tools behind those that are listed. They are part of the contract, for they are called by name."""
    metas = [tool.get("_meta") for tool in listed if isinstance(tool, dict)]
    searching = any(isinstance(meta, dict) and meta.get(CALLS) for meta in metas)
    found = contract.stored_contract(folder, manifest=True) if searching else None
    return found.tools if found else ()


STAGE: Final = Stage(
    name="validate",
    needs=("build",),
    reads=("candidate", "cases", "evals", "model", "runtime", "rules", "waivers", "python"),
    writes=("checks",),
    version=5,
    run=run,
    timeout=600,
    check=True,
    sandboxed=True,
)
