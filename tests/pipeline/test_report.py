"""What a person or a program sees of a run."""

from __future__ import annotations

import io
import json

from mcpfactory_pipeline.reporting import make_reporter
from mcpfactory_pipeline.reporting.line_reporter import status_summary, status_table
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.status import status
from tests.pipeline.fake_stages import add_server


def shown(run, kind: str, *names: str, **options) -> str:
    stream = io.StringIO()
    run(*names, reporter=make_reporter(kind, stream), **options)
    return stream.getvalue()


def test_plain_lines_say_what_ran_why_and_how_it_ended(workspace, run):
    add_server(workspace.root, "books")
    lines = shown(run, "plain", "books").splitlines()
    assert lines[0] == "books: build starts (never run)"
    assert lines[1].startswith("books: build passed in ")
    assert lines[-1].startswith("1 server: 1 passed; 3 stages ran in ")


def test_plain_lines_show_the_end_of_the_log_of_what_failed_and_what_to_do(workspace, run):
    add_server(workspace.root, "books", outcome="failed")
    text = shown(run, "plain", "books")
    assert "  test | the outcome is to be failed" in text
    assert "  log: mcpfactory pipeline history books test\n" in text
    assert "books: staging blocked: needs test, which failed" in text
    assert "1 server: 1 failed" in text
    assert "hint: mcpfactory pipeline history books test " in text.splitlines()[-1]
    again = shown(run, "plain", "books")
    assert "hint: mcpfactory pipeline history books test " in again, "also if the stage failed in an earlier run"


def test_a_run_with_nothing_to_do_says_so_in_one_line(workspace, run):
    add_server(workspace.root, "books")
    run()
    text = shown(run, "plain")
    assert text.startswith("1 server: 1 passed; nothing to do: no stage ran")
    assert text.count("\n") == 1


def test_trouble_is_told_with_its_hint(workspace, run):
    add_server(workspace.root, "books")
    run()
    Store(workspace).state_file("books").write_text("[]")
    text = shown(run, "plain")
    assert "books: error: pipeline/state/books.json does not match its history" in text
    assert "books: hint: mcpfactory pipeline verify --repair books" in text


def test_json_lines_are_one_event_each_and_end_with_the_outcome(workspace, run):
    add_server(workspace.root, "books", outcome="failed")
    events = [json.loads(line) for line in shown(run, "json").splitlines()]
    started = {"event": "run.started", "servers": ["books"], "stages": ["build", "test", "staging"], "isolation": ""}
    assert events[0] == started  # these stages run in the process of the test, and so nothing keeps them apart
    assert [event["event"] for event in events[1:]] == [
        "step.started", "step.finished", "step.started", "step.finished", "log", "step.skipped", "run.finished",
    ]  # fmt: skip
    assert events[-1]["servers"] == {"books": "failed"}
    assert events[-1]["ran"] == 2
    assert events[-1]["failed"] == {"books": "test"}


def test_the_live_table_ends_with_every_outcome_in_words(workspace, run):
    add_server(workspace.root, "books", outcome="failed")
    text = shown(run, "live")
    for word in (
        "SERVER",
        "BUILD",
        "books",
        "ok",
        "FAILED",
        "blocked",
        "log: mcpfactory pipeline history books test",
        "1 server: 1 failed",
    ):
        assert word in text
    assert "test | " not in text, "the log is not on the screen"


def test_the_status_table_has_a_column_for_each_stage(workspace, run):
    folder = add_server(workspace.root, "a")
    add_server(workspace.root, "b", outcome="failed")
    add_server(workspace.root, "c")
    add_server(workspace.root, "d")
    run("a", "b", "d")
    (folder / "source.txt").write_text("two")
    Store(workspace).state_file("d").write_text("[]")
    summary = {server: stages for server, _, stages, _ in status_summary(status(workspace))[1]}
    assert summary["a"].startswith("build stale +")
    assert summary["b"].startswith("test FAILED")
    assert (summary["c"], summary["d"]) == ("generate not run +4", "error")
    header, cells = status_table(status(workspace))
    assert header == ("SERVER", "CANDIDATE", "GENERATE", "BUILD", "TEST", "VALIDATE", "STAGING", "CHANNELS")
    a, b, c, d = cells
    assert a[0] == "a"
    assert a[1].startswith("1.0 ")
    assert a[3] == "stale"
    assert a[7] == "staging 1.0"
    assert b[4].startswith("FAILED")
    assert c[1:] == ("-",) * 7
    assert d[-1].startswith("error: pipeline/state/d.json")
    assert {len(row) for row in cells} == {len(header)}
