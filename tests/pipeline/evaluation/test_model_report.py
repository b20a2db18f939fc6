"""A report is counted from its attempts, survives its file, and is of one tool list and one set of cases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.checks.evaluation.evaluation_reports import (
    comparison_rows,
    load_model_report,
    model_case_rows,
    model_report_markdown,
    model_setting_rows,
    read_model_reports,
    report_file,
    write_model_report,
)
from mcpfactory_pipeline.checks.evaluation.judgment import (
    NO_TOOL,
    Attempt,
    MadeCall,
    ModelRunSetting,
    ToolChoice,
    WrongArgument,
)
from mcpfactory_pipeline.checks.evaluation.model_endpoint import TokenUsage
from mcpfactory_pipeline.checks.evaluation.model_report import (
    ModelPrices,
    ModelReport,
    hash_cases,
    hash_shown_tools,
    read_report,
)
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from tests.subtest_table import parametrize_subtests

FULL, SEARCH = ModelRunSetting(), ModelRunSetting(mode="search")
RIGHT, WRONG = ToolChoice("find", "find"), ToolChoice("find", "list")


def attempt(case: str, verdict: str, setting: ModelRunSetting = FULL, **more) -> Attempt:
    choices = (WRONG,) if verdict == "wrong-tool" else (RIGHT,)
    usage = TokenUsage(1000, 400, 50) if verdict != "unanswered" else TokenUsage()
    more = {"turns": 2, "seconds": 3.0, "waited": 2.0, "faults": (verdict,), **more}
    return Attempt(case, setting, 1, verdict, choices=choices, usage=usage, **more)


def report(*attempts: Attempt, **more) -> ModelReport:
    lists = {FULL: (4, 900)} | {one.setting: (4, 900) for one in attempts}
    questions = {"tea": "Tea?", "milk": "Milk?"}
    given = {"repeat": 2, "lists": lists, "questions": questions, "attempts": attempts, **more}
    return ModelReport("shop", "openai:x", "http://here/v1", date(2026, 11, 1), "sha256:t", "sha256:c", **given)


PASSED = [attempt(case, "passed") for case in ("tea", "milk") for _ in range(2)]
MIXED = [attempt("tea", "passed"), attempt("tea", "wrong-tool"), attempt("milk", "passed"), attempt("milk", "passed")]


def test_the_rate_is_over_questions_and_that_of_a_case_over_its_attempts():
    found = report(*MIXED)
    assert (found.rate(FULL).rate, found.rate(FULL).questions) == (0.75, 2)
    assert (found.case_rate(FULL, "tea").rate, found.case_rate(FULL, "tea").questions) == (0.5, 2)
    assert found.missing(FULL) == 0
    assert dict(found.confusion(FULL)) == {("find", "find"): 3, ("find", "list"): 1}
    assert found.confused_cases() == {("find", "list"): ["tea"]}


def test_what_was_not_answered_is_no_failure_and_is_missing():
    found = report(attempt("tea", "passed"), attempt("tea", "unanswered"), attempt("milk", "passed"))
    assert found.rate(FULL).rate == 1.0
    assert found.missing(FULL) == 2, "one without an answer, one that was never asked"
    assert "2 unanswered" in model_setting_rows(found)[0][4]


def test_tokens_are_paid_by_the_prices_that_were_given_and_those_from_a_cache_by_theirs():
    prices = ModelPrices(read=10, written=100, cached=1, currency="EUR")
    found = report(*MIXED, prices=prices)
    assert found.cost(FULL) == pytest.approx(4 * (600 * 10 + 400 * 1 + 50 * 100) / 1e6)
    assert model_setting_rows(found)[0][-1] == "0.0456 EUR"
    assert report(*MIXED).cost(FULL) is None


def test_a_report_is_the_same_out_of_its_file_and_its_figures_are_not_believed(tmp_path):
    wrong = (WrongArgument("find", "q", "missing", '"tea"'),)
    calls = (MadeCall("find", None, 1, "x" * 1000, failed=True), MadeCall("find", {"q": 1}, 2, machinery=True))
    made = report(
        *MIXED, attempt("milk", "wrong-arguments", SEARCH, wrong=wrong, calls=calls), prices=ModelPrices(1, 2, 3)
    )
    file = write_model_report(tmp_path, made)
    assert file == report_file(tmp_path, "openai:x") == tmp_path / "evals/reports/openai-x.json"
    again = load_model_report(file)
    assert again.to_json() == json.loads(file.read_text())
    assert again.rate(FULL) == made.rate(FULL)
    assert len(again.of(SEARCH)[0].calls[0].answer) == 300
    data = json.loads(file.read_text())
    data["figures"][0]["rate"] = {"rate": 1.0, "lower": 1.0, "upper": 1.0, "questions": 99}
    file.write_text(json.dumps(data))
    assert read_model_reports(tmp_path)[0].rate(FULL) == made.rate(FULL)
    assert file.with_suffix(".md").read_text() == model_report_markdown(made)


@parametrize_subtests(
    "spoil",
    [
        lambda data: data.update(evaluation=2),
        lambda data: data.pop("attempts"),
        lambda data: data.update(asked="yesterday"),
        lambda data: data["attempts"][0].update(verdict="splendid"),
        lambda data: data["attempts"][0].update(more=1),
        lambda data: data.update(lists=[{"profile": "full"}]),
    ],
)
def test_what_is_no_report_is_an_error(spoil):
    data = report(*MIXED).to_json()
    read_report(json.dumps(data).encode(), "here")
    spoil(data)
    with pytest.raises(StateError, match=r"^here is not a valid evaluation report"):
        read_report(json.dumps(data).encode(), "here")


def test_the_difference_is_over_the_questions_that_both_answered():
    before = report(*[attempt(case, "wrong-tool") for case in ("tea", "milk") for _ in range(2)])
    after = report(*PASSED)
    assert after.against(FULL, before).change == 1.0
    asked_otherwise = replace(before, questions={"tea": "Tea?", "milk": "Any milk?"})
    assert after.against(FULL, asked_otherwise).questions == 1
    rows = comparison_rows(report(*PASSED, *[attempt(case, "wrong-tool", SEARCH) for case in ("tea", "milk")]), before)
    assert [row[0] for row in rows] == ["full, search against full, full", "full, full against openai:x of 2026-11-01"]
    assert rows[0][1].startswith("-100 points")


def test_the_page_shows_the_matrix_the_arguments_and_what_did_not_pass():
    wrong = (WrongArgument("find", "q", "missing", '"tea"'),)
    page = model_report_markdown(report(*MIXED, attempt("milk", "no-call", wrong=wrong, faults=("a | b",))))
    assert "| find | list | 1 |" in page
    assert "| find | the same | 4 |" in page
    assert "| find | q | missing | 1 |" in page
    assert "- milk: no tool was called: a \\| b" in page
    assert model_case_rows(report(*MIXED), FULL)[0] == ("tea", "1/2", "9–91%", "wrong-tool")


TOOL = {"name": "find", "description": "Find tea.", "inputSchema": {"type": "object"}, "outputSchema": {}, "_meta": {}}


def test_the_hash_of_a_list_is_of_what_a_model_may_see():
    other = {**TOOL, "name": "list"}
    assert hash_shown_tools([TOOL, other]) == hash_shown_tools(
        [other, {**TOOL, "_meta": {"a": 1}, "outputSchema": {"b": 1}}]
    )
    for changed in ({"description": "Find milk."}, {"title": "Find"}, {"inputSchema": {}}, {"annotations": {"a": 1}}):
        assert hash_shown_tools([{**TOOL, **changed}]) != hash_shown_tools([TOOL])
    case = EvaluationCase(name="a", question="q", right=[])
    assert hash_cases([case]) != hash_cases([case.model_copy(update={"question": "r"})])
    assert NO_TOOL not in {TOOL["name"]}
