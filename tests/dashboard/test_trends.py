"""Trends: what is counted from histories, on an axis of time, with what was promoted; nothing yet, and one point, are states, too."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.trends import trends_page
from tests.dashboard.conftest import Bench


def finished(day: int, run: str, outcome: str = "passed", **facts: Any) -> dict[str, Any]:
    return {
        "event": "stage.finished", "at": f"2026-05-{day:02}T12:00:00Z", "run": run, "seconds": 2.0, "stage": "test", "outcome": outcome, **facts,
    }  # fmt: skip


def moved(day: int, kind: str = "promoted", **facts: Any) -> dict[str, Any]:
    return {"event": kind, "at": f"2026-05-{day:02}T18:00:00Z", "channel": "production", "version": "1.0", **facts}


def figures(page: Any) -> dict[str, tuple[float | None, ...]]:
    return {series.name: series.values for series in page.series}


def test_a_server_has_a_point_for_each_run_with_what_was_known_then() -> None:
    events = [
        finished(1, "A", built={"facts": {"tools": 3, "tokens": 300}}),
        finished(1, "A", summary={"score": 80}),
        finished(2, "B", built={"facts": {"tools": 4, "tokens": 410}}),
    ]
    page = trends_page("zoo", {"atlas": events}, server="atlas")
    assert figures(page) == {
        "score": (80.0, 80.0), "duration": (4.0, 2.0), "flakiness": (0.0, 0.0), "tools": (3.0, 4.0), "tokens": (300.0, 410.0),
        "lead time": (None, None),
    }  # fmt: skip


def test_all_servers_together_go_day_by_day() -> None:
    histories = {
        "a": [finished(1, "A", summary={"score": 80}, built={"facts": {"tools": 3}})],
        "b": [finished(3, "B", summary={"score": 100}, built={"facts": {"tools": 5}})],
    }
    page = trends_page("zoo", histories)
    assert page.at == ("2026-05-01", "2026-05-03")
    told = figures(page)
    assert (told["score"], told["duration"], told["tools"]) == ((80.0, 90.0), (2.0, 2.0), (3.0, 8.0))
    assert told["tokens"] == (None, None)


def test_a_step_is_flaky_that_ends_otherwise_though_it_read_the_same() -> None:
    events = [
        finished(1, "A", fingerprint="x"),
        finished(2, "B", "failed", fingerprint="x"),
        finished(2, "B", fingerprint="x", stage="validate"),
        finished(3, "C", fingerprint="changed"),
        finished(4, "D", "inconclusive", fingerprint="changed"),
        finished(5, "E", fingerprint="changed", stage="other"),
        finished(6, "F", fingerprint=""),
    ]
    assert figures(trends_page("zoo", {"a": events}, server="a"))["flakiness"] == (0.0, 50.0, 0.0, 0.0, 0.0, 0.0)
    assert figures(trends_page("zoo", {"a": events[:1], "b": events[1:2]}))["flakiness"] == (0.0, 0.0)


def test_lead_time_is_from_the_run_that_built_a_candidate_to_its_first_day_in_production() -> None:
    built = {"candidate": "c", "built": {"facts": {}}}
    events = [
        {"event": "stage.started", "at": "2026-05-01T06:00:00Z", "run": "A", "stage": "generate"},
        finished(1, "A", **built, stage="build"),
        finished(2, "B", **built, stage="build"),
        moved(2, channel="staging", candidate="c"),
        moved(3, candidate="c"),
        moved(4, "rolled-back", candidate="older"),
        moved(5, candidate="c"),
        moved(6, candidate="of another machine"),
    ]
    page = trends_page("zoo", {"a": events}, server="a")
    assert [value for value in figures(page)["lead time"] if value is not None] == [60.0]
    assert page.at[-1] == "2026-05-03T18:00:00Z"
    later = [*events[:2], moved(2, candidate="c")]
    together = trends_page("zoo", {"a": events, "b": events, "c": later}, channel="production")
    assert dict(zip(together.at, figures(together)["lead time"], strict=True)) == {
        "2026-05-01": None, "2026-05-02": 36.0, "2026-05-03": 60.0,
    }  # fmt: skip
    assert figures(trends_page("zoo", {"a": events}, server="a", channel="staging"))["lead time"][-1] == 36.0


def test_failures_are_counted_by_cause_without_numbers_and_names() -> None:
    histories = {
        "atlas": [
            finished(1, "A", "failed", message="atlas: 3 of 40 failed"),
            finished(2, "B", "errored", message="no space"),
        ],
        "zebra": [
            finished(2, "C", "failed", message="zebra: 4 of 41 failed\nmore"),
            {**finished(2, "C"), "event": "stage.interrupted", "outcome": None, "message": "ended"},
            finished(3, "D", "inconclusive", summary={"soaking": True}),
        ],
    }
    page = trends_page("zoo", histories)
    assert [(lane.status.key, lane.total, lane.values) for lane in page.failures] == [
        ("failed", 2, (1, 1, 0)), ("errored", 1, (0, 1, 0)), ("interrupted", 1, (0, 1, 0)),
    ]  # fmt: skip
    assert next((one.cause, one.number, one.servers, one.last[:10]) for one in page.causes) == (
        "…: n of n failed", 2, 2, "2026-05-02",
    )  # fmt: skip


@pytest.fixture
def client(library: Bench) -> TestClient:
    return TestClient(create_app(library.root), base_url="http://localhost", headers={"Accept": "text/html"})


def test_they_are_drawn_and_told_as_a_table(library: Bench, client: TestClient) -> None:
    for path in ("/trends/", "/servers/atlas/trends/"):
        page = client.get(path).text
        assert '<svg class="chart"' in page
        assert '<th scope="col" class="number">lead time</th>' in page
        assert "Failures by cause" in page
        assert "score n" in page
    assert client.get("/servers/none/trends/").status_code == 404
