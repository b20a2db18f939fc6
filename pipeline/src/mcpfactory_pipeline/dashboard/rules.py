"""The rules of `validate`, from the table of checks: what each demands, where that comes from, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from mcpfactory_pipeline.checks.reference import FAMILIES
from mcpfactory_pipeline.checks.report import RULES_VERSION
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rules import RULES

__all__ = ["RuleFamily", "RuleView", "RulesPage", "rules_page"]


@dataclass(frozen=True, slots=True)
class RuleView:
    """One rule. It applies to servers that speak a revision from `since` to `until`, where these are not ""."""

    id: str
    severity: int
    gate: bool
    statement: str
    source: str
    hint: str
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class RuleFamily:
    """Rules about one thing."""

    name: str
    title: str
    rules: tuple[RuleView, ...]


@dataclass(frozen=True, slots=True)
class RulesPage:
    """All rules, in the order of the table."""

    workspace: str
    version: int
    total: int
    families: tuple[RuleFamily, ...]


def rules_page(workspace: str) -> RulesPage:
    """Return the rules of this version of the factory."""
    families = tuple(
        RuleFamily(name, FAMILIES[name], tuple(map(_rule, rules)))
        for name, rules in groupby(RULES, key=lambda rule: rule.family)
    )
    return RulesPage(workspace, RULES_VERSION, len(RULES), families)


def _rule(rule: Rule) -> RuleView:
    return RuleView(rule.id, rule.severity, rule.gate, rule.statement, rule.source, rule.hint, rule.since, rule.until)
