"""Code of a server that writes into the histories while its stage runs: it is found, named, and taken out again."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs
from mcpfactory_pipeline.promotion import decision
from mcpfactory_pipeline.run.tampering import take_baseline, undo_tampering
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.cheap import BUILD, SHIP, TEST, add_server

FORGED = {"id": "01ZZZZZZZZZZZZZZZZZZZZZZZZ", "at": "2026-01-01T00:00:00Z", "actor": "Ada", "event": "held", "channel": "staging",
          "reason": "forged"}  # fmt: skip


def hostile(inputs: StageInputs) -> StageOutputs:
    """Does what tests/outcome.txt says to the histories, and passes."""
    history = inputs.root / "pipeline" / "history"
    act, own = (inputs.folder / "tests" / "outcome.txt").read_text(), history / "books.jsonl"
    line = json.dumps(FORGED, sort_keys=True) + "\n"
    if act == "own":
        own.write_text(own.read_text() + line)
    elif act == "other":
        with (history / "maps.jsonl").open("a") as stream:
            stream.write(line)
    elif act == "rewritten":
        own.write_text(own.read_text().replace("tester", "grace!"))
    elif act == "emptied":
        own.write_text("")
    elif act == "a pipe":
        own.unlink()
        os.mkfifo(own)
    elif act == "state":
        state = inputs.root / "pipeline" / "state" / "books.json"
        state.write_text(state.read_text().replace("1.0", "6.6"))
    elif act == "lawful":
        space = Workspace.find(inputs.root)
        decision.hold(space, "books", "staging", reason="wait")
        decision.hold(space, "maps", "staging", reason="wait")
    return StageOutputs("passed", "nothing to see")


STAGES = (BUILD, replace(TEST, run=hostile), SHIP)


@pytest.fixture
def shelves(workspace, run):
    """Two servers, of which one went through."""
    add_server(workspace.root, "maps")
    run()
    add_server(workspace.root, "books")
    run("books", until="build")
    return workspace


@pytest.mark.parametrize(
    ("act", "file"),
    [
        ("own", "pipeline/history/books.jsonl"),
        ("other", "pipeline/history/maps.jsonl"),
        ("rewritten", "pipeline/history/books.jsonl"),
        ("emptied", "pipeline/history/books.jsonl"),
        ("a pipe", "pipeline/history/books.jsonl"),
        ("state", "pipeline/state/books.json"),
    ],
)
def test_what_a_stage_writes_into_the_histories_is_found_and_taken_out(shelves, run, act, file):
    (shelves.root / "servers/books/tests/outcome.txt").write_text(act)
    outcome = run("books", stages=STAGES)
    record = Store(shelves).state("books").stages["test"]
    assert outcome.servers == {"books": "failed"}
    assert "while the stage test of books ran" in record.message
    assert file in record.message
    assert "hint:" in record.message
    for name in ("books", "maps"):
        events = Store(shelves).history(name)
        assert FORGED["id"] not in {event["id"] for event in events}
        assert {event["actor"] for event in events} == {"tester"}
    assert not Store(shelves).state("books").holds
    assert not verify(shelves)
    kept = list(shelves.artifacts.glob("*/forged/*.jsonl"))
    assert len(kept) == (act != "state"), "what was there is kept for whoever looks into it"


def test_what_people_decide_meanwhile_is_no_finding(shelves, run):
    (shelves.root / "servers/books/tests/outcome.txt").write_text("lawful")
    run("books", stages=STAGES)
    state = Store(shelves).state("books")
    assert state.stages["test"].outcome == "passed"
    assert state.holds
    assert Store(shelves).state("maps").holds
    assert not list(shelves.artifacts.glob("*/forged/*"))


def test_a_line_that_a_command_was_writing_when_a_job_began_is_no_finding_of_it(shelves):
    store = Store(shelves)
    before = take_baseline(store, "books")
    decision.hold(shelves, "maps", "staging", reason="wait")
    size = store.history_file("maps").stat().st_size - 40
    torn = replace(before, signs={**before.signs, "maps": (size, 0)})
    assert undo_tampering(store, torn, lambda *_: shelves.root) == []
    assert store.state("maps").holds
    assert not verify(shelves)
