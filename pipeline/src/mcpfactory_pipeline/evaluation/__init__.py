"""Cases for which a right answer is known, in YAML beside a server: does a question, and does a model, lead to the right tools and calls."""

from mcpfactory_pipeline.evaluation.ask import AskOptions, ask_cases
from mcpfactory_pipeline.evaluation.attempt import Attempt, Setting
from mcpfactory_pipeline.evaluation.evaluate import evaluate_server
from mcpfactory_pipeline.evaluation.evaluation import CaseOutcome, Evaluation
from mcpfactory_pipeline.evaluation.model import find_endpoint
from mcpfactory_pipeline.evaluation.model_report import ModelReport, read_prices
from mcpfactory_pipeline.evaluation.offer import server_tools
from mcpfactory_pipeline.evaluation.propose import example_calls, proposals_text, propose_cases
from mcpfactory_pipeline.evaluation.recorded import PROPOSALS, load_report, read_reports, write_report
from mcpfactory_pipeline.evaluation.settings import MODES, read_evaluation
from mcpfactory_pipeline.evaluation.suggest import ConfusedPair, confused_pairs
from mcpfactory_pipeline.evaluation.summary import case_rows, found_rows, markdown_page
from mcpfactory_pipeline.evaluation.worth import LISTS, CaseWorth, found_worth, model_worth
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
