"""Places of right tools: of several ways the best, of several tools the last."""

from __future__ import annotations

from mcpfactory_pipeline.checks.evaluation.offered_tools import (
    SearchModeTools,
    case_rank,
    parse_found_tools,
    random_hit_probability,
    rank_tools,
)
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "ways, ranked, direct, place",
    [
        ([["a"]], ["b", "a"], (), 2),
        ([["a"], ["b"]], ["b", "a"], (), 1),
        ([["a", "b"]], ["b", "c", "a"], (), 3),
        ([["a", "b"]], ["b", "c"], (), None),
        ([["a", "b"]], ["b", "c"], ("a",), 1),
        ([["a"]], [], (), None),
        ([], ["a"], (), None),
    ],
)
def test_the_place_of_a_case(ways, ranked, direct, place):
    assert case_rank(ways, ranked, frozenset(direct)) == place


def test_a_question_finds_the_tool_whose_words_it_has():
    tools = [
        {"name": name, "description": about, "inputSchema": {"type": "object"}}
        for name, about in (("list_orders", "Find orders."), ("cancel_order", "Call off an order."), ("ping", "Pong."))
    ]
    assert rank_tools(tools, "cancel the order of this morning")[0] == "cancel_order"
    assert rank_tools(tools, "ping")[0] == "ping"


def test_answers_of_the_searching_tool_are_read():
    answer = "2 of 9 tools, best first:\n- get_a(id): Read - and write\n- list_a(): x\nPerhaps: b_c, d\ndescribe_tools says …"
    assert parse_found_tools(answer) == ["get_a", "list_a", "b_c", "d"]
    assert parse_found_tools("Found none of 9 tools.") == []


def test_the_three_tools_are_known_by_what_calls_others():
    mode = [
        {"name": "search_api_tools"},
        {"name": "describe_api_tools"},
        {"name": "call_api_tool", "_meta": {"mcpfactory/calls": True}},
        {"name": "send_many"},
    ]
    found = SearchModeTools(mode)
    assert (found.call, found.search, found.direct) == ("call_api_tool", "search_api_tools", {"send_many"})
    plain = SearchModeTools([{"name": "search_tools"}, {"name": "add"}])
    assert (plain.call, plain.search, plain.direct) == (None, None, {"search_tools", "add"})


def test_chance_is_what_a_random_order_finds():
    assert [random_hit_probability(4, within) for within in (1, 2, 10)] == [0.25, 0.5, 1.0]
