"""One report in every form: each says the same, can be read by the program that it is for, and carries no markup of a server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft7Validator

from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.report_formats import FORMATS
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.workspace.waivers import Waiver
from tests.pipeline.checks.sarif_schema import SARIF
from tests.pipeline.checks.test_rules import TOOL, broken_tool, call, judged, observed
from tests.subtest_table import parametrize_subtests

EVIL = '</script><script>alert(1)</script> ]]> | `x` @everyone [a](http://evil.example) \x00\x1b[31m "quoted"'
TODAY = date(2030, 1, 15)


def sick() -> ValidationReport:
    """A report with findings, one of them hostile, rules that were not checked, a waiver in force and one that expired."""
    mute = broken_tool(lambda tool: tool.pop("description"))
    hostile = broken_tool(lambda tool: tool.update(name=EVIL, description="Count the books."))
    waivers = (
        Waiver(rule="descriptions.tool", person="Ada <ada@example.org>", reason=EVIL, until=TODAY, tool="search_books"),
        Waiver(rule="schemas.names-valid", person="Grace", reason="expired", until=TODAY - timedelta(days=1)),
    )
    evidence = observed(mute, hostile, calls=(), missing={"tools/call": "nobody could"}, server={"name": EVIL})
    report = evaluate_rules(evidence, RULES, target=EVIL, waivers=waivers, today=TODAY)
    assert report.findings
    assert report.not_checked
    assert report.waived
    return report


@parametrize_subtests("name, report", product(FORMATS, [sick(), judged(observed(TOOL))]))
def test_every_form_says_the_score_and_is_the_same_twice(name: str, report: ValidationReport) -> None:
    text = FORMATS[name].write(report)
    assert text == FORMATS[name].write(report)
    assert text.endswith("\n")
    if name != "badge" or report.passed:
        assert str(report.score) in text


@parametrize_subtests("name", ["text", "json", "junit", "sarif", "html", "markdown"])
def test_every_form_but_the_badge_names_each_broken_rule_and_each_that_was_not_checked(name: str) -> None:
    report, text = sick(), FORMATS[name].write(sick())
    wanted = {finding.rule for finding in report.findings} | {one.rule for one in report.not_checked}
    wanted |= {one.rule for one in report.waived}
    assert {rule for rule in wanted if rule not in text} == set()


@parametrize_subtests("name", ["text", "json", "junit", "sarif", "html", "markdown"])
def test_every_form_but_the_badge_tells_what_follows_from_a_finding(name: str) -> None:
    text = FORMATS[name].write(judged(observed(TOOL, calls=(call("NOT IMPLEMENTED", origin="case"),))))
    assert "the tool answers that it is not implemented" in text.replace("\\", "")


def test_junit_has_a_case_for_each_rule_and_counts_what_failed() -> None:
    report = sick()
    suite = ET.fromstring(FORMATS["junit"].write(report))[0]
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert sorted(case.get("name") for case in suite.iter("testcase")) == sorted(rule.id for rule in RULES)
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {finding.rule for finding in report.findings}
    assert suite.get("failures") == str(len(failed))
    assert {name for name, case in cases.items() if case.find("error") is not None} == {
        one.rule for one in report.not_checked
    }
    waived = cases["descriptions.tool"].find("skipped")
    assert waived is not None
    assert str(waived.get("message")).startswith("waived by Ada")


@pytest.mark.parametrize("report", [sick(), judged(observed(TOOL))], ids=["sick", "healthy"])
def test_sarif_keeps_to_its_schema(report: ValidationReport) -> None:
    log = json.loads(FORMATS["sarif"].write(report))
    assert [error.message for error in Draft7Validator(SARIF).iter_errors(log)] == []


def test_sarif_says_where_a_tool_is_written_and_suppresses_what_is_waived() -> None:
    places = {"": ("servers/a/src/server.py", 3), "search_books": ("a b.py", 7), "project": ("pyproject.toml", 1)}
    report = sick()
    nameless = replace(report.findings[0], rule="packaging.metadata", where="project.license")
    argument = replace(report.findings[0], rule="descriptions.arguments", where="search_books.query")
    located = replace(report, locations=places, findings=(*report.findings, nameless, argument, argument))
    (run,) = json.loads(FORMATS["sarif"].write(located))["runs"]
    by_rule = {result["ruleId"]: result for result in run["results"]}

    def place(rule: str) -> tuple[str, int]:
        (location,) = by_rule[rule]["locations"]
        physical = location["physicalLocation"]
        return physical["artifactLocation"]["uri"], physical["region"]["startLine"]

    assert place("descriptions.tool") == place("descriptions.arguments") == ("a%20b.py", 7)
    assert place("packaging.metadata") == ("pyproject.toml", 1)
    assert place("schemas.names-valid") == ("servers/a/src/server.py", 3)  # a tool that no source names
    assert [one["kind"] for one in by_rule["descriptions.tool"]["suppressions"]] == ["external"]
    assert by_rule["schemas.names-valid"]["suppressions"] == []
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert isinstance(result["suppressions"], list)
    fingerprints = [result["partialFingerprints"]["ruleAndPlace/v1"] for result in run["results"]]
    assert len(fingerprints) == len(set(fingerprints))


class Page(HTMLParser):
    """The elements of a page, and what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [str(value) for name, value in attrs if name in {"src", "href", "srcset", "action", "data"}]
        self.references += [name for name, _ in attrs if name.startswith("on")]


@pytest.mark.parametrize("name", ["html", "badge"])
def test_a_page_and_a_badge_stand_alone_and_run_nothing(name: str) -> None:
    page = Page()
    page.feed(FORMATS[name].write(sick()))
    assert "script" not in page.tags
    assert page.references == []
    ET.fromstring(FORMATS["badge"].write(sick()))


def test_markdown_has_no_markup_of_the_server_outside_of_its_proofs() -> None:
    text = re.sub(r"```json\n.*?\n```", "", FORMATS["markdown"].write(sick()), flags=re.DOTALL)
    assert "@everyone" not in text
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
