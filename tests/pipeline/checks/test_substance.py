"""What of an API's answer must reach the model, and what a server that does nothing is worth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_pipeline.checks.evidence import RecordedCall
from tests.pipeline.checks.test_rules import TOOL, exchange, judged, observed

BODY = {"total": 2, "books": [{"title": "Emma", "price": 9.5}]}
PLAIN = {name: part for name, part in TOOL.items() if name != "outputSchema"}


def called(text: Any, *, tool: str = "search_books", body: Any = BODY, structured: Any = None) -> RecordedCall:
    """A call that asked the API, which answered `body`, and gave the model `text`."""
    said = text if isinstance(text, str) else json.dumps(text)
    result = {
        "content": [{"type": "text", "text": said}],
        **({} if structured is None else {"structuredContent": structured}),
    }
    response = {"status": 200, "content_type": "application/json", "body": body}
    sent = ({"method": "GET", "path": "/books", "query": ""},)
    return RecordedCall(tool, exchange("tools/call", result), "case", requests=sent, response=response)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (called(BODY, structured=BODY), []),
        (called("2 books: Emma for 9.5"), []),  # in words of a hook
        (called({"total": 2, "books": [{"title": "Emma"}]}), [(1, False)]),  # left out: a hook may
        (called({"total": 2, "books": [{"title": "Emma", "price": 95}]}), [(3, False)]),  # another value
        (called(BODY, structured={"total": 3, "books": []}), []),  # the text has it; behaviour.output sees the schema
        (called("NOT IMPLEMENTED"), [(5, True)]),
        (called("ok", body={}), []),
        (called([{"id": 1}], body=[{"id": 1}], structured={"result": [{"id": 1}]}), []),
    ],
)
def test_what_the_api_answers_is_compared_with_what_the_model_gets(call: RecordedCall, found: list[Any]) -> None:
    report = judged(observed(PLAIN, calls=(call,), with_cases=True))
    told = [(one.severity, one.gate) for one in report.findings if one.rule == "substance.results"]
    assert told == found
    assert ("substance.results" in report.failed_gates) is ((5, True) in found)


def test_a_hook_that_says_not_implemented_is_seen_where_the_api_answers_no_value_too() -> None:
    report = judged(observed(PLAIN, calls=(called("NOT IMPLEMENTED", body={}),), with_cases=True))
    assert "substance.finished" in report.failed_gates
    assert report.score < 50


def test_a_server_whose_every_answer_is_lost_has_no_high_score() -> None:
    calls = (called("fine"), called("fine"))
    assert judged(observed(PLAIN, calls=calls, with_cases=True)).score == 49
    half = (called("fine"), called(BODY, tool="find_books"))
    tools = (PLAIN, {**PLAIN, "name": "find_books", "description": "Find books by how they begin, at most 20."})
    assert judged(observed(*tools, calls=half, with_cases=True)).score > 90
