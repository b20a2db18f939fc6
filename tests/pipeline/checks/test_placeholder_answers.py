"""What of an API's answer must reach the model, and what a server that does nothing is worth."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mcpfactory_pipeline.checks.evidence import RecordedCall
from tests.pipeline.checks.test_rules import TOOL, exchange, judged, observed
from tests.subtest_table import parametrize_subtests

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


def again(call: RecordedCall, *texts: str) -> tuple[RecordedCall, ...]:
    """The same call, to which the API answered other values and the model got these texts."""
    return tuple(replace(call, exchange=called(text).exchange) for text in texts)


@parametrize_subtests(
    "body, text, others, found",
    [
        (20, "68 °F", ("212 °F", "-40 °F"), []),  # it was converted
        (20, "fine", ("fine", "fine"), [(5, True)]),  # it was thrown away
        (20, "warm", ("warm", "cold"), []),  # of two other answers one shows that the API's is looked at
        (20, "fine", (), [(3, False)]),  # nobody asked again, and nothing is shown
        ({"celsius": 20}, '{"fahrenheit": 68}', ('{"fahrenheit": 212}',), []),
        ({"degrees": 20}, '{"degrees": 68}', ('{"degrees": 212}',), [(3, False)]),
        ({"degrees": 20}, '{"degrees": 0}', ('{"degrees": 0}', '{"degrees": 0}'), [(5, True)]),
    ],
)
def test_only_what_stays_whatever_the_api_answers_is_thrown_away(
    body: Any, text: str, others: tuple[str, ...], found: list[Any]
) -> None:
    call = called(text, body=body)
    report = judged(observed(PLAIN, calls=(call,), changed=again(call, *others), with_cases=True))
    assert [(one.severity, one.gate) for one in report.findings if one.rule == "placeholder-answers.lost-data"] == found


@parametrize_subtests(
    "call, found",
    [
        (called(BODY, structured=BODY), []),
        (called("2 books: Emma for 9.5"), []),  # in words of a hook
        (called({"total": 2, "books": [{"title": "Emma"}]}), [(1, False)]),  # left out: a hook may
        (called({"total": 2, "books": [{"title": "Emma", "price": 95}]}), [(3, False)]),  # another value
        (called(BODY, structured={"total": 3, "books": []}), [(2, False)]),  # the text has it, and says something else
        (called(BODY, structured={"found": 2, "first": "Emma"}), []),  # a hook made it of what the API answered
        (called("2 books", structured={"count": 1}), [(1, False)]),  # nothing of either is the API's as it is
        (called("NOT IMPLEMENTED"), [(5, True)]),
        (called("ok", body={}), []),
        (called([{"id": 1}], body=[{"id": 1}], structured={"result": [{"id": 1}]}), []),
    ],
)
def test_what_the_api_answers_is_compared_with_what_the_model_gets(call: RecordedCall, found: list[Any]) -> None:
    text = str(call.exchange.result["content"][0]["text"]) if call.exchange.result else ""
    report = judged(observed(PLAIN, calls=(call,), changed=again(call, text), with_cases=True))
    told = [(one.severity, one.gate) for one in report.findings if one.rule == "placeholder-answers.lost-data"]
    assert told == found
    assert ("placeholder-answers.lost-data" in report.failed_gates) is ((5, True) in found)


def test_a_server_whose_every_answer_is_lost_has_no_high_score() -> None:
    calls = (called("fine"), called("fine"))
    lost_all = judged(observed(PLAIN, calls=calls, changed=again(calls[0], "fine"), with_cases=True))
    half = (called("fine"), called(BODY, tool="find_books"))
    tools = (PLAIN, {**PLAIN, "name": "find_books", "description": "Find books by how they begin, at most 20."})
    lost_half = judged(observed(*tools, calls=half, changed=again(half[0], "fine"), with_cases=True))
    assert lost_all.score < lost_half.score < 50


def wrong(result: dict[str, Any], requests: tuple[dict[str, str], ...] = ()) -> RecordedCall:
    """A call with wrong arguments and what it was answered."""
    return RecordedCall("search_books", exchange("tools/call", result), "guess", "without 'query'", requests)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


@parametrize_subtests(
    "call, found",
    [
        (wrong(said("query is missing", isError=True)), []),
        (wrong(said("Which books?")), [(1, False)]),
        (wrong(said("Please name a title.", structuredContent={"result": "Please name a title."})), [(1, False)]),
        (wrong(said("Sure.")), [(3, False)]),  # nothing shows whether it looked
        (wrong(said("2")), [(3, True)]),  # what it says to right ones
        (wrong(said("No book is called undefined.")), [(3, True)]),
        (wrong(said("Done.", structuredContent={"total": 0})), [(3, True)]),
        (wrong(said("Done."), ({"method": "GET", "path": "/books"},)), [(3, True)]),
    ],
)
def test_a_server_that_asks_back_is_not_refused_and_one_that_works_with_wrong_arguments_is(
    call: RecordedCall, found: list[Any]
) -> None:
    report = judged(observed(TOOL, wrong=(call,)))
    assert [
        (one.severity, one.gate) for one in report.findings if one.rule == "tool-calls.argument-validation"
    ] == found


def told(text: str, *others: str, query: str = "Emma") -> list[tuple[str, int]]:
    """Findings about substance, where a tool gives one text, and these to other arguments (`{}` is what it was asked)."""
    asked = [query, *("Two other words", "A third text")[: len(others)]]
    calls = [
        replace(called(said.format(one)), requests=(), response=None)
        for said, one in zip((text, *others), asked, strict=True)
    ]
    for call, one in zip(calls, asked, strict=True):
        call.exchange.sent["params"] = {"name": call.tool, "arguments": {"query": one}}
    report = judged(observed(PLAIN, calls=tuple(calls[:1]), others=tuple(calls[1:])))
    return [(one.rule, one.severity) for one in report.findings if one.rule.startswith("placeholder-answers.")]


UNFINISHED, CONSTANT = [("placeholder-answers.not-implemented", 5)], [("placeholder-answers.constant", 1)]


@parametrize_subtests(
    "texts, found",
    [
        (["WIP"], UNFINISHED),
        (["Coming soon!"], UNFINISHED),
        (["This feature is coming soon. Stay tuned!"], UNFINISHED),
        (["This function isn't available yet."], UNFINISHED),
        (["search_books: work in progress"], UNFINISHED),
        (['{"result": "WIP"}'], UNFINISHED),
        (['{"longest": "TODO: implement", "words": 4}'], UNFINISHED),
        (["search_books('{}') is not implemented yet"] * 3, UNFINISHED),
        (["WIP: {}"] * 3, UNFINISHED),
        (["该功能尚未实现"], UNFINISHED),
        (["敬请期待"], UNFINISHED),
        (["2 bridges are under construction."], []),
        (["The results are not available yet."], []),
        (["Not available yet."], []),
        (["Dune: coming soon"], []),
        (['{"title": "Dune", "status": "coming soon"}'], []),
        (["近日公開: Dune"], []),
        (["WIP", "WIP", "Found 3."], []),
    ],
)
def test_only_what_a_tool_says_of_itself_is_unfinished(texts: list[str], found: list[Any]) -> None:
    assert told(*[text if "{}" in text else text.replace("{", "{{").replace("}", "}}") for text in texts]) == found


@parametrize_subtests(
    "text, found",
    [
        ("2 people are registered", []),
        ("Found 0 items.", []),
        ("Nobody lives there.", []),
        ("The zoo is open.", CONSTANT),
        ('{{"words": 2}}', CONSTANT),
        ('{{"rate": 2.0}}', CONSTANT),
        ('{{"rate": 0.0}}', []),
    ],
)
def test_one_answer_to_all_arguments_is_a_note_where_it_counts_nothing(text: str, found: list[Any]) -> None:
    assert told(text, text, text) == found
