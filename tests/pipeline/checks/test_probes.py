"""Tables of probes and rules: unique names, and a rule for each expected answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_pipeline.checks import probes, rules
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable
from mcpfactory_pipeline.checks.transport import http_probes

TABLES = {"messages": probes._ROWS, "HTTP requests": http_probes._ROWS}
RULES_TEXT = "".join(file.read_text(encoding="utf-8") for file in Path(rules.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("table", TABLES)
def test_probe_names_are_unique(table: str) -> None:
    names = [row.name for row in TABLES[table]]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("table", TABLES)
def test_every_expected_answer_has_a_rule(table: str) -> None:
    unjudged = [row.name for row in TABLES[table] if row.expects and f'"{row.name}"' not in RULES_TEXT]
    assert unjudged == []


def test_rule_over_subjects_counts_each_place_once() -> None:
    table = RuleTable()
    texts = {"statement": "Stdio.", "source": "here", "hint": "none"}

    def letters(_evidence: Evidence) -> RuleSubjects[str]:
        return RuleSubjects("aab", 5, once=True)

    @table.rule("zoo.letters", 3, over=letters, **texts)
    def _check(letter, evidence):
        yield Fault(evidence.transport, letter)

    faults = (Fault("stdio", "a"), Fault("stdio", "b"))
    assert table[0].check(Evidence()) == RuleOutcome(faults, subjects=5)
