"""Files that were damaged, deleted, edited, cut off or cannot be written: each is named, with what mends it, and nothing is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.ids import max_id_at, utc_now
from mcpfactory_pipeline.decisions.decision import hold, unhold
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.history import event_line
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import refresh_views, verify
from mcpfactory_pipeline.state.view import view_text
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A workspace with one server that went through all stages; not to be changed."""
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("finished") / "space"), git=False)
    add_server(space.root, "books")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPFACTORY_ACTOR", "tester")
        assert run_pipeline(space, stages=STAGES, executor=InProcessExecutor()).servers == {"books": "passed"}
    return space


@pytest.fixture
def store(workspace, finished) -> Store:
    """The same in a workspace of the test's own."""
    shutil.copytree(finished.root, workspace.root, dirs_exist_ok=True)
    return Store(workspace)


@pytest.mark.parametrize(
    "case",
    [
        ("[]", "does not match its history", "pipeline verify --repair books"),
        ('{"channels": []}', "does not match its history", "pipeline verify --repair books"),
        ('{"state": 4}', "schema 4", "update mcpfactory"),
        ('{"state": 0}', "does not match its history", "pipeline verify --repair books"),
        ("\udcff", "cannot be read", "pipeline verify --repair books"),
    ],
    ids=["list", "other line", "newer", "older", "not text"],
)
def test_a_damaged_state_is_named_with_what_mends_it(store, workspace, run, case):
    text, message, hint = case
    before = store.history_file("books").read_bytes()
    store.state_file("books").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StateError, match=message) as caught:
        store.state("books")
    assert hint in caught.value.hint
    assert message in verify(workspace)[0]["message"]
    assert run("books").servers == {"books": "errored"}
    assert store.history_file("books").read_bytes() == before, "nothing is built on a state that cannot be read"


def test_a_state_edited_by_hand_is_not_believed(store, workspace, run):
    text = store.state_file("books").read_text()
    store.state_file("books").write_text(text.replace('"passed"', '"failed"', 1))
    assert "edited by hand" in verify(workspace)[0]["message"]
    for dry_run in (True, False):
        with pytest.raises(StateError, match="edited by hand"):
            hold(workspace, "books", "staging", reason="audit", dry_run=dry_run)
    assert run("books", force=True).servers == {"books": "errored"}


def test_half_a_line_at_the_end_of_the_history_is_left_out_and_then_taken_away(store, workspace):
    events = store.history("books")
    with store.history_file("books").open("a") as stream:
        stream.write('{"id": "01ZZ", "event": "prom')
    assert store.history("books") == events
    assert verify(workspace) == []
    with store.transaction("books") as transaction:
        transaction.append("promoted", channel="staging", candidate=events[-1]["candidate"], version="1.0")
    assert len(store.history("books")) == len(events) + 1
    assert [json.loads(line) for line in store.history_file("books").read_text().splitlines()] == store.history("books")


def test_a_whole_event_without_its_line_end_is_kept(store):
    file = store.history_file("books")
    events = store.history("books")
    file.write_text(file.read_text().rstrip("\n"))
    with store.transaction("books") as transaction:
        transaction.append("stage.interrupted", stage="build", run="r", message="")
    assert store.history("books")[:-1] == events


@pytest.mark.parametrize("line", ["not json", '"text"', '{"event": "promoted"}', "<<<<<<< ours"])
def test_a_bad_line_within_the_history_is_named_by_its_number(store, workspace, line):
    file = store.history_file("books")
    first, rest = file.read_text().split("\n", 1)
    file.write_text(f"{first}\n{line}\n{rest}")
    with pytest.raises(StateError, match=r"pipeline/history/books\.jsonl, line 2 is not a valid event") as caught:
        store.history("books")
    merge = line.startswith("<<<")
    assert (
        "mcpfactory pipeline verify --repair books" if merge else "git log -p -- pipeline/history/books.jsonl"
    ) in caught.value.hint
    assert "line 2" in verify(workspace)[0]["message"]


def test_an_event_that_makes_no_sense_is_not_written(store):
    before = store.history_file("books").read_bytes()
    with pytest.raises(StateError), store.transaction("books") as transaction:
        transaction.append("promoted", channel="staging")
    assert store.history_file("books").read_bytes() == before


