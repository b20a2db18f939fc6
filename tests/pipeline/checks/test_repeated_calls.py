"""Severities of findings about repeated calls: a difference with a harmless explanation accuses no tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcpfactory_pipeline.checks.evidence import CallComparison, Evidence, ModifiedStateAnswer, RecordedCall, Session
from mcpfactory_pipeline.checks.exchange import WireExchange
from tests.pipeline.checks.test_http_probes import weights
from tests.pipeline.checks.test_rules import TOOL, exchange, observed
from tests.subtest_table import parametrize_subtests


def said(text: str, **members: Any) -> WireExchange:
    return exchange("tools/call", {"content": [{"type": "text", "text": text}], **members})


BUSY = said("come back later", isError=True)
LOST = WireExchange(BUSY.sent, problem="no answer within 1 s")
LIMITED = replace(LOST, status=429)


@parametrize_subtests(
    "kind, rule, got, found",
    [
        ("default", "defaults", said("waning"), [2]),
        ("default", "defaults", said("waxing; half: north"), []),  # repeats its arguments
        ("default", "defaults", LOST, []),
        ("later", "side-effects", said("waning"), [3]),
        ("later", "side-effects", BUSY, []),
        ("overlap", "overlapping", said("3"), [3]),  # the result of the other call
        ("overlap", "overlapping", said("waning"), [2]),
        ("overlap", "overlapping", LOST, [3]),
        ("overlap", "overlapping", BUSY, []),
        ("overlap", "overlapping", LIMITED, []),
    ],
)
def test_severity_of_a_changed_result(kind: Any, rule: str, got: WireExchange, found: list[int]) -> None:
    usual = (said("waxing"), said("waxing"))
    comparison = CallComparison(kind, "moon", usual, (got,), 'half="north"', rival=said("3"))
    assert weights(f"tool-calls.{rule}", Evidence(comparisons=[comparison])) == found


@parametrize_subtests(
    "unmodified, found",
    [(["waxing", "waxing"], [3]), (["waning", "waning"], [1]), (["waxing", "full"], [1])],
)
def test_severity_of_an_accepted_modified_state(unmodified: list[str], found: list[int]) -> None:
    asked = exchange("tools/call", {"resultType": "input_required", "requestState": "s"})
    states = [ModifiedStateAnswer(said("waning"), tuple(map(said, unmodified)))]
    evidence = Evidence(lifecycles={"modern"}, dialogues=[(asked,)], modified_states=states)
    assert weights("modern.request-state", evidence) == found


@parametrize_subtests(
    "lost, found", [(LOST, [2]), (replace(LIMITED, problem="no JSON"), []), (replace(LOST, problem="no JSON"), [5])]
)
def test_a_guessed_call_may_be_slow_or_limited(lost: WireExchange, found: list[int]) -> None:
    calls = (RecordedCall("search_books", said("waxing"), "guess"), RecordedCall("search_books", lost, "guess"))
    assert weights("tool-calls.answered", observed(TOOL, calls=calls)) == found


@parametrize_subtests("busy, found", [(True, []), (False, [1])])
def test_a_process_that_is_busy_with_a_call_need_not_end(found: list[int], *, busy: bool) -> None:
    session = Session("told to end", answered=True, terminated=True, busy=busy)
    assert weights("process.exits-on-sigterm", Evidence(lifecycles={"legacy"}, sessions=[session])) == found
