"""The board as a view: what comes first, what is counted, what a filter keeps."""

from __future__ import annotations

from typing import Any

from mcpfactory_pipeline.dashboard.board import board
from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts


def stage(outcome: str | None, verdict: str = "up-to-date", **facts: Any) -> dict[str, Any]:
    return {"outcome": outcome, "verdict": verdict, "reasons": [], "message": "", "summary": {}, **facts}


def server(name: str, *outcomes: Any, **row: Any) -> ServerFacts:
    stages = {
        key: one if isinstance(one, dict) else stage(one)
        for key, one in zip(("build", "validate"), outcomes, strict=False)
    }
    tools = row.pop("tools", None)
    return ServerFacts(
        "zoo", name, {"server": name, "stages": stages, "channels": {}, "version": "1.0", **row}, tools=tools
    )


ZOO = WorkspaceFacts(
    "zoo",
    (
        server("fine", "passed", "passed", channels={"staging": {"version": "1.0", "candidate": "c"}}),
        server("new", None, None),
        server("old", "passed", stage("passed", "run", reasons=["spec changed", "runtime 0.3 → 0.4", "rules 1 → 2"])),
        server("sick", "passed", stage("failed", "blocked", message="score 12", summary={"score": 12})),
        server("dead", "errored", None),
        server("busy", "passed", None, at_work=["validate"]),
        server("gone", problem={"message": "pipeline/state/gone.json is not a valid state", "hint": "delete it"}),
    ),
)


def test_what_needs_a_person_comes_first_and_what_is_well_comes_last() -> None:
    names = [row.name for row in board(ZOO).servers]
    assert names == ["gone", "sick", "dead", "busy", "old", "new", "fine"]


def test_every_server_is_counted_once_under_its_worst_stage() -> None:
    view = board(ZOO)
    assert {count.key: count.number for count in view.counts} == {
        "broken": 1, "failed": 1, "errored": 1, "running": 1, "stale": 1, "never": 1, "passed": 1,
    }  # fmt: skip
    assert sum(count.number for count in view.counts) == view.total == 7


def test_a_stage_that_passed_and_would_run_again_is_stale_and_says_why() -> None:
    old = next(row for row in board(ZOO).servers if row.name == "old")
    assert old.cells[1].status.key == "stale"
    assert old.cells[1].note == "spec changed; runtime 0.3 → 0.4; and 1 more"


def test_filters_keep_names_that_contain_the_words_and_servers_of_that_status() -> None:
    assert [row.name for row in board(ZOO, query="O").servers] == ["gone", "old"]
    assert [row.name for row in board(ZOO, status="failed").servers] == ["sick"]
    assert [row.name for row in board(ZOO, query="x", status="failed").servers] == []
    assert len(board(ZOO, status="no such status").servers) == 7


def test_a_server_whose_state_cannot_be_read_is_shown_with_the_reason() -> None:
    gone = board(ZOO).servers[0]
    assert (gone.status.key, gone.problem) == ("broken", "pipeline/state/gone.json is not a valid state")


def test_rows_are_sorted_either_way_and_those_without_a_value_stand_last() -> None:
    facts = WorkspaceFacts("zoo", (server("b", tools=3), server("a", tools=5), server("c"), server("d", tools=1)))
    assert [row.name for row in board(facts, sort="tools").servers] == ["d", "b", "a", "c"]
    assert [row.name for row in board(facts, sort="-tools").servers] == ["a", "b", "d", "c"]
    assert [row.name for row in board(facts, sort="-name").servers] == ["d", "c", "b", "a"]
    assert board(facts, sort="no such column").sort == "status"


def test_a_long_board_is_shown_a_page_at_a_time() -> None:
    facts = WorkspaceFacts("zoo", tuple(server(f"s{number:03}") for number in range(95)))
    pages = [board(facts, page=str(number)) for number in (1, 2, 3)]
    assert [row.name for page in pages for row in page.servers] == [f"s{number:03}" for number in range(95)]
    assert pages[2].pager.pages == 3
    assert board(facts, page="99").pager.page == 3
    assert [board(facts, page=wrong).pager.page for wrong in ("0", "-1", "x", "²", "9" * 40)] == [1] * 5


def test_what_is_held_or_retired_says_so() -> None:
    hold = {"actor": "Ada", "reason": "two was bad"}
    facts = WorkspaceFacts(
        "zoo",
        (
            server("stage", "passed", stage("passed", "held", reasons=["held by Ada: two was bad"])),
            server("channel", "passed", "passed", holds={"production": hold}),
            server("over", stage("passed", "held"), stage("passed", "held"), retired=hold),
            server("sick", "failed", stage(None, "held")),
        ),
    )
    rows = {row.name: row for row in board(facts).servers}
    assert {name: row.status.key for name, row in rows.items()} == {
        "stage": "held", "channel": "held", "over": "retired", "sick": "failed",
    }  # fmt: skip
    assert rows["stage"].cells[1].note == "held by Ada: two was bad"
    assert [(offer.channel, offer.version, offer.held) for offer in rows["channel"].channels] == [
        ("production", "", "Ada: two was bad")
    ]