@pytest.mark.parametrize("folder", ["state", "history", "locks"])
def test_a_folder_that_cannot_be_written_is_an_error_with_a_hint(workspace, run, folder):
    add_server(workspace.root, "books")
    place = workspace.pipeline / folder
    for entry in place.glob("*") if place.exists() else []:
        entry.unlink()
    for entry in place.glob(".*") if place.exists() else []:
        entry.unlink()
    if place.exists():
        place.rmdir()
    place.write_text("a file is in the way")  # works for root, too, whom permissions do not stop
    with pytest.raises(StateError) as caught, Store(workspace).transaction("books") as transaction:
        transaction.append("stage.interrupted", stage="build", run="r", message="")
    assert f"pipeline/{folder}" in str(caught.value)
    assert caught.value.hint
    assert run("books").servers == {"books": "errored"}


FULL = """
import resource, sys
from pathlib import Path
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
store = Store(Workspace.find(Path(sys.argv[1])))
room = store.history_file("books").stat().st_size + int(sys.argv[2])
with store.transaction("books") as transaction:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    try:
        transaction.append("stage.interrupted", stage="build", run="r", message="x" * 500)
    except StateError as error:
        print(error, error.hint)
        sys.exit(3)
"""


@pytest.mark.parametrize("room", [0, 1, 100])
def test_when_there_is_no_room_the_history_is_as_it_was(store, workspace, room):
    before = store.history_file("books").read_bytes(), store.state_file("books").read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(workspace.root), str(room)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "pipeline/history/books.jsonl cannot be written: File too large free space" in done.stdout
    assert (store.history_file("books").read_bytes(), store.state_file("books").read_bytes()) == before
    assert verify(workspace) == []


def no_space(*_arguments):
    raise OSError(28, "No space left on device")


def test_where_the_state_has_no_space_the_event_is_not_recorded_either(store, workspace, monkeypatch):
    before = (store.state_file("books").read_bytes(), store.history_file("books").read_bytes())
    with store.transaction("books") as transaction, monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(StateError, match=r"state/books\.json cannot be written: No space left") as caught:
            transaction.append("stage.interrupted", stage="build", run="r", message="")
    assert "nothing was lost" in caught.value.hint
    assert (store.state_file("books").read_bytes(), store.history_file("books").read_bytes()) == before
    assert list((workspace.pipeline / "state").glob(".*.tmp")) == []


def test_a_state_that_cannot_take_its_place_is_the_old_one_and_is_caught_up_later(store, workspace, monkeypatch):
    before = store.state_file("books").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", no_space)
        with pytest.raises(StateError, match="No space left") as caught, store.transaction("books") as transaction:
            transaction.append("held", channel="staging", reason="")
    assert "the event is in the history" in caught.value.hint
    assert store.state_file("books").read_bytes() == before
    assert verify(workspace) == []
    with store.transaction("books"):
        pass
    assert '"holds"' in store.state_file("books").read_text()
    assert refresh_views(workspace) == []


def test_a_temporary_file_that_a_killed_writer_left_is_cleared_away(store, workspace):
    leftover = store.state_file("books").with_name(".books.json.1.tmp")
    leftover.write_text("half")
    assert store.servers() == ["books"]
    with store.transaction("books") as transaction:
        transaction.append("stage.interrupted", stage="build", run="r", message="")
    assert not leftover.exists()
    assert store.state_file("books").read_text() == view_text(fold("books", store.history("books")))


def test_unhold_fails_if_the_history_still_shows_the_hold(store, workspace):
    hold(workspace, "books", "staging", reason="audit")

    def another_hold() -> datetime:
        """Another program adds a later hold while the command runs."""
        event = {**store.history("books")[-1], "id": max_id_at(utc_now() + timedelta(minutes=1))}
        with store.history_file("books").open("a") as file:
            file.write(f"{event_line(event)}\n")
        return utc_now()

    with pytest.raises(StateError, match="does not match"):
        unhold(workspace, "books", "staging", clock=another_hold)


def test_after_a_crash_what_is_read_is_what_history_says(store, workspace):
    events = store.history("books")
    store.state_file("books").write_text(view_text(fold("books", events[:2])))
    start = '{"id": "0", "stage": "test", "run": "r"}'
    (workspace.pipeline / "locks" / "books.running").write_text(f'{{"pid": 1, "run": "r", "starts": [{start}]}}')
    assert store.state("books") == fold("books", events)


def test_every_event_says_who_when_and_what(store):
    for event in store.history("books"):
        assert event["actor"] == "tester"
        assert event["at"].endswith("Z")
    assert [event["event"] for event in store.history("books")] == ["stage.finished"] * 3
