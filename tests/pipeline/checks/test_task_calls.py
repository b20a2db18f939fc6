from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcpfactory_pipeline.checks.exchange import ValidationTarget
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.task_calls import task_status
from mcpfactory_pipeline.checks.validation import observe_server
from tests.pipeline.checks import task_server


def test_tasks_of_the_runtime_are_called_canceled_and_listed_without_findings() -> None:
    target = ValidationTarget(command=(sys.executable, str(Path(task_server.__file__))))
    evidence, _ = asyncio.run(observe_server(target))
    report = evaluate_rules(evidence, RULES)
    assert report.findings == (), report.to_text()
    assert report.not_checked == ()
    assert {run.tool for run in evidence.task_runs} == {"plan_walk", "count_animals"}
    statuses = [[task_status(step) for step in run.steps if task_status(step)] for run in evidence.task_runs]
    assert ["working", "input_required", "completed", "completed"] in statuses
    assert ["working", "cancelled", "cancelled", "cancelled"] in statuses
    assert evidence.task_list is not None
    assert len(evidence.task_list[0].items) == len(evidence.task_runs)
