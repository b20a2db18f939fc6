"""One report in every form: each says the same, can be read by the program that it is for, and carries no markup of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import product
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft7Validator

from mcpfactory_pipeline.checks.report import Finding, ValidationReport
from mcpfactory_pipeline.checks.report_formats import FORMATS
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.workspace.waivers import Waiver
from tests.pipeline.checks.code_scanning import upload_faults
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
    assert upload_faults(log) == []


def sarif_run(report: ValidationReport) -> Any:
    (run,) = json.loads(FORMATS["sarif"].write(report))["runs"]
    return run


def test_sarif_of_every_rule_can_be_uploaded() -> None:
    findings = [Finding(one.id, one.severity, one.gate, EVIL, "", one.hint, one.source) for one in RULES]
    report = replace(sick(), findings=tuple(findings), checked=tuple(one.id for one in RULES))
    assert upload_faults(json.loads(FORMATS["sarif"].write(report))) == []


# What GitHub requires → a change of a log that breaks it; `run` is the run, `rule` and `result` its first ones.
BROKEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tool": lambda run, rule, result: run["tool"]["driver"].update(version=""),
    "number of results": lambda run, rule, result: run["results"].extend([result] * 5_000),
    "ids of rules": lambda run, rule, result: run["tool"]["driver"]["rules"].append(rule),
    "worst results": lambda run, rule, result: run["results"].insert(0, {**result, "level": "note"}),
    "shortDescription": lambda run, rule, result: rule.pop("shortDescription"),
    "fullDescription": lambda run, rule, result: rule.update(fullDescription={"text": "x" * 1025}),
    "help": lambda run, rule, result: rule.update(help={"text": ""}),
    "name": lambda run, rule, result: rule.pop("name"),
    "level": lambda run, rule, result: rule.update(defaultConfiguration={"level": "none"}),
    "precision": lambda run, rule, result: rule["properties"].update(precision="perfect"),
    "tags": lambda run, rule, result: rule["properties"].update(tags=[str(number) for number in range(21)]),
    "security-severity": lambda run, rule, result: rule["properties"].update({"security-severity": "9.0"}),
    "level and message": lambda run, rule, result: result.update(message={"text": ""}),
    "ruleIndex": lambda run, rule, result: result.update(ruleIndex=-1),
    "primaryLocationLineHash": lambda run, rule, result: result.update(partialFingerprints={"other/v1": "a" * 32}),
    "fingerprints are not unique": lambda run, rule, result: run["results"].insert(0, result),
    "location": lambda run, rule, result: result["locations"][0].pop("physicalLocation"),
    "uri /": lambda run, rule, result: _artifact(result).update(uri="/srv/README.md"),
    "uri file": lambda run, rule, result: _artifact(result).update(uri="file:///srv/README.md"),
    "uri ..": lambda run, rule, result: _artifact(result).update(uri="../README.md"),
    "uri a\\b": lambda run, rule, result: _artifact(result).update(uri="a\\b.py"),
    "uriBaseId": lambda run, rule, result: _artifact(result).pop("uriBaseId"),
    "region": lambda run, rule, result: result["locations"][0]["physicalLocation"]["region"].update(startLine=0),
}


def _artifact(result: Any) -> Any:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


@parametrize_subtests("fault", BROKEN)
def test_each_broken_requirement_of_an_upload_is_noticed(fault: str) -> None:
    log = json.loads(FORMATS["sarif"].write(sick()))
    (run,) = log["runs"]
    BROKEN[fault](run, run["tool"]["driver"]["rules"][0], run["results"][0])
    assert fault in " ".join(upload_faults(log))


def test_sarif_keeps_the_worst_results_within_the_limits_of_an_upload() -> None:
    minor = replace(sick().findings[0], severity=1, gate=False, where="minor")
    gate = replace(minor, severity=5, gate=True, where="gate")
    results = sarif_run(replace(sick(), findings=(*[minor] * 6_000, gate)))["results"]
    assert len(results) == 5_000
    assert results[0]["properties"]["gate"]
    long = replace(minor, evidence={"response": "x" * 1_000_000})
    assert len(sarif_run(replace(sick(), findings=(*[long] * 20, gate)))["results"]) == 10


def test_sarif_says_where_a_tool_is_written_and_suppresses_what_is_waived() -> None:
    places = {"": ("servers/a/src/server.py", 3), "search_books": ("a b.py", 7), "project": ("pyproject.toml", 1)}
    report = sick()
    nameless = replace(report.findings[0], rule="packaging.metadata", where="project.license")
    argument = replace(report.findings[0], rule="descriptions.arguments", where="search_books.query")
    located = replace(report, locations=places, findings=(*report.findings, nameless, argument, argument))
    run = sarif_run(located)
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
    moved = replace(located, locations={about: (file, line + 9) for about, (file, line) in places.items()})
    assert [one["partialFingerprints"] for one in sarif_run(moved)["results"]] == [
        one["partialFingerprints"] for one in run["results"]
    ]


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
