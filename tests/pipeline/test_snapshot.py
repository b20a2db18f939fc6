"""A snapshot spares folding a history again, and is never believed against it."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.state import store as stores
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store, fold_history
from mcpfactory_pipeline.state.verify import verify


@pytest.fixture
def store(workspace, books):
    """The store of a workspace whose server was run, and that has a snapshot."""
    books.run("books")
    Store(workspace).folded("books")
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
        transaction.append("stage.started", stage="test", run="r", pid=1, reasons=[])
    assert Store(workspace).folded("books").starts[0]["stage"] == "test"
    assert Store(workspace).state("books").holds
    assert seen == []
    assert Store(workspace).folded("books") == fold_history("books", store.history("books"))


def test_a_changed_history_is_folded_again_whatever_was_changed(store, workspace):
    file = store.history_file("books")
    file.write_text(file.read_text().replace('"passed"', '"failed"', 1))
    assert Store(workspace).folded("books").state == fold("books", store.history("books"))
    held = {"id": "0" * 26, "at": "2026-11-22T08:00:00Z", "actor": "a", "event": "held", "channel": "staging"}
    with file.open("a") as stream:  # older events, as a merge brings them
        stream.write(json.dumps(held) + "\n" + json.dumps({**held, "event": "released", "id": "0" * 25 + "1"}) + "\n")
    assert Store(workspace).folded("books").state == fold("books", store.history("books"))


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"{}", b"[1]", b"half"])
def test_a_damaged_snapshot_is_none(store, workspace, damage):
    wanted = store.folded("books")
    snapshot(store).write_bytes(snapshot(store).read_bytes()[:-9] if damage == b"half" else damage)
    assert Store(workspace).folded("books") == wanted


def test_verify_does_not_ask_a_snapshot(store, workspace):
    content = json.loads(snapshot(store).read_bytes())
    content["state"] = content["state"].replace('"passed"', '"failed"')
    snapshot(store).write_text(json.dumps(content))
    store.state_file("books").write_text(content["state"])
    assert [wrong["server"] for wrong in verify(workspace)] == ["books"]
