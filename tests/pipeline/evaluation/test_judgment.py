"""What a model did is judged by the way that it went: tools, order, arguments, answers, and what it wrote besides."""

from __future__ import annotations

from mcpfactory_pipeline.checks.evaluation.judgment import (
    NO_TOOL,
    VERDICTS,
    MadeCall,
    ModelTranscript,
    ToolChoice,
    judge_transcript,
)
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from tests.subtest_table import parametrize_subtests

READS = {"annotations": {"readOnlyHint": True}}
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}, "land": {"type": "string", "default": "PT"}}}
TOOLS = {
    "find": {**READS, "inputSchema": {"properties": {"q": {}, "most": {"default": 10}}}},
    "stock": {**READS, "inputSchema": {"properties": {"isbn": {}}}},
    "order": {"inputSchema": {"properties": {"copies": {}, "to": ADDRESS, "note": {}, "lines": {"items": ADDRESS}}}},
    "cancel": {"inputSchema": {"properties": {"id": {}}}},
}


def case(*ways, **more) -> EvaluationCase:
    return EvaluationCase.model_validate({"name": "a", "question": "q", "right": list(ways), **more})


def call(tool, arguments=None, turn=1, answer="", **more) -> MadeCall:
    return MadeCall(tool, {} if arguments is None else arguments, turn, answer, **more)


def judged(asked, *calls, text="", **more):
    return judge_transcript(asked, ModelTranscript(calls, text, 2, **more), TOOLS)


ORDER = {"tool": "order", "arguments": {"copies": 1, "to": {"city": "Lisbon"}, "note": "x"}, "free": ["note"]}
GIVEN = {"copies": 1, "to": {"city": "Lisbon"}, "note": "hello"}


def test_a_way_that_was_gone_passes_whatever_was_read_besides():
    asked = case([{"tool": "find", "arguments": {"q": "tea"}, "says": ["Earl"]}])
    looked = call("stock", {"isbn": "1"})
    assert judged(asked, looked, call("find", {"q": "tea"}, answer="Earl Grey")).verdict == "passed"
    assert (
        judged(asked, call("find", {"q": "te"}, answer="none"), call("find", {"q": "tea"}, 2, "Earl")).verdict
        == "passed"
    )


def test_of_several_ways_any_will_do():
    asked = case([{"tool": "find", "arguments": {"q": "1"}}], [{"tool": "stock", "arguments": {"isbn": "1"}}])
    assert judged(asked, call("stock", {"isbn": "1"})).verdict == "passed"
    assert judged(asked, call("cancel", {"id": 1})).verdict == "wrong-tool"


def test_what_writes_must_be_called_once_and_only_where_it_was_asked_for():
    asked = case([ORDER])
    assert judged(asked, call("order", GIVEN)).verdict == "passed"
    twice = judged(asked, call("order", GIVEN), call("order", GIVEN, 2))
    assert (twice.verdict, twice.faults) == ("unwanted-call", ("order, which writes, was also called",))
    failed = call("order", {"copies": 99}, failed=True)
    assert judged(asked, failed, call("order", GIVEN, 2)).verdict == "passed", "a refused call wrote nothing"
    reading = case([{"tool": "find", "arguments": {"q": "tea"}}])
    assert judged(reading, call("find", {"q": "tea"}), call("cancel", {"id": 1}, 2)).verdict == "unwanted-call"


@parametrize_subtests(
    "given, wrong",
    [
        ({**GIVEN, "copies": 2}, [("copies", "different")]),
        ({**GIVEN, "copies": True}, [("copies", "different")]),
        ({**GIVEN, "copies": "1"}, [("copies", "different")]),
        ({**GIVEN, "copies": 1.0}, []),
        ({"to": {"city": "Lisbon"}, "note": ""}, [("copies", "missing")]),
        ({"copies": 1, "to": {"city": "Lisbon"}}, [("note", "missing")]),
        ({**GIVEN, "to": {"city": "Lisbon", "land": "PT"}}, []),
        ({**GIVEN, "to": {"city": "Lisbon", "land": "ES"}}, [("to.land", "extra")]),
        ({**GIVEN, "to": {}}, [("to.city", "missing")]),
        ({**GIVEN, "to": "Lisbon"}, [("to", "different")]),
        ({**GIVEN, "lines": [{"city": "Faro"}]}, [("lines", "extra")]),
        ({**GIVEN, "gift": None}, []),
        ({**GIVEN, "gift": 1}, [("gift", "extra")]),
    ],
)
def test_each_wrong_argument_has_its_field(given, wrong):
    found = judged(case([ORDER]), call("order", given))
    assert [(one.field, one.kind) for one in found.wrong] == wrong
    assert found.verdict == ("wrong-arguments" if wrong else "passed")
    assert len(found.faults) == len(wrong)


def test_the_answer_counts_of_the_tool_and_of_the_model():
    asked = case([{"tool": "find", "arguments": {"q": "tea"}, "says": ["Earl"]}], answer=["Grey"])
    made = call("find", {"q": "tea"}, answer="Earl")
    assert judged(asked, made, text="It is EARL GREY.").verdict == "passed"
    assert judged(asked, made, text="No idea.").verdict == "wrong-answer"
    assert judged(asked, call("find", {"q": "tea"}, answer="nothing"), text="grey").verdict == "wrong-answer"
    assert judged(asked, call("find", {"q": "tea"}, failed=True), text="grey").verdict == "wrong-answer"


def test_where_no_tool_fits_none_may_be_called_but_to_look_for_one():
    assert judged(case()).verdict == "passed"
    assert judged(case(), refused=True).verdict == "passed"
    assert judged(case(), call("search_tools", machinery=True)).verdict == "passed"
    found = judged(case(), call("find", {"q": "rain"}))
    assert (found.verdict, found.choices) == ("unwanted-call", (ToolChoice(NO_TOOL, "find"),))


def test_who_refuses_or_does_not_end_has_not_passed():
    asked = case([{"tool": "find", "arguments": {"q": "tea"}}])
    assert judged(asked, text="no", refused=True).verdict == "refused"
    assert judged(asked, call("find", {"q": "tea"}), cut=True).verdict == "unfinished"
    assert judged(asked).verdict == "no-call"


def test_the_matrix_has_what_was_chosen_where_something_was_expected():
    asked = case([ORDER, {"tool": "cancel", "arguments": {"id": 1}}])
    assert judged(asked, call("order", GIVEN), call("find")).choices == (
        ToolChoice("order", "order"),
        ToolChoice("cancel", "find"),
    )
    assert judged(asked).choices == (ToolChoice("order", NO_TOOL), ToolChoice("cancel", NO_TOOL))
    assert judged(asked, call("order", GIVEN), call("cancel", {"id": 1}, 2)).choices == (
        ToolChoice("order", "order"),
        ToolChoice("cancel", "cancel"),
    )


def test_every_verdict_is_said_in_words():
    assert "unanswered" in VERDICTS
    assert all(words for words in VERDICTS.values())
