"""A thousand servers: nothing that changed is missed, nothing that did not is read again, and no page is over 100 kB."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.board import GROUPS, SORTS, board
from mcpfactory_pipeline.dashboard.facts import RunFacts, ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.inbox import inbox
from mcpfactory_pipeline.dashboard.pages import PAGES
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.dashboard.render import Links, render
from mcpfactory_pipeline.dashboard.runs import run_page, runs_of, runs_page
from mcpfactory_pipeline.views.inbox import KINDS, InboxItem
from tests.dashboard.conftest import Bench

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


@pytest.mark.parametrize("group", ["", *GROUPS])
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
            runs_page("big", runs_of({NAME: [event for _ in range(1000) for event in steps(new_id())]})),
            "/runs/",
        )
        < LIMIT
    )
    assert size("run", run_page(RunFacts("big", run, events)), f"/runs/{run}/") < LIMIT


def steps(run: str) -> list[dict[str, object]]:
    return [
        {"id": new_id(), "at": "2026-01-01T00:00:00Z", "actor": TEXT, "event": event, "run": run, "stage": stage,
         "outcome": "failed", "message": TEXT, "seconds": 1.5, "reasons": [TEXT]}
        for stage in ("generate", "build", "test", "validate", "staging") for event in ("stage.started", "stage.finished")
    ]  # fmt: skip


def add(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("new")


def change(file: Path) -> None:
    """Another content of the same size, as an editor writes it a while later."""
    before = file.stat()
    file.write_bytes(file.read_bytes().swapcase())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


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


def wheel(bench: Bench) -> Path:
    return next((bench.workspace.artifacts / "bookshop").rglob("*.whl"))


CHANGES: dict[str, Callable[[Bench], None]] = {
    "a new file": lambda bench: add(bench.root / "servers/weather/extra.py"),
    "a new file far below": lambda bench: add(bench.root / "servers/weather/src/weather_mcp/tools/extra.py"),
    "a file that is gone": lambda bench: (bench.root / "servers/weather/.mcpfactory/report.json").unlink(),
    "a file of the same size": lambda bench: change(bench.root / "servers/weather/.mcpfactory/report.json"),
    "what a stage found": lambda bench: bench.passed("weather", "generate"),
    "a run that is under way": lambda bench: add(bench.root / "pipeline/locks/weather.running"),
    "saved by an editor": lambda bench: replace(bench.root / "servers/weather/.mcpfactory/report.json"),
    "another folder": lambda bench: swap(bench.root / "servers/weather"),
    "folders in a new one": lambda bench: add(bench.root / "servers/weather/one/two/three/file.py"),
    "edited in place, its time put back": lambda bench: edit_quietly(bench.root / "servers/weather/mcpfactory.toml"),
    "the file of a candidate is gone": lambda bench: wheel(bench).unlink(),
    "the folder of a candidate is gone": lambda bench: shutil.rmtree(wheel(bench).parent),
    "a channel's page": lambda bench: add(bench.workspace.pipeline / "channels/staging/simple/bookshop-mcp/index.html"),
}
OF_BOOKSHOP = {"the file of a candidate is gone", "the folder of a candidate is gone", "a channel's page"}


@pytest.mark.parametrize("what", CHANGES)
def test_reader_reads_only_the_server_that_changed(library: Bench, what: str) -> None:
    reader = WorkspaceReader(library.root)
    before = {server.name: server for server in reader.workspace().servers}
    assert all(server is before[server.name] for server in reader.workspace().servers)
    CHANGES[what](library)
    after = {server.name: server for server in reader.workspace().servers}
    assert [name for name in before if after[name] is not before[name]] == [
        "bookshop" if what in OF_BOOKSHOP else "weather"
    ]


def test_reader_notices_that_the_folder_of_all_servers_was_replaced(library: Bench) -> None:
    reader = WorkspaceReader(library.root)
    before = {server.name: server.tools for server in reader.workspace().servers}
    assert before["weather"] is not None
    shutil.copytree(library.root / "servers", library.root / "others")
    (library.root / "others/weather/.mcpfactory/report.json").unlink()
    (library.root / "servers").rename(library.root / "old")
    (library.root / "others").rename(library.root / "servers")
    assert {server.name: server.tools for server in reader.workspace().servers} == {**before, "weather": None}


def test_digest_changes_with_a_state_whose_time_was_put_back(library: Bench) -> None:
    reader = WorkspaceReader(library.root)
    before = reader.digest()
    edit_quietly(library.store.state_file("weather"))
    assert reader.digest() != before


def test_owners_are_read_once_for_all_servers_and_again_when_their_file_changes(library: Bench) -> None:
    reader = WorkspaceReader(library.root)
    read: list[Path] = []
    opened = Path.read_text

    def counted(self: Path, *args: Any, **options: Any) -> str:
        if self.name == "CODEOWNERS":
            read.append(self)
        return opened(self, *args, **options)

    (library.root / "CODEOWNERS").write_text("* @Ada\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", counted)
        assert {server.owners for server in reader.workspace().servers} == {("Ada",)}
        reader.workspace()
        assert len({server.name for server in reader.workspace().servers}) > 1
        assert len([one for one in read if one.parent == library.root]) == 1
        (library.root / "CODEOWNERS").write_text("* @Grace Ada\n")
        assert {server.owners for server in reader.workspace().servers} == {("Grace", "Ada")}


def test_runs_are_made_once_for_as_long_as_no_history_changes(library: Bench) -> None:
    reader = WorkspaceReader(library.root)
    before = reader.from_histories("runs", runs_of)
    assert reader.from_histories("runs", runs_of) is before
    assert reader.from_histories("other", len) == len(reader.histories())
    library.passed("zebra", "generate", run=(later := new_id()))
    after = reader.from_histories("runs", runs_of)
    assert after is not before
    assert after[0].run == later
    assert reader.from_histories("runs", runs_of) is after
    library.store.history_file("zebra").unlink()
    assert later not in [row.run for row in reader.from_histories("runs", runs_of)]
