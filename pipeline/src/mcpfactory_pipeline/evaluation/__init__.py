"""Cases for which a right answer is known, in YAML beside a server: does a question lead to the right tools and calls."""

from mcpfactory_pipeline.evaluation.evaluate import evaluate_server
from mcpfactory_pipeline.evaluation.evaluation import CaseOutcome, Evaluation
from mcpfactory_pipeline.evaluation.summary import case_rows, found_rows, markdown_page
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, ExpectedCall, read_cases

__all__ = [
    "CaseOutcome",
    "Evaluation",
    "EvaluationCase",
    "ExpectedCall",
    "case_rows",
    "evaluate_server",
    "found_rows",
    "markdown_page",
    "read_cases",
]
