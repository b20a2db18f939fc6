"""One defect, one finding: what follows from another finding is told under it, and nothing that refuses a server is lost."""

from __future__ import annotations

from datetime import date
from graphlib import TopologicalSorter
from typing import Any

from mcpfactory_pipeline.checks.evidence import RecordedCall, Session
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.rule_evaluation import ROOT_CAUSES, evaluate_rules, rule_subject_of
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.workspace.waivers import Waiver
from tests.pipeline.checks.test_rules import TOOL, broken_tool, exchange, judged, observed
from tests.subtest_table import parametrize_subtests

GATES = {rule.id: rule.gate for rule in RULES}
PLAIN = {name: part for name, part in TOOL.items() if name != "outputSchema"}
OTHER = {**PLAIN, "name": "find_books", "description": "Find books by how they begin, at most 20."}


def call(tool: str, *, wrong: bool = True) -> RecordedCall:
    """A call by a case that the API refused because the request was another one."""
    result = {"content": [{"type": "text", "text": "the API answered 400"}], "isError": wrong}
    sent = ({"method": "GET", "path": "/shelf", "query": ""},)
    mismatch = ("sent GET /shelf instead of GET /books",)
    return RecordedCall(tool, exchange("tools/call", result), "case", "case 1", sent, mismatch if wrong else ())


def astray(*waivers: Waiver) -> ValidationReport:
    calls = (call("search_books"), call("find_books", wrong=False))
    evidence = observed(PLAIN, OTHER, calls=calls, with_cases=True, missing={"failures": "nobody tried"})
    return evaluate_rules(evidence, RULES, waivers=waivers, today=date(2030, 1, 1))


def test_a_call_that_fails_because_its_request_was_wrong_is_told_under_that() -> None:
    report = astray()
    (finding,) = report.findings
    assert finding.rule == "tool-calls.api-requests"
    assert finding.follows == ("tool-calls.cases at search_books: case 1: returned an error: 'the API answered 400'",)
    assert report.not_applicable["tool-calls.cases"] == "cannot be judged because of tool-calls.api-requests"
    assert "tool-calls.cases" not in report.checked


def test_a_server_that_does_not_start_has_one_finding_and_no_rule_counts_as_not_passed() -> None:
    dead = Session("session 2000", answered=False, problem="ended with code 1")
    nothing: dict[str, Any] = {"lifecycles": frozenset(), "revisions": (), "handshakes": {}, "lists": {}, "probes": {}}
    report = judged(observed(sessions=(dead,), calls=(), missing={"*": "it ended"}, **nothing))
    assert report.failed_gates == ("process.starts",)
    assert report.not_checked == ()
    assert report.score == 0
    assert "rules cannot be judged" in report.to_text()


def test_what_a_rule_says_of_several_sessions_is_one_finding_and_of_several_arguments_is_not() -> None:
    loud = [Session(f"session {n}", answered=True, ended_after=20, pollution=["hello"]) for n in range(5)]
    told = [one for one in judged(observed(TOOL, sessions=tuple(loud))).findings if one.rule == "process.stdout"]
    assert [one.where for one in told] == ["session 0, session 1, session 2 and 2 more"]
    mute = broken_tool(
        lambda tool: tool["inputSchema"]["properties"].update(a={"type": "string"}, b={"type": "string"})
    )
    places = [one.where for one in judged(observed(mute)).findings if one.rule == "descriptions.arguments"]
    assert places == ["search_books.a", "search_books.b"]


def test_the_table_names_rules_that_exist_has_no_circle_and_hides_no_gate_behind_what_is_none() -> None:
    edges: dict[str, set[str]] = {}
    for row in ROOT_CAUSES:
        named = [
            rule
            for rule in GATES
            for one in row.effects
            if rule == one or (one[-1:] in ("", ".") and rule.startswith(one))
        ]
        assert row.cause in GATES
        assert named, row
        assert GATES[row.cause] or not any(GATES[rule] for rule in named), row
        if row.match != "unchecked":
            edges.setdefault(row.cause, set()).update(named)
    TopologicalSorter(edges).prepare()


@parametrize_subtests(
    "where, subject",
    [
        ("add", "add"),
        ("add inputSchema/properties", "add"),
        ("add numbers", "add numbers"),  # a tool's name may have a blank, and is another tool than `add`
        ("add numbers description", "add numbers"),
        ("session 2000-01-01", "session 2000-01-01"),
        ("", ""),
    ],
)
def test_a_place_is_about_the_longest_tool_that_it_names(where: str, subject: str) -> None:
    assert rule_subject_of(where, {"add", "add numbers"}) == subject
