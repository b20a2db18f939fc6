"""A run takes no lock of a server whose files agree and where nothing is due, and nothing is overlooked by that."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.events import ServerTrouble, StepSkipped
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.conftest import Recorder


@pytest.fixture
def store(workspace, books):
    """The store of a workspace whose server was run, and run again with nothing to do."""
    books.run("books")
    return Store(workspace)


def test_a_run_with_nothing_to_do_writes_nothing(workspace, books):
    books.run("books")
    before = {path: path.read_bytes() for path in workspace.pipeline.rglob("*.json*")}
    recorder = Recorder()
    assert books.run("books", reporter=recorder).ran == 0
    assert [event.verdict for event in recorder.of(StepSkipped)] == ["up-to-date"] * 3
    assert {path: path.read_bytes() for path in workspace.pipeline.rglob("*.json*")} == before


def test_the_state_that_is_known_to_agree_is_the_one_that_history_gives(store):
    assert store.settled("books") == store.folded("books").state


def test_a_stage_that_is_due_runs_although_the_files_agree(books, store):
    (books.folder / "source.txt").write_text("two")
    assert books.run("books").ran == 3


def test_a_state_that_is_older_than_its_history_is_brought_up_to_date(workspace, books, store):
    text = store.state_file("books").read_text()
    books.decide("approve")
    store.state_file("books").write_text(text)
    assert verify(workspace) != []
    assert books.run("books").servers == {"books": "passed"}
    assert verify(workspace) == []


def test_a_state_that_was_edited_is_refused_although_it_agreed_before(books, store):
    file = store.state_file("books")
    file.write_text(file.read_text().replace('"version": "1.0"', '"version": "9.9"'))
    recorder = Recorder()
    assert books.run("books", reporter=recorder).servers == {"books": "errored"}
    assert "not what its history says" in recorder.of(ServerTrouble)[0].message


def test_a_stage_that_never_ended_is_recorded_even_where_nobody_left_a_mark(books, store):
    """As in a clone of a repository into which the history of a killed run was committed."""
    with store.transaction("books") as transaction:
        transaction.append("stage.started", stage="test", run="killed", pid=1, reasons=[])
    assert books.run("books").servers == {"books": "passed"}
    assert "stage.interrupted" in [event["event"] for event in store.history("books")]
