"""Every broken server is caught by the rule that it names, and healthy servers get no finding."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from mcpfactory_pipeline.checks import call_comparisons, requester
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import HANDSHAKES, LATEST_HANDSHAKE, MODERNS, ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.validation import observe_server, validate
from tests.broken_servers.memory_conversation import SilentConnector
from tests.broken_servers.validation import ROOT, SERVERS, Examination, examine
from tests.system import free_port
from tests.tiers import full
from tests.timeouts import wait_until


def _one_worker(name: str) -> Any:
    """Run the tests of one server in one process, which examines it once; the first server of each rule is in the fast tier."""
    others = [full("another server breaks this rule in the fast tier")] if name not in FIRST else []
    return pytest.param(name, marks=[pytest.mark.xdist_group(f"server {name}"), *others])


FIRST = {kind.rule: name for name, kind in reversed(SERVERS.items())}.values()
BROKEN = [_one_worker(name) for name, kind in SERVERS.items() if kind.rule]
HEALTHY = [
    pytest.param(name, marks=[full("five other healthy servers are in the fast tier")] if number >= 5 else [])
    for number, name in enumerate(name for name, kind in SERVERS.items() if not kind.rule)
]
COSTLY = [_one_worker(name) for name, kind in SERVERS.items() if kind.rule and kind.limits]


@cache
def seen(name: str) -> Examination:
    return examine(name)


def examined(name: str) -> ValidationReport:
    return seen(name).judged()


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_server_is_caught_by_the_rule_that_it_names(name: str) -> None:
    report = examined(name)
    kind = SERVERS[name]
    found = [finding for finding in report.findings if finding.rule == kind.rule]
    assert found, report.to_text()
    assert all(finding.hint and finding.source for finding in found)
    assert {finding.rule for finding in report.findings} == {kind.rule, *kind.companions}, report.to_text()
    gates = {rule.id for rule in RULES if rule.gate}
    assert report.passed is (kind.tolerated or gates.isdisjoint({kind.rule, *kind.companions})), report.to_text()
    assert report.score < 100
    # No second rule of weight fires, and no rule is left unchecked because of the defect.
    assert sum(finding.severity >= 3 for finding in {one.rule: one for one in report.findings}.values()) <= 1
    assert report.not_checked == ()
    told = {line.split(" at ")[0].split(":")[0] for finding in report.findings for line in finding.follows}
    assert kind.follows <= told
    # Without its rule, what followed from the defect stands alone.
    rest = seen(name).judged([one for one in RULES if one.id != kind.rule])
    assert {finding.rule for finding in rest.findings} == {*kind.companions, *kind.follows}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_servers_get_no_finding_at_all(name: str) -> None:
    report = examined(name)
    assert report.findings == (), report.to_text()
    assert report.not_checked == ()
    assert (report.score, report.passed) == (100, True)


@pytest.mark.parametrize(
    "name", ["Stillborn", "Stranger", "NotImplementedServer", "OneSentence", "Wordless", "Woolgatherer"]
)
def test_a_server_of_no_use_scores_below_50(name: str) -> None:
    assert examined(name).score < 50


@pytest.mark.parametrize("name", COSTLY)
def test_what_a_server_costs_is_told_and_no_fault_where_no_policy_sets_a_limit(name: str) -> None:
    examination = seen(name)
    report = evaluate_rules(replace(examination.evidence, limits={}), RULES)
    assert report.findings == ()
    assert report.passed
    assert {"start_ms", "call_ms", "memory_mb"} <= set(report.measured)


def test_what_spoils_stdout_is_named() -> None:
    (finding,) = examined("Cacophonist").findings
    causes = "binary data, two messages on a line, text that is not UTF-8, a line of more than 16 MB"
    assert finding.message == f"stdout has lines that are not JSON-RPC: {causes}"


def test_a_crash_accuses_only_the_tool_that_caused_it() -> None:
    (finding,) = examined("Domino").findings
    assert finding.where == "moon_phase"


def test_results_that_may_have_changed_with_time_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_comparisons, "_MAX_IDLE", 0)
    assert examine("Butterfly").judged().findings == ()


def test_every_rule_has_a_broken_server() -> None:
    named = {kind.rule for kind in SERVERS.values()} - {""}
    rules = {rule.id for rule in RULES}
    assert rules == named, "for each rule add a server that breaks only this rule to a module of tests/broken_servers/"


def test_no_secret_of_the_environment_is_in_any_report() -> None:
    report = examined("Blabbermouth")
    assert "[ZOO_API_KEY]" in report.to_text()
    assert "key-of-the-zoo" not in report.to_text() + str(report.to_json())


def test_a_server_that_answers_nothing_but_not_implemented_is_not_promotable() -> None:
    report = examined("NotImplementedServer")
    assert not report.passed
    assert "tool-calls.some-succeed" in report.failed_gates
    assert "NOT IMPLEMENTED" in report.to_text()


def test_the_same_server_gets_the_same_report_twice() -> None:
    assert examine("HalfFinished").judged().to_json() == examine("HalfFinished").judged().to_json()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_on_the_official_sdk_is_promotable_with_tolerated_deviations_only() -> None:
    port = free_port()
    command = [sys.executable, "tests/broken_servers/sdk_server.py", "--http", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_listening(port))
            report = asyncio.run(validate(ValidationTarget(url=f"http://127.0.0.1:{port}/mcp")))
        finally:
            process.terminate()
    assert report.passed, report.to_text()
    assert report.not_checked == ()
    # Each is a known deviation of that SDK: unknown tools are isError, bad cursors, bad lines and batches are ignored,
    # params that are a list and unknown prompts are errors with another code, and versions in headers are not compared.
    known = ("invalid-json", "unknown-tool", "invalid-cursor", "not-json-rpc", "params", "batch")
    over_http = {("http.modern-version", 1), ("http.modern-header-whitespace", 1)}
    tolerated = {(f"legacy.{name}", 1) for name in known} | {("features.unknown-prompt", 1)} | over_http
    assert {(f.rule, f.severity) for f in report.findings} <= tolerated
    assert report.score >= 95


@pytest.mark.parametrize("name", ["HealthyRich", "Messageless", "Loner"])
def test_a_server_in_a_process_of_its_own_gets_the_report_that_it_gets_in_the_process_of_the_test(name: str) -> None:
    apart = examine(name, own_process=True).judged()
    assert apart.to_json() == examined(name).to_json()


def _roused(name: str, silent: int) -> tuple[Evidence, ValidationReport, SilentConnector]:
    """Observe a server that does not answer in the first sessions, as on a loaded machine."""
    connector = SilentConnector(SERVERS[name], list(HANDSHAKES), list(MODERNS), silent=silent)
    target = ValidationTarget(command=("zoo",), environ={"ZOO_API_KEY": "key-of-the-zoo-1234"})
    with patch.object(requester, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(connector.patience))):
        evidence, secrets = asyncio.run(observe_server(target, connect=connector))
    return evidence, evaluate_rules(evidence, RULES, target=name, secrets=secrets), connector


def test_a_server_that_is_silent_once_is_asked_once_more_and_nothing_is_held_against_it() -> None:
    evidence, report, connector = _roused("HealthyTitled", silent=1)
    assert report.findings == (), report.to_text()
    assert (evidence.lifecycles, len(connector.patience)) == ({"legacy", "modern"}, 1)
    assert all(exchange.received is not None for exchange in evidence.handshakes.values())
    assert [session.purpose for session in evidence.sessions].count(f"session {LATEST_HANDSHAKE}") == 1


def test_silence_is_believed_the_second_time_and_the_time_for_the_rest_is_as_before() -> None:
    evidence, _, connector = _roused("HealthyTitled", silent=2)
    assert evidence.lifecycles == {"modern"}
    first, second = connector.patience
    assert evidence.missing == {}
    assert (second, evidence.handshakes[LATEST_HANDSHAKE].problem) == (
        2 * first,
        f"no answer within {second:g} s",
    )
