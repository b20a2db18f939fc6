"""Every animal is caught by the rule that it names, and healthy servers are left alone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from mcpfactory_pipeline.checks import RULES, Report, Target, eras, validate
from tests.zoo.animals import animals

ROOT = Path(__file__).parents[2]
ANIMALS = animals()
SICK = [name for name, kind in ANIMALS.items() if kind.rule]
CASES = Path(__file__).with_name("cases.json")
HEALTHY = [name for name, kind in ANIMALS.items() if not kind.rule]


def examined(name: str) -> Report:
    kind = ANIMALS[name]
    revisions = (",".join(eras.HANDSHAKES), ",".join(eras.MODERNS))
    command = (sys.executable, "-S", "-m", "tests.zoo", name, *revisions)
    environ = {"ZOO_API_KEY": "key-of-the-zoo-1234"}
    return asyncio.run(
        validate(Target(command=command, cwd=ROOT, environ=environ, cases=CASES if kind.with_cases else None))
    )


@pytest.mark.parametrize("name", SICK)
def test_every_sick_animal_is_caught_by_the_rule_that_it_names(name: str) -> None:
    report = examined(name)
    kind = ANIMALS[name]
    found = [finding for finding in report.findings if finding.rule == kind.rule]
    assert found, report.to_text()
    assert all(finding.hint and finding.source for finding in found)
    assert {finding.rule for finding in report.findings} == {kind.rule, *kind.companions}, report.to_text()
    gates = {rule.id for rule in RULES if rule.gate}
    assert report.passed is gates.isdisjoint({kind.rule, *kind.companions})
    assert report.score < 100


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_animals_get_no_finding_at_all(name: str) -> None:
    report = examined(name)
    assert report.findings == (), report.to_text()
    assert report.not_checked == ()
    assert (report.score, report.passed) == (100, True)


def test_every_rule_has_an_animal() -> None:
    slow = {"startup.in-time"}  # ten seconds are too long for a test; tests/pipeline/checks has it as a pure function
    assert {rule.id for rule in RULES} - {kind.rule for kind in ANIMALS.values()} == slow


def test_no_secret_of_the_environment_is_in_any_report() -> None:
    report = examined("Blabbermouth")
    assert "[ZOO_API_KEY]" in report.to_text()
    assert "key-of-the-zoo" not in report.to_text() + str(report.to_json())


def test_a_server_that_answers_nothing_but_not_implemented_is_not_promotable() -> None:
    report = examined("NotImplementedZoo")
    assert not report.passed
    assert "behaviour.tools-work" in report.failed_gates
    assert "NOT IMPLEMENTED" in report.to_text()


def test_the_same_server_gets_the_same_report_twice() -> None:
    assert examined("HalfFinished").to_json() == examined("HalfFinished").to_json()


def test_a_server_on_the_official_sdk_is_promotable_with_tolerated_deviations_only() -> None:
    report = asyncio.run(validate(Target(command=(sys.executable, "tests/zoo/official.py"), cwd=ROOT)))
    assert report.passed, report.to_text()
    assert report.not_checked == ()
    # Each is a known deviation of that SDK: unknown tools are isError, bad cursors and bad lines are ignored.
    assert {(f.rule, f.severity) for f in report.findings} <= {
        ("legacy.malformed", 1),
        ("legacy.unknown-tool", 1),
        ("legacy.bad-cursor", 1),
    }
    assert report.score >= 97
