"""Short lines of a history: readers get back exactly the events that were recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.state.history import event_line, parse, read
from mcpfactory_pipeline.state.short_events import shorten
from mcpfactory_pipeline.state.state import fold, state_to_text
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify

OLD = Path(__file__).parent / "schemas"
HISTORIES = [OLD / "2.jsonl", *sorted((Path(__file__).parents[2] / "pipeline/history").glob("*.jsonl"))]


def as_bytes(events) -> bytes:
    return "".join(f"{event_line(event)}\n" for event in events).encode()


def change(books, run, text: str) -> None:
    (books.folder / "source.txt").write_text(text)
    run("books")


@pytest.mark.parametrize("file", HISTORIES, ids=lambda file: file.stem)
def test_a_recorded_history_is_shortened_without_loss(file):
    events = read(file, "x")
    short = list(shorten(events, {}))
    assert parse(as_bytes(short), "x") == events
    assert parse(as_bytes(reversed(short)), "x") == events, "merges reorder lines"
    assert len(as_bytes(short)) <= 0.7 * len(as_bytes(events))


def test_a_history_and_a_state_of_an_earlier_version_are_read_unchanged(workspace):
    store = Store(workspace)
    store.history_file("books").write_bytes((OLD / "2.jsonl").read_bytes())
    store.state_file("books").write_bytes((OLD / "2.json").read_bytes())
    assert verify(workspace) == []
    assert json.loads(state_to_text(store.state("books"))) == json.loads((OLD / "2.json").read_text())


def test_a_line_without_its_base_is_damage(workspace, run, books):
    for text in ("two", "three"):
        change(books, run, text)
    store = Store(books.workspace)
    file = store.history_file("books")
    lines = file.read_text().splitlines(keepends=True)
    gone = next(line for line in lines if json.loads(line)["event"] == "stage.ended")
    file.write_text("".join(line for line in lines if line != gone))
    with pytest.raises(StateError, match=r"the earlier event \w+ is missing"):
        store.history("books")
    assert [wrong["server"] for wrong in verify(books.workspace)] == ["books"]


def test_a_run_of_one_changed_source_adds_few_lines(workspace, run, books):
    store = Store(books.workspace)
    change(books, run, "two")
    before = store.history_file("books").read_text(), store.state_file("books").read_text().splitlines()
    change(books, run, "three")
    added = store.history_file("books").read_text().removeprefix(before[0])
    assert len(added.splitlines()) == 3, "build, test and staging"
    changed = set(store.state_file("books").read_text().splitlines()) - set(before[1])
    assert len(changed) <= 6
    run("books")
    assert store.history_file("books").read_text() == before[0] + added, "nothing was due"


def test_events_that_a_line_cannot_express_stay_as_they_are():
    common = {"actor": "Ada", "run": "R", "stage": "test", "at": "2026-11-21T03:51:58Z"}
    start = {**common, "event": "stage.started", "id": "01M7Y3PYPAGGT55221N278J6V1", "reasons": []}
    inputs = {"tests": hash_bytes(b"")}
    end = {**common, "event": "stage.finished", "id": "01M7Y3PYYPEN87E71DARSQK0A4", "outcome": "passed",
           "inputs": inputs, "fingerprint": hash_named_texts(inputs), "summary": {}, "artifacts": {}}  # fmt: skip
    (short,) = shorten([start, end], {})
    assert short["event"] == "stage.ended"
    for other in ({**start, "actor": "Bob"}, {**start, "id": "01M7Y3PZZPEN87E71DARSQK0A4"}):
        assert sorted(one["event"] for one in shorten([other, end], {})) == ["stage.finished", "stage.started"]
    assert list(shorten([end], {})) == [end]
    assert fold("s", parse(as_bytes([short]), "x")) == fold("s", [start, end])
