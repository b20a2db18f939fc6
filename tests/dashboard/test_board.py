"""The board as a view: what comes first, what is counted, what a filter keeps."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_pipeline.dashboard.board import board
from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.words import STATUSES


def stage(outcome: str | None, verdict: str = "up-to-date", **facts: Any) -> dict[str, Any]:
    return {"outcome": outcome, "verdict": verdict, "reasons": [], "message": "", "summary": {}, **facts}


def server(name: str, *outcomes: Any, **row: Any) -> ServerFacts:
    stages = {
        key: one if isinstance(one, dict) else stage(one)
        for key, one in zip(("build", "validate"), outcomes, strict=False)
    }
    return ServerFacts("zoo", name, {"server": name, "stages": stages, "channels": {}, "version": "1.0", **row})


ZOO = WorkspaceFacts(
    "zoo",
    (
        server("fine", "passed", "passed", channels={"staging": {"version": "1.0", "candidate": "c"}}),
        server("new", None, None),
        server("old", "passed", stage("passed", "run", reasons=["spec changed", "runtime 0.3 → 0.4", "rules 1 → 2"])),
        server("sick", "passed", stage("failed", "blocked", message="score 12", summary={"score": 12})),
        server("dead", "errored", None),
        server("busy", "passed", None, running="validate"),
        server("gone", problem={"message": "pipeline/state/gone.json is not a state", "hint": "delete it"}),
    ),
)


def test_what_needs_a_person_comes_first_and_what_is_well_comes_last() -> None:
    names = [row.name for row in board(ZOO).rows]
    assert names == ["gone", "sick", "dead", "busy", "old", "new", "fine"]


def test_every_server_is_counted_once_under_its_worst_stage() -> None:
    view = board(ZOO)
    assert {count.status.key: count.number for count in view.counts} == {
        "broken": 1, "failed": 1, "errored": 1, "running": 1, "stale": 1, "never": 1, "passed": 1,
    }  # fmt: skip
    assert sum(count.number for count in view.counts) == view.total == 7


def test_a_stage_that_passed_and_would_run_again_is_stale_and_says_why() -> None:
    old = next(row for row in board(ZOO).rows if row.name == "old")
    assert old.cells[1].status.key == "stale"
    assert old.cells[1].note == "spec changed; runtime 0.3 → 0.4; and 1 more"


def test_filters_keep_names_that_contain_the_words_and_servers_of_that_status() -> None:
    assert [row.name for row in board(ZOO, query="O").rows] == ["gone", "old"]
    assert [row.name for row in board(ZOO, chosen="failed").rows] == ["sick"]
    assert [row.name for row in board(ZOO, query="x", chosen="failed").rows] == []
    assert len(board(ZOO, chosen="no such status").rows) == 7


def test_a_server_whose_state_cannot_be_read_is_shown_with_the_reason() -> None:
    gone = board(ZOO).rows[0]
    assert (gone.status.key, gone.problem) == ("broken", "pipeline/state/gone.json is not a state")


def test_the_same_facts_are_there_for_programs() -> None:
    data = board(ZOO).to_json()
    sick = next(row for row in data["servers"] if row["name"] == "sick")
    assert sick["status"] == "failed"
    assert sick["score"] == 12
    assert sick["stages"]["validate"] == {"status": "failed", "note": "score 12"}
    assert data["counts"]["failed"] == 1


@pytest.mark.parametrize("key", STATUSES)
def test_every_status_has_a_word_an_icon_and_a_colour(key: str) -> None:
    status = STATUSES[key]
    assert status.word
    assert status.icon
    assert status.tone in {"good", "bad", "warn", "busy", "none"}
