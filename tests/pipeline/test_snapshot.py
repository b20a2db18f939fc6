"""A snapshot spares folding a history again, and is never believed against it."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import file_stamp
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.state import store as stores
from mcpfactory_pipeline.state.state import fold, state_from_json
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.state.view import view_text


@pytest.fixture
def store(workspace, books):
    """The store of a workspace whose server was run, and that has a snapshot."""
    books.run("books")
    Store(workspace).state("books")
    return Store(workspace)


def snapshot(store):
    return store.locks / "books.snapshot"


def reads(monkeypatch):
    """The histories that were read from then on."""
    seen, read = [], stores.history.read
    monkeypatch.setattr(stores.history, "read", lambda file, where: seen.append(file.stem) or read(file, where))
    return seen


def test_an_unchanged_history_is_not_read_and_a_decision_keeps_what_it_comes_to(store, workspace, monkeypatch):
    seen = reads(monkeypatch)
    assert store.state("books") == fold("books", Store(workspace).history("books"))
    seen.clear()
    with store.transaction("books") as transaction:
        transaction.append("held", channel="staging", reason="")
    assert Store(workspace).state("books").holds
    assert seen == []
    known, folded = Store(workspace).state("books"), fold("books", store.history("books"))
    assert (known, known.last) == (folded, folded.last)


def test_a_changed_history_is_folded_again_whatever_was_changed(store, workspace):
    file = store.history_file("books")
    held = {"at": "2026-11-22T08:00:00Z", "actor": "a", "event": "held", "channel": "staging"}
    with file.open("a") as stream:  # older events, as a merge brings them
        stream.write(json.dumps({**held, "id": "0" * 26}) + "\n")
        stream.write(json.dumps({**held, "event": "released", "id": "0" * 25 + "1"}) + "\n")
    assert Store(workspace).state("books") == fold("books", store.history("books"))
    with file.open("a") as stream:  # a newer one, whose writer was killed before it wrote the state
        stream.write(json.dumps({**held, "id": new_id(store.state("books").last)}) + "\n")
    assert list(Store(workspace).state("books").holds) == ["staging"]
    file.write_text(file.read_text().replace('"passed"', '"failed"', 1))
    with pytest.raises(StateError, match="edited by hand"):
        Store(workspace).state("books")


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"{}", b"[1]", b"half"])
def test_a_damaged_snapshot_is_none(store, workspace, damage):
    wanted = store.state("books")
    snapshot(store).write_bytes(snapshot(store).read_bytes()[:-9] if damage == b"half" else damage)
    assert Store(workspace).state("books") == wanted


def test_verify_does_not_ask_a_snapshot(store, workspace):
    content = json.loads(snapshot(store).read_bytes())
    file = store.state_file("books")
    content["state"]["stages"]["test"]["outcome"] = "failed"
    file.write_text(view_text(state_from_json(content["state"])))
    content["stamps"] = [content["stamps"][0], list(file_stamp(file))]
    snapshot(store).write_text(json.dumps(content))
    assert Store(workspace).state("books").stages["test"].outcome == "failed", "the snapshot is valid"
    assert [wrong["server"] for wrong in verify(workspace)] == ["books"]
    snapshot(store).write_text(json.dumps({**content, "rules": "of another version"}))
    with pytest.raises(StateError, match="edited by hand"):
        Store(workspace).state("books")
