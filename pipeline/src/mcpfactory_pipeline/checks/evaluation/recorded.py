"""Recorded reports of models, and the settings that say which of them count."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import unknown_field
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.checks.evaluation.judgement import Setting
from mcpfactory_pipeline.checks.evaluation.model import find_endpoint
from mcpfactory_pipeline.checks.evaluation.model_report import (
    ModelReport,
    hash_cases,
    hash_tools,
    read_prices,
    read_report,
)
from mcpfactory_pipeline.checks.evaluation.pages import model_page
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

REPORTS: Final = Path("evals", "reports")
PROPOSALS: Final = Path("evals", "proposals", "proposed.yaml")
"""File of unreviewed cases, separate from those that are asked."""

Tool = Mapping[str, Any]

_OTHER: Final = re.compile(r"[^A-Za-z0-9.]+")


def report_file(folder: Path, model: str) -> Path:
    """Return the path of a model's report for the server in `folder`."""
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
        StateError: the file is unreadable or invalid.
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
    """Return the result of a model's recorded report for a tool list and cases.

    That is `rate`, `lower`, `upper`, `questions` and `asked`; or `why` the report does not apply: it is about other
    tools or cases, or about another `endpoint` than the workspace names.

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


MODES: Final = ("full", "search")
_FIELDS: Final = ("models", "mode", "endpoints")
_ENDPOINT: Final = ("url", "key", "read", "written", "cached", "currency")
_ANY_KEY: Final = "none"


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Model settings of a workspace.

    Attributes:
        models: whose recorded reports count for the gate `min_pass_rate`; each of them must open it.
        mode: the mode whose results count.
        endpoints: model → `url`, `key` (the variable with the key), prices per million tokens.
    """

    models: tuple[str, ...] = ()
    mode: str = "full"
    endpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_evaluation(workspace: Workspace) -> EvaluationSettings:
    """Return the settings, which are empty without a table.

    Raises:
        ConfigError: a setting is invalid.
    """
    table = workspace.settings.get("evaluation", {})
    if not isinstance(table, dict):
        raise setting_error("pipeline.evaluation is no table", "write [pipeline.evaluation] on its own line")
    if found := unknown_field(table, _FIELDS, "pipeline.evaluation"):
        raise setting_error(*found)
    models, mode, endpoints = table.get("models", []), table.get("mode", "full"), table.get("endpoints", {})
    if not isinstance(models, list) or not all(isinstance(one, str) for one in models):
        raise setting_error("pipeline.evaluation: models is no list of names", 'models = ["openai:NAME"]')
    if mode not in MODES:
        raise setting_error(f"pipeline.evaluation: mode is {mode!r}", f"one of {', '.join(MODES)}")
    if not isinstance(endpoints, dict) or not all(isinstance(one, dict) for one in endpoints.values()):
        raise setting_error(
            "pipeline.evaluation: endpoints is no table of tables", '[pipeline.evaluation.endpoints."openai:NAME"]'
        )
    for name, one in endpoints.items():
        if found := unknown_field(one, _ENDPOINT, f"the endpoint of {name}"):
            raise setting_error(*found)
        read_prices(one)
    for name in (*models, *endpoints):
        find_endpoint(name, {"url": "http://localhost", "key": _ANY_KEY}, environ={})  # is it a name?
    return EvaluationSettings(tuple(models), mode, endpoints)
