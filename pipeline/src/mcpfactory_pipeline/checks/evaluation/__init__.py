"""Evaluation cases with known answers, in YAML next to a server.

They check that a search and a model select the right tools and calls.
"""

from mcpfactory_pipeline.checks.evaluation.ask import AskOptions, ask_cases
from mcpfactory_pipeline.checks.evaluation.case_value import LISTS, CaseWorth, found_worth, model_worth
from mcpfactory_pipeline.checks.evaluation.competition import ConfusedPair, confused_pairs
from mcpfactory_pipeline.checks.evaluation.evaluation import CaseOutcome, Evaluation, evaluate_server
from mcpfactory_pipeline.checks.evaluation.judgement import Attempt, Setting
from mcpfactory_pipeline.checks.evaluation.model import find_endpoint
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport, read_prices
from mcpfactory_pipeline.checks.evaluation.offer import server_tools
from mcpfactory_pipeline.checks.evaluation.pages import case_rows, found_rows, markdown_page
from mcpfactory_pipeline.checks.evaluation.propose import example_calls, proposals_text, propose_cases
from mcpfactory_pipeline.checks.evaluation.recorded import (
    MODES,
    PROPOSALS,
    load_report,
    read_evaluation,
    read_reports,
    write_report,
)
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, ExpectedCall, read_cases

__all__ = [
    "LISTS",
    "MODES",
    "PROPOSALS",
    "AskOptions",
    "Attempt",
    "CaseOutcome",
    "CaseWorth",
    "ConfusedPair",
    "Evaluation",
    "EvaluationCase",
    "ExpectedCall",
    "ModelReport",
    "Setting",
    "ask_cases",
    "case_rows",
    "confused_pairs",
    "evaluate_server",
    "example_calls",
    "find_endpoint",
    "found_rows",
    "found_worth",
    "load_report",
    "markdown_page",
    "model_worth",
    "proposals_text",
    "propose_cases",
    "read_cases",
    "read_evaluation",
    "read_prices",
    "read_reports",
    "server_tools",
    "write_report",
]
