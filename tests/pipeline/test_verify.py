"""`pipeline verify --repair`: what differs is shown, then written anew from history; what needs a person is left and named."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.base.errors import RefusedError, StateError
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.decisions.promote import promote
from mcpfactory_pipeline.state.history import event_line
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import refresh_views, repair, verify
from mcpfactory_pipeline.state.view import VIEW_SCHEMA, view_text
from tests.pipeline.fake_stages import STAGES, add_server


@pytest.fixture
def store(workspace, run) -> Store:
    add_server(workspace.root, "books")
    run("books")
    return Store(workspace)


def edit(store: Store) -> str:
    """A hand that says that a test passed with more than it did; gives the text as it should be."""
    right = store.state_file("books").read_text()
    store.state_file("books").write_text(right.replace('"test": {"outcome": "passed"', '"test": {"outcome": "trusted"'))
    return right


def test_an_edit_is_shown_fact_by_fact_and_mended(store, workspace):
    right = edit(store)
    (found,) = verify(workspace)
    assert found["changes"] == ['stages.test.outcome: "trusted" → "passed"']
    assert store.state_file("books").read_text() != right, "looking changes nothing"
    (mended,) = repair(workspace)
    assert mended == {**found, "mended": True}
    assert store.state_file("books").read_text() == right
    assert verify(workspace) == repair(workspace) == []


@pytest.mark.parametrize("spoil", ["[]", "\udcff", '{"state": 0}', '{"channels": {"staging": {"version": "9"}}}'])
def test_a_state_that_cannot_be_read_is_written_anew(store, workspace, spoil):
    right = store.state_file("books").read_bytes()
    store.state_file("books").write_bytes(spoil.encode(errors="surrogateescape"))
    assert [entry["mended"] for entry in repair(workspace, ["books"])] == [True]
    assert store.state_file("books").read_bytes() == right


SCHEMA_2 = '{\n  "state": 2\n}\n'


def test_a_missing_outdated_or_merged_state_is_no_difference_and_is_written_again(store, workspace):
    right = store.state_file("books").read_text()
    early = view_text(fold("books", store.history("books")[:2]))
    marked = f"<<<<<<< ours\n{early}=======\n{right}>>>>>>> theirs\n"
    for text in (early, early + right, marked, "", SCHEMA_2 + right):
        store.state_file("books").write_text(text)
        assert verify(workspace) == repair(workspace) == []
        assert [note["level"] for note in refresh_views(workspace)] == ["warning"]
        assert store.state_file("books").read_text() == right
        assert refresh_views(workspace) == []
    store.state_file("books").unlink()
    assert [note["server"] for note in refresh_views(workspace)] == ["books"]
    assert store.state_file("books").read_text() == right


def test_only_the_named_servers_are_looked_at_and_mended(store, workspace, run):
    add_server(workspace.root, "notes")
    run("notes")
    edit(store)
    store.state_file("notes").write_text("[]")
    assert [entry["server"] for entry in verify(workspace, ["notes"])] == ["notes"]
    assert [entry["server"] for entry in repair(workspace, ["notes"])] == ["notes"]
    assert [entry["server"] for entry in verify(workspace)] == ["books"]


def test_a_state_of_a_newer_schema_is_left_alone(store, workspace):
    text = json.dumps({"state": VIEW_SCHEMA + 1})
    store.state_file("books").write_text(text)
    (entry,) = repair(workspace)
    assert (entry["mended"], entry["hint"][:17]) == (False, "update mcpfactory")
    assert store.state_file("books").read_text() == text


def test_a_state_whose_history_is_lost_is_the_last_there_is_and_stays(store, workspace):
    before = store.state_file("books").read_bytes()
    store.history_file("books").unlink()
    (entry,) = repair(workspace)
    assert (entry["mended"], "git checkout" in entry["hint"]) == (False, True)
    assert store.state_file("books").read_bytes() == before


def test_the_marks_of_a_merge_in_a_history_go_and_both_sides_stay(store, workspace):
    file, events = store.history_file("books"), store.history("books")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], "<<<<<<< HEAD\n", *lines[2:4], "=======\n", *lines[4:], ">>>>>>> theirs\n"]))
    with pytest.raises(StateError, match=r"line 3 is not a valid event.*merge conflict marker") as caught:
        store.history("books")
    assert "verify --repair books" in caught.value.hint
    (entry,) = repair(workspace)
    assert (entry["mended"], len(entry["changes"])) == (True, 3)
    assert store.history("books") == events
    assert verify(workspace) == []


def test_an_event_that_cannot_be_read_is_never_dropped(store, workspace):
    file = store.history_file("books")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], lines[2][: len(lines[2]) // 2] + "\n", *lines[3:]]))
    before = file.read_bytes()
    (entry,) = repair(workspace)
    assert not entry["mended"]
    assert "line 3 is not a valid event" in entry["message"]
    assert "git log -p -- pipeline/history/books.jsonl" in entry["hint"]
    assert file.read_bytes() == before


def forge(store: Store, kind: str, **members) -> None:
    """Somebody writes the end of a stage into the history, and the state that follows."""
    events = store.history("books")
    end = next(event for event in reversed(events) if event["event"] == "stage.finished")
    forged = {**end, "event": kind, "id": new_id(events[-1]["id"]), **members}
    store.history_file("books").write_text("".join(event_line(one) + "\n" for one in [*events, forged]))
    store.state_file("books").write_text(view_text(fold("books", [*events, forged])))


@pytest.mark.parametrize(
    ("members", "word"),
    [({"run": "01JZ" + "0" * 22}, "manifest of"), ({"stage": "audit"}, "manifest of"), ({}, "had ended")],
)
def test_an_end_of_a_stage_that_no_run_recorded_is_told_and_never_made_the_truth(store, workspace, members, word):
    forge(store, "stage.finished", **members)
    (found,) = verify(workspace)
    assert word in found["message"]
    assert "git revert" in found["hint"]
    store.state_file("books").unlink()
    (left,) = repair(workspace)
    assert (left["mended"], word in left["message"]) == (False, True)
    assert not store.state_file("books").exists()
    with pytest.raises(RefusedError, match=word):
        promote(workspace, "books", "production", stages=STAGES)


def test_a_run_moves_no_channel_on_a_forged_end(store, workspace, run):
    (workspace.root / "servers/books/source.txt").write_text("two")
    forge(store, "stage.finished", run="01JZ" + "0" * 22)
    assert run("books").failed
    assert "manifest of" in store.state("books").stages["staging"].message
