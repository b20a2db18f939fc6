"""Validation of MCP servers: rules over observations, a score, and a report with evidence.

`validate` observes a server and evaluates the rules; `evaluate` and `RULES` do only the second half.
"""

from mcpfactory_pipeline.checks.examine import validate
from mcpfactory_pipeline.checks.report import RULES_VERSION, Finding, NotChecked, Report
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.target import ExamineError, ValidationTarget

__all__ = [
    "RULES",
    "RULES_VERSION",
    "ExamineError",
    "Finding",
    "NotChecked",
    "Report",
    "Rule",
    "ValidationTarget",
    "validate",
]
