"""What `validate` keeps of a report, and what of it goes into the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.plan.stage import StageInputs

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.report import Report

__all__ = ["keep_report", "summarise"]

_CRITICAL: Final = 5  # the worst severity (docs/reference/rules.md)


def keep_report(inputs: StageInputs, report: Report, tools: Sequence[Any]) -> None:
    """Write a report in each form beside the candidate, and its tool list, the contract; the text goes to the log."""
    from mcpfactory_pipeline.checks.formats import FORMATS  # noqa: PLC0415 - heavy, and only one job needs it

    inputs.keep.mkdir(parents=True, exist_ok=True)
    for form in FORMATS.values():
        text = form.write(report).replace(str(inputs.root), ".")
        (inputs.keep / form.file).write_text(text, encoding="utf-8")
    version = inputs.candidate.version if inputs.candidate else ""
    (inputs.keep / contract.FILE).write_text(contract.contract_text(tools, version), encoding="utf-8")
    print(report.to_text())  # noqa: T201 - stdout of a job is the log of its stage


def summarise(
    inputs: StageInputs, report: Report, tools: Sequence[Any], *, level: str, gates: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Return how the checks ended in a line, and the facts for the state; `gates` are those that are closed."""
    candidate = inputs.candidate.id if inputs.candidate else ""
    summary = {
        "score": report.score,
        "findings": len(report.findings),
        "critical": sum(finding.severity == _CRITICAL for finding in report.findings),
        **_waived(report),
        "gates": list(gates),
        "measured": dict(report.measured),
        "isolation": level,
        "contract": contract.count_breaking_changes(tools, inputs.artifacts / inputs.server, candidate),
    }
    return _message(report, gates), summary


def _waived(report: Report) -> dict[str, Any]:
    """Return how many findings were waived, and of which rules; nothing where none was."""
    rules = sorted({entry.rule for entry in report.waived})
    return {"waived": len(report.waived), "waived_rules": rules} if rules else {}


def _message(report: Report, gates: Sequence[str]) -> str:
    closed = f"; closed: {', '.join(gates)}" if gates else ""
    refused = sum(one.state == "not allowed" for one in report.waivers)
    ignored = f"; {pluralize(refused, 'waiver')} not allowed by policy" if refused else ""
    found = pluralize(len(report.findings), "finding")
    return f"score {report.score}{report.waived_words}, {found}{closed}{ignored}"
