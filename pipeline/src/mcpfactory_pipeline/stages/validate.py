"""`validate`: the server is started from its wheel and checked by the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.build.environment import UNINSTALLABLE, environment_python
from mcpfactory_pipeline.build.programs import ProgramRefusedError, clean_environ
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.launch.failure import diagnose_start, one_line
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.waivers import read_waivers
from mcpfactory_runtime.server.generated.search_mode import CALLS

__all__ = ["STAGE"]

_CRITICAL: Final = 5  # the worst severity (docs/reference/rules.md)


def run(inputs: StageInputs) -> StageOutputs:
    """Start the installed server over stdio, speak every revision, call its tools against a stub upstream."""
    candidate = inputs.candidate
    if candidate is None:
        raise StageError("there is no candidate to validate", hint="run the stage build first")
    try:
        python = environment_python(inputs, candidate)
    except ProgramRefusedError as error:
        return StageOutputs("failed", f"the wheel cannot be installed: {error}; hint: {UNINSTALLABLE}")
    from mcpfactory_pipeline.checks import ValidationTarget, validate  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_pipeline.checks.formats import FORMATS  # noqa: PLC0415 - as above
    from mcpfactory_pipeline.checks.source import FULL_TOOL_SET, with_locations  # noqa: PLC0415 - as above

    cases = inputs.folder / "tests" / "_generated" / "cases.json"
    empty = inputs.work / "empty"  # no source tree in sight: what is started is what was installed
    empty.mkdir()
    target = ValidationTarget(
        command=(str(python), "-m", inputs.package),
        cwd=empty,
        environ=clean_environ(inputs.work / "home") | FULL_TOOL_SET,
        cases=cases if cases.exists() else None,
        package=inputs.folder,
        wheel=candidate.wheel,
        limits=inputs.settings.get("limits", {}),
    )
    report = asyncio.run(validate(target, waivers=read_waivers(inputs.folder)))
    report = with_locations(report, inputs.root, inputs.folder)
    inputs.keep.mkdir(parents=True, exist_ok=True)
    for form in FORMATS.values():
        text = form.write(report).replace(str(inputs.root), ".")
        (inputs.keep / form.file).write_text(text, encoding="utf-8")
    tools = [*report.listed, *_searched_tools(report.listed, candidate.folder)]
    (inputs.keep / contract.FILE).write_text(contract.contract_text(tools, candidate.version), encoding="utf-8")
    print(report.to_text())  # noqa: T201 - stdout of a job is the log of its stage
    gates = list(report.failed_gates)  # those that could not be checked, too
    message = f"score {report.score}, {len(report.findings)} findings" + (
        f"; closed: {', '.join(gates)}" if gates else ""
    )
    if any(finding.rule == "startup.starts" for finding in report.findings):
        mistake = diagnose_start(
            python, inputs.package, inputs.folder, cwd=empty, environ=clean_environ(inputs.work / "home")
        )
        message = f"the server does not start: {one_line(mistake)}" if mistake else message
    critical = sum(finding.severity == _CRITICAL for finding in report.findings)
    summary = {
        "score": report.score,
        "findings": len(report.findings),
        "critical": critical,
        "gates": gates,
        "measured": dict(report.measured),
        "contract": contract.count_breaking_changes(tools, inputs.artifacts / inputs.server, candidate.id),
    }
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
    reads=("candidate", "cases", "runtime", "rules", "waivers", "python"),
    writes=("checks",),
    version=3,
    run=run,
    timeout=600,
    check=True,
)
