"""A thousand servers: nothing that changed is missed, nothing that did not is read again, and no page is over 100 kB."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.board import SORTS, board
from mcpfactory_pipeline.dashboard.decision_log import decision_log_page, recorded_decisions
from mcpfactory_pipeline.dashboard.facts import RunFacts, ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.inbox import inbox
from mcpfactory_pipeline.dashboard.pages import PAGES
from mcpfactory_pipeline.dashboard.render import Links, render
from mcpfactory_pipeline.dashboard.runs import run_page, run_rows, runs_page
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.views.inbox import KINDS, InboxItem
from tests.dashboard.conftest import WorkspaceBuilder

NAME = "a_server_with_a_name_that_is_as_long_as_names_may_be_" + "n" * 43
TEXT = "<b>what is said here</b> & that is much; " * 12
OUTCOMES = ("passed", "failed", "errored", "inconclusive")
LIMIT = 100_000


def fact(number: int) -> ServerFacts:
    name = f"{NAME}{number:04}"
    stages = {
        stage: {"outcome": OUTCOMES[number % 4], "verdict": "run", "reasons": [TEXT] * 3, "message": TEXT, "summary": {"score": number % 100}}
        for stage in ("generate", "build", "test", "validate", "staging")
    }  # fmt: skip
    channels = {channel: {"version": "1.0.0", "candidate": "c"} for channel in ("staging", "production")}
    holds = {"production": {"actor": TEXT, "reason": TEXT}}
    item = InboxItem(KINDS[number % len(KINDS)], name, "test", TEXT, f"mcpfactory pipeline run {name}")
    row = {"server": name, "version": "1.0.0", "stages": stages, "channels": channels, "holds": holds}
    return ServerFacts("big", name, row, template="openapi", tools=number, tokens=number * 9, items=(item,))


BIG = WorkspaceFacts("big", tuple(map(fact, range(1000))))


def size(name: str, view: object, path: str) -> int:
    page = next(page for page in PAGES if page.name == name)
    return max(len(render(page, view, Links(path, static=static)).encode()) for static in (False, True))


@pytest.mark.parametrize("group", ["", "prefix"])
def test_the_board_of_a_thousand_servers_is_small_however_it_is_sorted_and_grouped(group: str) -> None:
    for sort in SORTS:
        view = board(BIG, sort=sort, group=group)
        assert view.total == 1000
        assert size("board", view, "/board/") < LIMIT, sort


def test_the_other_pages_about_a_thousand_servers_are_small_too() -> None:
    run = new_id()
    events = {server.name: steps(run) for server in BIG.servers}
    assert size("inbox", inbox(BIG), "/") < LIMIT
    assert (
        size(
            "runs",
            runs_page("big", run_rows({NAME: [event for _ in range(1000) for event in steps(new_id())]})),
            "/runs/",
        )
        < LIMIT
    )
    assert size("run", run_page(RunFacts("big", run, events)), f"/runs/{run}/") < LIMIT
    held = {
        "id": run,
        "at": "2026-01-01T00:00:00Z",
        "actor": TEXT,
        "event": "held",
        "channel": "c" * 40,
        "reason": TEXT,
    }
    decisions = recorded_decisions({NAME: [held] * 1000})
    assert size("decisions", decision_log_page("big", decisions), "/decisions/") < LIMIT


def steps(run: str) -> list[dict[str, object]]:
    return [
        {"id": new_id(), "at": "2026-01-01T00:00:00Z", "actor": TEXT, "event": event, "run": run, "stage": stage,
         "outcome": "failed", "message": TEXT, "seconds": 1.5, "reasons": [TEXT]}
        for stage in ("generate", "build", "test", "validate", "staging") for event in ("stage.started", "stage.finished")
    ]  # fmt: skip


def add(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("new")


def edit_quietly(file: Path) -> None:
    """Another content of the same size in the same file, with the time of the last write put back."""
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"weather", b"weathor"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size


def replace(file: Path) -> None:
    """Another file takes its place, as many editors save."""
    add(file.with_name("new"))
    file.with_name("new").rename(file)


def swap(folder: Path) -> None:
    """Another folder takes its place."""
    shutil.copytree(folder, folder.with_name(".other"))
    folder.rename(folder.with_name(".old"))
    folder.with_name(".other").rename(folder)


def wheel(builder: WorkspaceBuilder) -> Path:
    return next((builder.workspace.artifacts / "bookshop").rglob("*.whl"))


CHANGES: dict[str, Callable[[WorkspaceBuilder], None]] = {
    "a new file": lambda builder: add(builder.root / "servers/weather/extra.py"),
    "a file that is gone": lambda builder: (builder.root / "servers/weather/.mcpfactory/report.json").unlink(),
    "what a stage found": lambda builder: builder.passed("weather", "generate"),
    "a run that is under way": lambda builder: add(builder.root / "pipeline/locks/weather.running"),
    "another folder": lambda builder: swap(builder.root / "servers/weather"),
    "edited in place, its time put back": lambda builder: edit_quietly(
        builder.root / "servers/weather/mcpfactory.toml"
    ),
    "the file of a candidate is gone": lambda builder: wheel(builder).unlink(),
    "a channel's page": lambda builder: add(
        builder.workspace.pipeline / "channels/staging/simple/bookshop-mcp/index.html"
    ),
}
OF_BOOKSHOP = {"the file of a candidate is gone", "a channel's page"}


@pytest.mark.parametrize("what", CHANGES)
def test_reader_reads_only_the_server_that_changed(four_servers: WorkspaceBuilder, what: str) -> None:
    reader = WorkspaceReader(four_servers.root)
    before = {server.name: server for server in reader.workspace().servers}
    assert all(server is before[server.name] for server in reader.workspace().servers)
    CHANGES[what](four_servers)
    after = {server.name: server for server in reader.workspace().servers}
    assert [name for name in before if after[name] is not before[name]] == [
        "bookshop" if what in OF_BOOKSHOP else "weather"
    ]


def test_runs_are_made_once_for_as_long_as_no_history_changes(four_servers: WorkspaceBuilder) -> None:
    reader = WorkspaceReader(four_servers.root)
    before = reader.cached_from_histories("runs", run_rows)
    assert reader.cached_from_histories("runs", run_rows) is before
    assert reader.cached_from_histories("other", len) == len(reader.histories())
    four_servers.passed("zebra", "generate", run=(later := new_id()))
    after = reader.cached_from_histories("runs", run_rows)
    assert after is not before
    assert after[0].run == later
    assert reader.cached_from_histories("runs", run_rows) is after
    four_servers.store.history_file("zebra").unlink()
    assert later not in [row.run for row in reader.cached_from_histories("runs", run_rows)]
