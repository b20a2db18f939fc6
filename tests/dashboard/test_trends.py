"""Trends: what is counted from histories, on an axis of time, with what was promoted; nothing yet, and one point, are states, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.charts import lanes, line, time_axis
from mcpfactory_pipeline.dashboard.pages import PAGES
from mcpfactory_pipeline.dashboard.render import Links, render
from mcpfactory_pipeline.dashboard.trends import TrendMark, trends_page
from tests.dashboard.conftest import Bench
from tests.dashboard.test_size import LIMIT, NAME, TEXT


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


def test_what_moved_is_marked_each_time_for_a_server_and_each_day_for_all() -> None:
    events = [finished(1, "A"), moved(2), moved(2, "rolled-back"), moved(3, "published", target="pypi")]
    one = trends_page("zoo", {"a": [moved(1, version="before"), *events[1:], *events[:1]]}, server="a")
    assert [(mark.kind, mark.about) for mark in one.marks] == [
        ("promoted", "before in production"), ("promoted", "1.0 in production"), ("rolled-back", "1.0 in production"), ("published", "1.0 in pypi"),
    ]  # fmt: skip
    all_of_them = trends_page("zoo", {f"s{number}": events for number in range(5)})
    assert [(mark.at, mark.kind, mark.number, mark.about) for mark in all_of_them.marks] == [
        ("2026-05-02", "promoted", 5, "s0 1.0, s1 1.0, s2 1.0 and 2 more in production"),
        ("2026-05-02", "rolled-back", 5, "s0 1.0, s1 1.0, s2 1.0 and 2 more in production"),
        ("2026-05-03", "published", 5, "s0 1.0, s1 1.0, s2 1.0 and 2 more in pypi"),
    ]


def test_the_axis_is_one_of_time_and_one_moment_is_in_the_middle() -> None:
    mark = TrendMark("2026-05-09", "promoted", "1.0", 1)
    axis = time_axis(("2026-05-01", "2026-05-02", "2026-05-05"), (mark,))
    assert axis.places == (0.0, 41.2, 165.0)
    assert [(tick.at, tick.text) for tick in axis.ticks] == [
        (0.0, "2026-05-01"), (165.0, "2026-05-05"), (330.0, "2026-05-09"),
    ]  # fmt: skip
    assert [(one.x, one.row) for one in axis.marks] == [(330.0, 0)]
    assert time_axis(("2026-05-01T12:00:00Z",)).places == (165.0,)
    within = time_axis(("2026-05-01T12:00:00Z", "2026-05-01T18:00:00Z"))
    assert [tick.text for tick in within.ticks] == ["05-01 12:00", "05-01 15:00", "05-01 18:00"]


def test_marks_at_nearly_one_moment_stand_above_each_other_and_those_apart_beside() -> None:
    kinds = ("promoted", "rolled-back", "published", "promoted")
    marks = [TrendMark(f"2026-05-09T12:00:{second:02}Z", kind, "1.0", 1) for second, kind in enumerate(kinds)]
    later = TrendMark("2026-05-12T12:00:00Z", "promoted", "1.1", 1)
    axis = time_axis(("2026-05-01T12:00:00Z", "2026-05-11T12:00:00Z"), (*marks, later))
    assert ([one.row for one in axis.marks], axis.rows) == ([0, 1, 2, 3, 0], 4)
    assert time_axis(("2026-05-01",)).rows == 1


def test_a_line_goes_from_the_lowest_or_zero_to_the_highest_through_what_is_known() -> None:
    drawn = line((0.0, 50.0, 330.0), (10.0, None, 20.0))
    assert drawn.path == "M0.0 110.0L330.0 0.0"
    assert [tick.text for tick in drawn.ticks] == ["10", "20"]
    assert [tick.text for tick in line((0.0, 330.0), (10.0, 20.0), from_zero=True).ticks] == ["0", "20"]
    assert line((0.0, 330.0), (None, None)).dots == ()
    assert line((165.0,), (5.0,)).dots == ((165.0, 55.0),)
    assert line((165.0,), (0.0,), from_zero=True).dots == ((165.0, 110.0),)
    assert [(bar[0], bar[2], bar[3]) for bar in lanes((0.0, 50.0, 100.0), (4, 0, 2)).bars] == [
        (-2.5, 26.0, 4),
        (97.5, 13.0, 2),
    ]


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


def test_nothing_yet_one_point_and_what_is_missing_say_so(library: Bench, client: TestClient) -> None:
    empty = client.get("/servers/zebra/trends/").text
    assert "Nothing ran yet" in empty
    assert "mcpfactory pipeline run zebra" in empty
    first = client.get("/servers/weather/trends/").text
    assert "One run so far: lines begin with the second." in first
    assert "Not known yet. It comes with the first promotion to production." in first
    assert "All steps that are shown here passed." in first
    library.passed("weather", "generate", run=new_id())
    assert "One run so far" not in client.get("/servers/weather/trends/").text


def test_flakiness_is_seen_through_the_files(library: Bench, client: TestClient) -> None:
    library.finished("weather", "generate", "failed", fresh=False, run=new_id())
    for path, values in (("/servers/weather/trends/", [0.0, 100.0]), ("/trends/", [9.1])):
        told = client.get(path, headers={"Accept": "application/json"}).json()
        assert next(one["values"] for one in told["series"] if one["name"] == "flakiness") == values


def test_the_page_is_small_however_much_happened() -> None:
    events: list[dict[str, Any]] = []
    for number in range(300):
        day = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T12:00:00Z"
        events += [
            {**finished(1, f"r{number}", "failed", message=f"{chr(97 + number % 26)} {TEXT}"), "at": day},
            {**moved(1, version=TEXT), "at": day},
        ]
    page = next(page for page in PAGES if page.name == "trends")
    for server in ("", NAME):
        view = trends_page("big", {NAME: events}, server=server)
        assert len(view.at) == 90
        assert len(render(page, view, Links("/trends/")).encode()) < LIMIT


def test_tools_that_the_build_did_not_count_are_those_that_the_candidate_listed(bench: Bench) -> None:
    bench.add("prose")
    candidate = bench.built("prose", "1.0.0")
    folder = bench.workspace.artifacts / "prose" / candidate / "validate"
    folder.mkdir()
    client = TestClient(create_app(bench.root), base_url="http://127.0.0.1")
    path = "/servers/prose/trends/?format=json"
    assert shown(client, path)["tools"] == [None]
    (folder / "tools.json").write_text(json.dumps({"tools": [{"name": "read"}, {"name": "write"}]}))
    bench.finished("prose", "validate", "passed", candidate=candidate)
    for told in (shown(client, path), shown(client, "/trends/?format=json")):
        assert told["tools"] == [2.0]
        assert told["tokens"][0] > 0


def shown(client: TestClient, path: str) -> dict[str, list[float | None]]:
    return {series["name"]: series["values"] for series in client.get(path).json()["series"]}
