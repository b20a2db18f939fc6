"""A case must fail with some list: one that passes whatever the tools are called and say is worthless, and is said to be."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from mcpfactory_pipeline.checks.evaluation.case_quality import (
    DISTORTIONS,
    LISTS,
    distort_tool_list,
    rate_cases_by_search,
    rate_cases_from_report,
)
from mcpfactory_pipeline.checks.evaluation.confusable_tools import find_confused_pairs
from mcpfactory_pipeline.checks.evaluation.judgment import Attempt, ModelRunSetting, ToolChoice
from mcpfactory_pipeline.checks.evaluation.model_report import ModelReport
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase

ABOUT = {
    "get_weather": "Say how warm it is outside, and whether it rains.",
    "get_tide": "Say when the sea is high.",
    "book_table": "Reserve seats in a restaurant for an evening.",
    "call_taxi": "Send a car with a driver to an address.",
    "list_museums": "Find galleries and exhibitions of a town.",
    "buy_ticket": "Pay for a train to another city.",
    "translate": "Put a sentence into another language.",
}
TOOLS = [
    {
        "name": name,
        "description": text,
        "inputSchema": {"type": "object", "properties": {f"a{number}": {"type": "string"}}},
    }
    for number, (name, text) in enumerate(ABOUT.items())
]


def case(name: str, question: str, *tools: str) -> EvaluationCase:
    right = [[{"tool": tool} for tool in tools]] if tools else []
    return EvaluationCase.model_validate({"name": name, "question": question, "right": right})


@pytest.mark.parametrize("words", DISTORTIONS)
def test_in_a_damaged_list_no_tool_keeps_the_words_that_are_swapped_and_all_stay_callable(words):
    shown, stands_for = distort_tool_list(TOOLS, words)
    real = {stands_for.get(tool["name"], tool["name"]): tool for tool in shown}
    assert set(real) == set(ABOUT), "each tool is reached by exactly one name"
    for tool in TOOLS:
        seen = real[tool["name"]]
        assert seen["inputSchema"] == tool["inputSchema"]
        assert (seen["description"] == tool["description"]) is (words == "renamed")
        assert (seen["name"] == tool["name"]) is (words == "shuffled")
    assert sorted(tool["description"] for tool in shown) == sorted(ABOUT.values())
    assert distort_tool_list(TOOLS, "own") == (TOOLS, {})


def test_without_a_model_the_search_index_tells_which_cases_hang_on_the_words():
    cases = [
        case("rain", "Does it rain outside, and is it warm?", "get_weather"),
        case("by-arguments", "What about a4?", "list_museums"),
        case("sing", "Sing.", "get_tide"),
        case("none", "What is love?"),
    ]
    found = {one.case: one for one in rate_cases_by_search(cases, TOOLS)}
    assert {name: one.worth for name, one in found.items()} == {
        "rain": "tells",
        "by-arguments": "worthless",
        "sing": "fails",
        "none": "restraint",
    }
    assert found["rain"].words == "tells lists apart: fails with the shuffled and the swapped one"
    assert found["rain"].passed == {"own": 1.0, "shuffled": 0.0, "renamed": 1.0, "swapped": 0.0}


def report(verdicts: dict[str, dict[str, str]], **choices: ToolChoice) -> ModelReport:
    attempts = [
        Attempt(name, ModelRunSetting(words=words), 1, verdict, choices=(choices[name],) if name in choices else ())
        for words, of in verdicts.items()
        for name, verdict in of.items()
    ]
    names = dict.fromkeys(name for of in verdicts.values() for name in of)
    lists = {ModelRunSetting(words=words): (7, 300) for words in verdicts}
    return ModelReport(
        "town", "openai:x", "", date(2026, 11, 1), "t", "c", 1, {name: f"{name}?" for name in names}, lists, attempts
    )


def test_with_a_model_its_answers_tell():
    cases = [case("a", "a?", "get_tide"), case("b", "b?", "get_tide"), case("c", "c?", "get_tide"), case("d", "d?")]
    always = dict.fromkeys("abcd", "passed")
    made = report(
        {
            "own": {**always, "c": "wrong-tool"},
            "shuffled": always,
            "renamed": {**always, "c": "passed"},
            "swapped": {**always, "a": "wrong-tool", "c": "wrong-tool"},
        }
    )
    found = {one.case: one.worth for one in rate_cases_from_report(cases, made)}
    assert found == {"a": "tells", "b": "worthless", "c": "fails", "d": "restraint"}
    assert set(LISTS) == {"own", *DISTORTIONS}


def test_confused_tools_come_with_both_texts_and_the_questions_and_damaged_lists_do_not_count():
    mistake = ToolChoice("get_weather", "get_tide")
    made = report(
        {"own": {"a": "wrong-tool", "b": "wrong-tool"}, "shuffled": {"a": "wrong-tool"}}, a=mistake, b=mistake
    )
    gone = report(
        {"own": {"c": "wrong-tool", "d": "no-call"}},
        c=ToolChoice("get_weather", "old"),
        d=ToolChoice("buy_ticket", "(none)"),
    )
    pairs = find_confused_pairs(TOOLS, [made, gone, made])
    assert [(one.expected, one.chosen, one.times) for one in pairs] == [
        ("get_weather", "get_tide", 4),
        ("get_weather", "old", 1),
    ]
    assert Counter(pairs[0].questions) == Counter({"a?": 2, "b?": 2})
    assert pairs[0].texts == {name: ABOUT[name] for name in ("get_weather", "get_tide")}
    assert pairs[1].texts["old"] == ""
    assert pairs[0].advice.startswith("begin get_weather with what these questions ask for")
