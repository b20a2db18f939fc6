"""Reports of models as files beside the cases: `evals/reports/KIND-MODEL.json`, and the same as a page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.evaluation.attempt import Setting
from mcpfactory_pipeline.evaluation.model_page import model_page
from mcpfactory_pipeline.evaluation.model_report import ModelReport, hash_cases, hash_tools, read_report
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase

__all__ = ["PROPOSALS", "REPORTS", "judge_recorded", "load_report", "read_reports", "report_file", "write_report"]

REPORTS: Final = Path("evals", "reports")
PROPOSALS: Final = Path("evals", "proposals", "proposed.yaml")
"""Cases that nobody has accepted: not beside those that are asked."""

Tool = Mapping[str, Any]

_OTHER: Final = re.compile(r"[^A-Za-z0-9.]+")


def report_file(folder: Path, model: str) -> Path:
    """Return where the report of a model is, for the server in `folder`."""
    return folder / REPORTS / f"{_OTHER.sub('-', model).strip('-.')}.json"


def write_report(folder: Path, report: ModelReport) -> Path:
    """Write the report and its page, and return the file of the report."""
    file = report_file(folder, report.model)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, (json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n").encode())
    replace_file(file.with_suffix(".md"), model_page(report).encode())
    return file


def load_report(file: Path) -> ModelReport:
    """Return the report in a file.

    Raises:
        StateError: it cannot be read, or is none.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StateError(f"{file} cannot be read: {error.strerror}", hint="name a file of evals/reports") from error
    return read_report(text, str(file))


def read_reports(folder: Path) -> list[ModelReport]:
    """Return the reports of the server in `folder`, by the names of their files.

    Raises:
        StateError: one cannot be read.
    """
    return [load_report(file) for file in sorted((folder / REPORTS).glob("*.json"))]


def judge_recorded(
    folder: Path,
    server: str,
    model: str,
    mode: str,
    *,
    tools: Sequence[Tool],
    cases: Sequence[EvaluationCase],
    endpoint: str = "",
) -> dict[str, Any]:
    """Return what the recorded report of a model says of a tool list and of cases.

    That is `rate`, `lower`, `upper`, `questions` and `asked`; or `why` it says nothing of them: it is of others, or of another
    `endpoint` than the workspace names.

    Raises:
        StateError: the report cannot be read.
    """
    file, setting = report_file(folder, model), Setting(mode=mode)
    if not file.is_file():
        return {"why": "no report is recorded"}
    report = load_report(file)
    if (report.server, report.model) != (server, model):
        return {"why": f"its report is of {report.server} and {report.model}"}
    if report.tools != hash_tools(tools):
        return {"why": "its report is of another tool list"}
    if report.cases != hash_cases(cases):
        return {"why": "its report is of other cases"}
    if endpoint and report.endpoint != endpoint:
        return {"why": "its report is of another endpoint than the workspace names"}
    if setting not in report.lists:
        return {"why": f"its report has nothing of {setting.title}"}
    if missing := report.missing(setting):
        return {"why": f"in its report {missing} questions have no answer"}
    return {**report.rate(setting).to_json(), "asked": report.asked.isoformat()}
