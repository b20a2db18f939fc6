"""What follows from a history alone: for how long, since when, by whom."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from mcpfactory_pipeline.state.timeline import actor_of, failing_since, in_channel_since, seconds_in_channel


def event(second: int, kind: str, **facts: Any) -> dict[str, Any]:
    return {"at": f"2030-01-01T00:00:{second:02}Z", "event": kind, **facts}


def at(second: int) -> datetime:
    return datetime(2030, 1, 1, 0, 0, second, tzinfo=UTC)


MOVES = (
    event(0, "promoted", channel="staging", candidate="one"),
    event(10, "promoted", channel="staging", candidate="two"),
    event(15, "promoted", channel="production", candidate="one"),
    event(20, "rolled-back", channel="staging", candidate="one"),
)


def test_the_time_of_a_candidate_in_a_channel_is_the_sum_of_its_stays() -> None:
    assert seconds_in_channel(MOVES, "staging", "one", at(25)) == 15
    assert seconds_in_channel(MOVES, "staging", "two", at(25)) == 10
    assert seconds_in_channel(MOVES, "staging", "three", at(25)) == 0


def test_a_clock_that_was_set_back_adds_no_time() -> None:
    assert seconds_in_channel(MOVES, "staging", "one", at(1)) == 10


def test_a_candidate_is_in_a_channel_since_it_came_last() -> None:
    assert in_channel_since(MOVES, "staging", "one") == at(20)
    assert in_channel_since(MOVES, "staging", "two") is None


def test_a_retired_server_is_in_no_channel_unless_its_channels_were_kept() -> None:
    assert in_channel_since([*MOVES, event(30, "retired", channel="staging")], "staging", "one") is None
    assert in_channel_since([*MOVES, event(30, "retired")], "production", "one") is None
    assert in_channel_since([*MOVES, event(30, "retired", kept=True)], "production", "one") == at(15)


def test_a_stage_fails_since_its_first_other_end_after_it_passed() -> None:
    ends = [event(second, "stage.finished", stage="test", outcome=outcome) for second, outcome in
            ((0, "failed"), (1, "passed"), (2, "failed"), (3, "errored"))]  # fmt: skip
    assert failing_since([*ends, event(4, "stage.started", stage="test")], "test") == at(2)
    assert failing_since(ends[:2], "test") is None
    assert failing_since(ends, "build") is None


def test_an_agent_is_named_with_the_person_who_confirmed() -> None:
    assert actor_of({"actor": "Ada"}) == "Ada"
    assert actor_of({"actor": "agent", "confirmed": "Ada"}) == "agent, whose client says that Ada said yes"
