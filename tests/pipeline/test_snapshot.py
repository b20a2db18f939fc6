"""A snapshot spares folding a history again, says the same as all of it, and is never believed against it."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpfactory_pipeline.base.ids import format_time
from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.state import store as stores
from mcpfactory_pipeline.state.folded import begin, go_on
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.timeline import (
    approvers_since,
    failing_since,
    in_channel_since,
    seconds_in_channel,
    withdrawals,
)
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.ready import ready_since
from tests.pipeline.test_state import EVENTS, numbered

START = datetime(2026, 11, 22, tzinfo=UTC)
NOW = START + timedelta(days=1)


@st.composite
def histories(draw):
    """Events of which each knows its moment; now and then the clock is set back."""
    at, found = START, []
    for event in numbered(draw(st.lists(EVENTS, max_size=40))):
        at += timedelta(seconds=draw(st.sampled_from([0, 1, 60, 3600, -600])))
        found.append({**event, "at": format_time(at)})
    return found


X = "0000000000000000"
ENDED = {"run": "", "outcome": "passed", "message": "", "seconds": 0.0, "inputs": {}, "fingerprint": "sha256:a"}
OFFERED = {"event": "stage.finished", "stage": "staging", "candidate": X, "channel": "staging", "version": "", **ENDED}
RETIRED = {"event": "retired", "reason": ""}
BUILT = {"event": "stage.finished", "stage": "build", "candidate": X, **ENDED, "built": {"version": "", "files": {}}}
FORGOTTEN = [
    {**event, "actor": "", "at": format_time(START + timedelta(seconds=at)), "id": f"01M8M71GBZZG69MT0WTBJVBR{n:02}"}
    for n, (at, event) in enumerate([(0, OFFERED), (0, RETIRED), (1, RETIRED), (1, BUILT)])
]


@settings(max_examples=150, deadline=None)
@example(FORGOTTEN, [3])
@given(histories(), st.lists(st.integers(0, 40), max_size=4))
def test_what_is_kept_of_a_history_answers_as_all_of_it(events, cuts):
    folded, before = begin("s"), 0
    for cut in [*sorted(cuts), len(events)]:
        folded, before = go_on(folded, events[before:cut]), max(before, cut)
    state = fold("s", events)
    assert folded.state == state
    assert folded.last == (events[-1]["id"] if events else "")
    for stage in ("generate", "build", "test", "validate", "staging"):
        assert failing_since(folded.recent, stage) == failing_since(events, stage)
    for channel in ("staging", "production"):
        withdrawn, all_withdrawn = withdrawals(folded.recent, channel), withdrawals(events, channel)
        assert withdrawn.keys() & state.candidates.keys() == all_withdrawn.keys() & state.candidates.keys()
        for candidate in state.candidates:
            assert in_channel_since(folded.recent, channel, candidate) == in_channel_since(events, channel, candidate)
            assert approvers_since(folded.recent, channel, candidate) == approvers_since(events, channel, candidate)
            told = seconds_in_channel(folded.recent, channel, candidate, NOW)
            assert told == seconds_in_channel(events, channel, candidate, NOW)
    for approvals in (0, 1, 2):
        asking = ChannelPolicy("production", source="staging", approvals=approvals, soak=4000.0)
        for candidate in state.candidates:
            assert ready_since(asking, candidate, folded.recent) == ready_since(asking, candidate, events)


@pytest.fixture
def store(workspace, books):
    """The store of a workspace whose server was run."""
    books.run("books")
    return Store(workspace)


def snapshot(store):
    return store.locks / "books.snapshot"


def parsed(monkeypatch):
    """How many events were read from then on."""
    count, parse = [], stores.history.parse
    monkeypatch.setattr(stores.history, "parse", lambda *args, **more: count.extend(got := parse(*args, **more)) or got)
    return count


def test_only_what_was_added_since_is_read(store, monkeypatch):
    store.folded("books")
    count = parsed(monkeypatch)
    with store.transaction("books") as transaction:
        transaction.append("held", channel="staging", reason="")
    assert [event["event"] for event in count] == ["held"]
    assert store.folded("books").state.holds
    assert len(count) == 1


def test_an_older_event_that_a_merge_brings_is_folded_in_its_place(store):
    store.folded("books")
    held = {"id": "0" * 26, "at": "2026-11-22T08:00:00Z", "actor": "a", "event": "held", "channel": "staging"}
    with store.history_file("books").open("a") as stream:
        stream.write(json.dumps(held) + "\n" + json.dumps({**held, "event": "released", "id": "0" * 25 + "1"}) + "\n")
    assert store.folded("books").state == fold("books", store.history("books"))
    assert not store.folded("books").state.holds


@pytest.mark.parametrize(
    "damage", [b"", b"\xff\xfe", b"{}", b"half"], ids=["empty", "not text", "without its hash", "cut off"]
)
def test_a_damaged_snapshot_is_none(store, damage):
    wanted = store.folded("books")
    snapshot(store).write_bytes(snapshot(store).read_bytes()[:-9] if damage == b"half" else damage)
    assert store.folded("books") == wanted


def forge(store, change) -> dict:
    """A snapshot that has the right hashes and says something else."""
    store.folded("books")
    _, _, body = snapshot(store).read_bytes().partition(b"\n")
    content = json.loads(body)
    change(content)
    forged = json.dumps(content).encode()
    snapshot(store).write_bytes(hashlib.sha256(forged).hexdigest().encode() + b"\n" + forged)
    return content


def test_verify_does_not_ask_a_snapshot(store, workspace):
    content = forge(store, lambda told: told.update(state=told["state"].replace('"passed"', '"failed"')))
    store.state_file("books").write_text(content["state"])
    assert [wrong["server"] for wrong in verify(workspace)] == ["books"]
