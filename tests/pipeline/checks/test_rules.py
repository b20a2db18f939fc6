"""Rules as pure functions: one observation broken in one way, one rule that says so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_pipeline.checks.evidence import Evidence, Listing, RecordedCall, Session, Transport
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, WireExchange
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.rule_evaluation import COSTS, DESCRIPTIONS, evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from tests.subtest_table import parametrize_subtests

TOOL: dict[str, Any] = {
    "name": "search_books",
    "description": "Search the catalogue by title or author and return at most 20 books.",
    "inputSchema": {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words of the title or the author."}},
        "required": ["query"],
    },
    "outputSchema": {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]},
}


def exchange(method: str, result: Any = None, error: Any = None, params: Any = None) -> WireExchange:
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    answer = {"error": error} if error else {"result": result}
    return WireExchange(sent, {"jsonrpc": "2.0", "id": 1, **answer})


def observed(*tools: Any, **changes: Any) -> Evidence:
    """What a healthy server shows, with these tools."""
    latest = LATEST_HANDSHAKE
    hello = {"protocolVersion": latest, "capabilities": {"tools": {}}, "serverInfo": {"name": "zoo", "version": "1"}}
    listed = exchange("tools/list", {"tools": list(tools)})
    good = exchange("tools/call", {"content": [{"type": "text", "text": "2"}], "structuredContent": {"total": 2}})
    traffic = changes.pop("traffic", (listed, good))
    healthy = Evidence(
        sessions=[
            Session("session", answered=True, ended_after=20, exchanges=list(traffic)),
            Session("told to end", answered=True, ended_after=20, terminated=True),
        ],
        handshakes={latest: exchange("initialize", hello)},
        second_process=exchange("initialize", hello),
        revisions=(latest,),
        lifecycles=frozenset({"legacy"}),
        capabilities={"tools": {}},
        probes={
            "ping": exchange("ping", {}),
            "unescaped-text": exchange("ping", {}),
            "unknown-method": exchange("x", error={"code": -32601, "message": "no such method"}),
            "malformed": WireExchange(
                "{", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}
            ),
            "after-malformed": exchange("ping", {}),
            "large": exchange("ping", {}),
            "after-not-utf-8": exchange("ping", {}),
            "complete-undeclared": exchange("x", error={"code": -32601, "message": "no such method"}),
            "unknown-tool": exchange("tools/call", error={"code": -32602, "message": "no such tool"}),
            "invalid-cursor": exchange("tools/list", error={"code": -32602, "message": "no such cursor"}),
            "unknown-version": exchange("initialize", hello),
            "no-version": exchange("initialize", error={"code": -32602, "message": "protocolVersion is missing"}),
            "early-ping": exchange("ping", {}),
            "array-params": exchange("tools/call", error={"code": -32602, "message": "params"}),
            "not-json-rpc": exchange("", error={"code": -32600, "message": "no message"}),
            "unknown-members": exchange("tools/list", {"tools": list(tools)}),
            "list-again": exchange("tools/list", {"tools": list(tools)}),
            **{
                probe: WireExchange("", problem="no answer")
                for probe in ("notification", "late-cancellation", "response")
            },
        },
        lists={"tools/list": Listing("tools/list", tuple(tools), (listed,))},
        calls=(RecordedCall("search_books", good, "guess"),),
        secrets={"API_KEY": "canary-value"},
    )
    return replace(healthy, **changes)


def judged(evidence: Evidence) -> ValidationReport:
    return evaluate_rules(evidence, RULES)


def failed(report: ValidationReport) -> set[str]:
    return {finding.rule for finding in report.findings}


def broken_tool(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    tool = copy.deepcopy(TOOL)
    change(tool)
    return tool


def test_a_healthy_server_gets_every_point() -> None:
    report = judged(observed(TOOL))
    assert report.findings == ()
    assert report.not_checked == ()
    assert (report.score, report.passed) == (100, True)


# Ways that no server of tests/broken_servers is broken in.
BROKEN_TOOLS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no inputSchema": (lambda tool: tool.pop("inputSchema"), "schemas.tool-shape"),
    "a schema nested without end": (lambda tool: tool.update(inputSchema=nested(60)), "schemas.input-valid"),
    "a reference to another file": (
        lambda tool: tool["inputSchema"]["properties"].update(more={"$ref": "common.json#/Book"}),
        "schemas.refs-local",
    ),
    "blanks as description": (lambda tool: tool.update(description="  "), "descriptions.tool"),
    "text from right to left": (
        lambda tool: tool.update(description="Search \u202eskoob\u202c."),
        "security.hidden-text",
    ),
}


SAYS_HIDDEN = "Search \u202eskoob\u202c."
CONTENTS = {
    "prompt": (
        "get-prompt",
        exchange(
            "prompts/get", {"messages": [{"content": {"type": "text", "text": SAYS_HIDDEN}}]}, params={"name": "p"}
        ),
    ),
    "resource": (
        "read-resource",
        exchange("resources/read", {"contents": [{"uri": "a:b", "text": SAYS_HIDDEN}]}, params={"uri": "a:b"}),
    ),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_hidden_characters_in_prompts_and_resources_are_found(kind: str) -> None:
    probe, said = CONTENTS[kind]
    healthy = observed(TOOL)
    faults = {
        finding.where
        for finding in judged(replace(healthy, probes={**healthy.probes, probe: said})).findings
        if finding.rule == "security.hidden-text"
    }
    assert faults == {{"prompt": "p", "resource": "a:b"}[kind]}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@parametrize_subtests("name", BROKEN_TOOLS)
def test_a_tool_broken_in_one_way_is_caught_by_the_rule_for_it(name: str) -> None:
    change, rule = BROKEN_TOOLS[name]
    report = judged(observed(broken_tool(change)))
    assert rule in failed(report)
    # Nothing else may claim it: only rules about the same text may speak as well.
    assert failed(report) <= {rule, "descriptions.arguments", "descriptions.tool-budget", "tool-calls.output-schema"}
    assert report.score < 100


def test_two_tools_with_one_description_are_each_told_of_the_other() -> None:
    report = judged(observed(TOOL, broken_tool(lambda tool: tool.update(name="find_books"))))
    assert [(finding.rule, finding.where) for finding in report.findings] == [
        ("descriptions.distinct", "search_books"),
        ("descriptions.distinct", "find_books"),
    ]


def test_a_reference_within_the_schema_and_a_property_called_ref_are_fine() -> None:
    schema = {
        "type": "object",
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
        "properties": {
            "tree": {"$ref": "#/$defs/node"},
            "$ref": {"type": "string", "description": "An argument that happens to be called so."},
            "kind": {"description": "One of two.", "enum": [{"$ref": "#/nowhere"}]},
        },
    }
    assert failed(judged(observed({**TOOL, "inputSchema": schema}))) == {"schemas.argument-names"}  # for the $


def test_one_bad_tool_of_ten_costs_a_tenth_of_the_rule() -> None:
    good = [{**TOOL, "name": f"tool_{n}", "description": f"Return page {n} of the catalogue."} for n in range(9)]
    bad = broken_tool(lambda tool: tool.pop("description"))
    report = judged(observed(bad, *good))
    assert failed(report) == {"descriptions.tool"}
    assert report.lost == DESCRIPTIONS / 10


def test_what_could_not_be_checked_counts_as_not_passed_and_says_why() -> None:
    report = judged(observed(TOOL, calls=()))
    unchecked = {item.rule: item.reason for item in report.not_checked}
    assert "no tool could be called" in unchecked["tool-calls.some-succeed"]
    assert report.failed_gates == (
        "tool-calls.some-succeed",
        "tool-calls.answered",
        "tool-calls.output-schema",
        "placeholder-answers.not-implemented",
    )
    assert not report.passed
    assert report.score < 100


def call(text: str, *, is_error: bool = True, origin: Any = "no arguments") -> RecordedCall:
    result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return RecordedCall("search_books", exchange("tools/call", result), origin)


PLAIN = {key: value for key, value in TOOL.items() if key != "outputSchema"}


@pytest.mark.parametrize("origin", ["case", "example", "no arguments", "guess"])
def test_a_server_whose_every_tool_is_not_implemented_is_not_promotable(origin: str) -> None:
    report = judged(observed(PLAIN, calls=(call("NOT IMPLEMENTED", origin=origin),)))
    assert "tool-calls.some-succeed" in report.failed_gates
    assert failed(report) == {"tool-calls.some-succeed"}
    assert any("tool-calls.implemented" in line for line in report.findings[0].follows)
    assert not report.passed


def test_errors_to_guessed_arguments_prove_nothing() -> None:
    report = judged(observed(PLAIN, calls=(call("There is no file called text.", origin="guess"),)))
    assert failed(report) == set()
    assert [item.rule for item in report.not_checked] == ["tool-calls.some-succeed"]


def test_without_its_api_a_server_is_not_shown_to_work_rather_than_refused() -> None:
    report = judged(observed(PLAIN, calls=(call("the API cannot be reached"),)))
    assert (report.verdict, report.passed, failed(report)) == ("not shown", False, set())
    assert report.to_text().startswith("NOT SHOWN")
    assert "--allow-calls" in report.to_text()


def test_a_case_that_fails_is_a_finding_and_refuses() -> None:
    report = judged(observed(PLAIN, calls=(call("the API cannot be reached", origin="case"),)))
    assert report.verdict == "refused"
    assert failed(report) == {"tool-calls.some-succeed"}
    assert "follows: tool-calls.cases at search_books" in report.to_text()


def test_evidence_is_the_exchange_with_secrets_masked_and_long_texts_cut() -> None:
    leaked = exchange("tools/call", {"content": [{"type": "text", "text": "canary-value" + "x" * 5_000}]})
    report = evaluate_rules(observed(TOOL, traffic=(leaked,)), RULES, secrets={"API_KEY": "canary-value"})
    finding = next(finding for finding in report.findings if finding.rule == "security.secret-exposure")
    assert finding.evidence is not None
    assert finding.evidence["request"]["method"] == "tools/call"
    assert "[API_KEY]xxx" in finding.evidence["response"]
    assert "canary-value" not in str(report.to_json())
    assert len(finding.evidence["response"]) < 3_000


@pytest.mark.parametrize(
    "told",
    [
        exchange("tools/call", {"content": [], "isError": True}),
        exchange(
            "tools/call", error={"code": -32601, "message": "Unknown tool: x"}
        ),  # mcp-server-… on the TypeScript SDK
        exchange("tools/call", error={"code": -32603, "message": "Method x not found"}),
    ],
)
def test_a_tolerated_deviation_costs_a_point_and_closes_no_gate(told: WireExchange) -> None:
    evidence = observed(TOOL)
    report = judged(replace(evidence, probes={**evidence.probes, "unknown-tool": told}))
    assert [(f.rule, f.severity, f.gate) for f in report.findings] == [("legacy.unknown-tool", 1, False)]
    assert (report.lost, report.score) == (COSTS[1], 100 - COSTS[1])
    assert report.passed


def test_all_notes_together_cost_at_most_five_points() -> None:
    evidence = observed(TOOL)
    evidence.probes["unknown-tool"] = exchange("tools/call", {"content": [], "isError": True})
    rule = next(rule for rule in RULES if rule.id == "legacy.unknown-tool")
    assert evaluate_rules(evidence, [replace(rule, id=f"legacy.note-{number}") for number in range(7)]).lost == 5


def test_an_unknown_tool_that_answers_like_a_known_one_is_not_tolerated() -> None:
    done = exchange("tools/call", {"content": [], "isError": False})
    evidence = observed(TOOL)
    report = judged(replace(evidence, probes={**evidence.probes, "unknown-tool": done}))
    assert [(f.rule, f.severity) for f in report.findings] == [("legacy.unknown-tool", 3)]


@pytest.mark.parametrize(("code", "severity"), [(-32601, 1), (-32603, 3)])
def test_a_server_with_resources_may_have_no_method_for_templates_but_not_fail_in_it(code: int, severity: int) -> None:
    method = "resources/templates/list"
    answer = exchange(method, error={"code": code, "message": "no"})
    lists = {
        "resources/list": Listing("resources/list", (), (exchange("resources/list", {"resources": []}),)),
        method: Listing(method, (), (answer,), problem=f"{method} was not answered"),
    }
    report = judged(observed(TOOL, capabilities={"resources": {}}, lists=lists))
    assert [f.severity for f in report.findings if f.rule == "lists.templates"] == [severity]


@pytest.mark.parametrize(("transport", "severity", "gate"), [("stdio", 3, False), ("http", 5, True)])
def test_a_bad_line_that_ends_the_conversation_closes_a_gate_only_where_others_lose_theirs(
    transport: Transport, severity: int, gate: bool
) -> None:
    silent = WireExchange({"jsonrpc": "2.0", "id": 1, "method": "ping"}, problem="no answer within 10 s")
    evidence = observed(TOOL, transport=transport)
    report = judged(replace(evidence, probes={**evidence.probes, "after-malformed": silent}))
    found = [(f.severity, f.gate) for f in report.findings if f.rule == "legacy.keeps-running"]
    assert found == [(severity, gate)]


def test_a_server_that_could_not_be_observed_at_all_scores_nothing() -> None:
    dead = Evidence(
        sessions=(Session("session", answered=False, problem="ended with code 1", stderr="ImportError: x"),)
    )
    report = judged(dead)
    assert report.score == 0
    assert not report.passed
    assert report.findings[0].evidence == {"stderr": "ImportError: x"}


def test_the_text_of_a_report_names_gates_evidence_and_what_was_not_checked() -> None:
    text = judged(observed(broken_tool(lambda tool: tool["inputSchema"].update(type="array")), calls=())).to_text()
    assert text.startswith("NOT PROMOTABLE")
    assert "closed gates: schemas.input-object" in text
    assert "hint: wrap the value" in text
    assert "not checked:\n  tool-calls.some-succeed, tool-calls.answered" in text


def test_rule_ids_are_unique_and_begin_with_their_family() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(rule.id.startswith(f"{rule.family}.") for rule in RULES)
    assert all(rule.statement.endswith(".") and rule.source and rule.hint for rule in RULES)


def unanswered(problem: str, origin: Any) -> RecordedCall:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_books"}}
    return RecordedCall("search_books", WireExchange(asked, None, problem), origin)


@pytest.mark.parametrize(
    ("problem", "origin", "found"),
    [
        ("no answer within 10 s", "no arguments", [("tool-calls.answered", False)]),  # another call was quick
        ("no answer within 10 s", "case", [("tool-calls.answered", True)]),
        ("the server ended with code 1", "no arguments", [("tool-calls.answered", True)]),
    ],
)
def test_a_slow_tool_is_no_dead_server(problem: str, origin: Any, found: list[tuple[str, bool]]) -> None:
    report = judged(observed(PLAIN, calls=(unanswered(problem, origin), call("found", is_error=False))))
    assert [(f.rule, f.gate) for f in report.findings] == found
    slow = judged(observed(PLAIN, calls=(unanswered("no answer within 10 s", "no arguments"),)))
    assert not slow.findings  # it may be slow by design


def test_of_several_starts_the_fastest_says_how_slow_a_server_is() -> None:
    cold = Session("first", answered=True, milliseconds=11_000, ended_after=22_300)
    warm = Session("second", answered=True, milliseconds=900, ended_after=300)
    assert failed(judged(observed(TOOL, sessions=(cold, warm)))) == set()
    assert failed(judged(observed(TOOL, sessions=(cold, cold)))) == {"process.start-time", "process.exits-on-eof"}


def test_a_process_that_was_still_at_work_is_not_blamed_for_not_ending() -> None:
    at_work = Session("session", answered=True, ended_after=None, busy=True)
    stuck = Session("session", answered=True, ended_after=None)
    assert "process.exits-on-eof" in judged(observed(TOOL, sessions=(at_work,))).not_applicable
    assert failed(judged(observed(TOOL, sessions=(at_work, stuck)))) == {"process.exits-on-eof"}


def test_the_same_finding_at_many_tools_is_one_paragraph() -> None:
    tools = [{**TOOL, "name": f"tool_{n}", "description": ""} for n in range(9)]
    text = judged(observed(*tools)).to_text()
    assert text.count("the tool has no description") == 1
    assert "at tool_0, tool_1, tool_2 and 6 more" in text


ASKS = {**PLAIN, "annotations": {"readOnlyHint": True}}
ADDS = {**ASKS, "description": "Add what is found to the list of wishes, and return at most 20 books."}


@parametrize_subtests(
    "tool, sent, question, closed",
    [
        (ASKS, "GET /books", "", False),
        (ASKS, "POST /books/search", "", False),
        (ADDS, "POST /books/search", "", True),
        (ASKS, "POST /books", "", True),
        (ASKS, "POST /books", "POST /books", False),
        (ASKS, "POST /books%20and", "POST /books and", False),
        (ASKS, "POST /wishes", "POST /books", True),
        (ASKS, "PUT /books/search", "", True),
    ],
)
def test_a_read_only_tool_may_post_a_question(tool: Any, sent: str, question: str, closed: bool) -> None:
    """A question is one by the document, or by the path if the tool says nothing else."""
    method, _, path = sent.partition(" ")
    made = replace(call("found", is_error=False, origin="case"), requests=({"method": method, "path": path},))
    report = judged(observed(tool, calls=(replace(made, question=question),), with_cases=True))
    assert ("tool-calls.read-only" in report.failed_gates) is closed


def test_an_error_that_http_refuses_a_request_with_may_have_no_id() -> None:
    sent = {"jsonrpc": "2.0", "id": 5, "method": "server/discover"}
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
    refused, answered = (WireExchange(sent, error, status=status) for status in (400, 200))
    assert "legacy.ids" not in failed(judged(observed(TOOL, traffic=(refused,))))
    assert "legacy.ids" in failed(judged(observed(TOOL, traffic=(answered,))))
