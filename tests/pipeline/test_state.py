"""State is the fold of history: whatever the history, however its lines were merged, wherever a write was cut off."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state import timeline
from mcpfactory_pipeline.state.event_schema import EVENT_KINDS
from mcpfactory_pipeline.state.state import (
    EVENT_HANDLERS,
    SCHEMA,
    extend,
    fold,
    state_from_json,
    state_to_text,
)
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.state.view import view_text
from tests.subtest_table import parametrize_subtests

STAGES = st.sampled_from(["generate", "build", "test", "validate"])
CANDIDATES = st.sampled_from([f"{number:016x}" for number in range(14)])
CHANNELS = st.sampled_from(["staging", "production"])
MOVING = ("promoted", "rolled-back")
HASHES = st.sampled_from(["sha256:a", "sha256:b", "none"])
TEXTS = st.text(max_size=12)
MOMENTS = st.sampled_from(["2026-11-22T08:00:00Z", "1999-12-31T23:59:59Z"])


def event(kind: str, **facts: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries({"event": st.just(kind), "at": MOMENTS, "actor": TEXTS, **facts})


FOUND = {
    "run": TEXTS,
    "outcome": st.sampled_from(["passed", "failed", "errored", "inconclusive"]),
    "message": TEXTS,
    "seconds": st.floats(0, 10),
    "inputs": st.dictionaries(st.sampled_from(["source", "tests"]), HASHES),
    "fingerprint": HASHES,
    "summary": st.dictionaries(TEXTS, st.integers() | st.booleans() | TEXTS | st.lists(TEXTS, max_size=2), max_size=2),
    "artifacts": st.dictionaries(TEXTS, HASHES, max_size=2),
}
EVENTS = st.one_of(
    event("stage.started", stage=STAGES, run=TEXTS, pid=st.integers(1, 99)),
    event("stage.finished", stage=STAGES, candidate=CANDIDATES, **FOUND),
    event("stage.finished", stage=STAGES, **FOUND),
    event("stage.finished", stage=st.just("build"), candidate=CANDIDATES, **FOUND,
          built=st.fixed_dictionaries({"version": TEXTS, "files": st.dictionaries(TEXTS, HASHES, max_size=2)})),
    event("stage.finished", stage=st.just("staging"), candidate=CANDIDATES, channel=st.just("staging"), version=TEXTS, **FOUND),
    event("stage.interrupted", stage=STAGES, run=TEXTS, message=TEXTS),
    *(event(kind, channel=CHANNELS, candidate=CANDIDATES, version=TEXTS, reason=TEXTS) for kind in MOVING),
    *(event(kind, channel=CHANNELS, candidate=CANDIDATES, reason=TEXTS) for kind in ("approved", "rejected")),
    *(event(kind, channel=CHANNELS, reason=TEXTS) for kind in ("held", "released", "retired")),
    *(event(kind, reason=TEXTS) for kind in ("retired", "revived")),
    event("renamed", previous=TEXTS, reason=TEXTS),
    event("retired", reason=TEXTS, gone=st.sampled_from(["removed", "renamed to x"]), kept=st.booleans()),
)  # fmt: skip


def numbered(events: list[dict]) -> list[dict]:
    last = ""
    found = []
    for item in events:
        last = new_id(last)
        found.append({**item, "id": last})
    return found


def begun(events: list[dict]) -> list[dict]:
    """The events with a start before each end of a stage: no run records one without the other."""
    found: list[dict] = []
    for item in events:
        if item["event"] in {"stage.finished", "stage.interrupted"}:
            found.append(
                {**{key: item[key] for key in ("at", "actor", "stage", "run")}, "event": "stage.started", "pid": 1}
            )
        found.append(item)
    return found


HISTORIES = st.lists(EVENTS, max_size=25).map(begun).map(numbered)
OTHER = st.characters(codec="ascii", exclude_characters="\r")  # line ends are version control's: \r\n says the same
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lines(events: list[dict]) -> str:
    return "".join(json.dumps(item) + "\n" for item in events)


def put(space, server: str, events: list[dict], text: str | None = None) -> Store:
    """Writes history and state as they would lie in a repository."""
    store = Store(space)
    store.history_file(server).write_text(lines(events))
    store.state_file(server).write_text(text if text is not None else view_text(fold(server, events)))
    return store


def answers(events) -> list:
    """What the functions of `timeline` say."""
    about, now = [("staging", "one"), ("staging", "two")], datetime(2026, 12, 1, tzinfo=UTC)
    lasting = ({"outcome": "failed"}, {"event": "stage.finished"}, {"event": "approved"})
    return [
        [timeline.seconds_in_channel(events, *pair, now) for pair in about],
        [timeline.soaked_since(events, *pair, 60) for pair in about],
        [timeline.in_channel_since(events, *pair) for pair in about],
        [list(timeline.decisions_about(events, *pair)) for pair in about],
        timeline.candidates_rolled_back(events, "staging"),
        timeline.candidates_by_offered_version(events),
        [timeline.failing_since(events, stage) for stage in ("test", "staging")],
        [timeline.last_event_time(one for one in events if fact.items() <= one.items()) for fact in lasting],
    ]


def often(kind: str, **about: str) -> st.SearchStrategy:
    """Events of one stage and channel, so that many are about the same."""
    moments = st.integers(10, 59).map("2026-11-22T08:{}:00Z".format)
    few = {"candidate": st.sampled_from(["one", "two"]), "outcome": st.sampled_from(["passed", "failed"])}
    same = {"event": kind, "actor": "ada", "inputs": {}, "fingerprint": "", **about}
    return st.fixed_dictionaries({"at": moments, **few}).map(lambda one: {**one, **same})


OFTEN = st.one_of(
    often("stage.finished", stage="test"),
    often("stage.interrupted", stage="test", outcome="interrupted"),
    often("stage.finished", stage="staging", channel="staging", version="1"),
    *(
        often(kind, channel="staging", version="1")
        for kind in ("promoted", "rolled-back", "approved", "rejected", "retired")
    ),
)


@given(st.lists(OFTEN, min_size=15, max_size=30).map(numbered), st.integers(0, 30))
def test_the_timeline_of_a_state_answers_as_its_history_does(events, cut):
    state = extend(fold("s", events[:cut]), events[cut:])
    assert answers(state.timeline) == answers(events)


@given(HISTORIES)
def test_the_text_of_a_state_reads_back_as_the_same_state(events):
    state = fold("s", events)
    assert state_from_json(json.loads(state_to_text(state))) == state
    assert state_to_text(state_from_json(json.loads(state_to_text(state)))) == state_to_text(state)


@given(HISTORIES)
def test_state_holds_no_clock_run_or_process_and_names_people_only_for_what_they_decided(events):
    marked = [{**item, "at": "CLOCK", "actor": "ACTOR", "run": "RUN", "pid": "PID"} for item in events]
    state = fold("s", marked)
    assert [word for word in ("CLOCK", "RUN", "PID") if word in state_to_text(state)] == []
    undecided = replace(
        state,
        holds={},
        retired=None,
        candidates={
            name: replace(candidate, approvals={}, rejections={}) for name, candidate in state.candidates.items()
        },
    )
    assert "ACTOR" not in state_to_text(undecided)


@given(HISTORIES)
def test_the_newest_ten_candidates_are_kept_with_what_is_in_a_channel(events):
    state = fold("s", events)
    offered = {name for release in state.channels.values() for name in (release.candidate, *release.before)}
    assert len(set(state.candidates) - offered - {state.candidate}) <= 10
    assert state.candidate is None or state.candidate in state.candidates
    numbers = [candidate.number for candidate in state.candidates.values()]
    assert len(numbers) == len(set(numbers))


@quick
@given(HISTORIES, st.randoms(use_true_random=False))
def test_lines_in_any_order_and_repeated_say_the_same(tmp_path_factory, events, random):
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("w")), git=False)
    store = put(space, "s", events)
    merged = [*events, *random.sample(events, len(events) // 2)]
    random.shuffle(merged)
    store.history_file("s").write_text(lines(merged))
    assert store.history("s") == events
    assert verify(space) == []


@quick
@given(HISTORIES.filter(bool), st.data(), st.sampled_from([view_text, state_to_text]))
def test_a_state_of_any_moment_before_is_brought_up_to_date(tmp_path_factory, events, data, rendering):
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("w")), git=False)
    cut = data.draw(st.integers(0, len(events)))
    store = put(space, "s", events, rendering(fold("s", events[:cut])))
    with store.transaction("s") as transaction:
        assert transaction.state == fold("s", events)
    assert store.state_file("s").read_text() == view_text(fold("s", events))


@quick
@given(HISTORIES.filter(bool), st.data())
def test_a_state_in_which_anything_was_changed_is_noticed_and_not_built_on(tmp_path_factory, events, data):
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("w")), git=False)
    text = view_text(fold("s", events))
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(OTHER.filter(lambda c: c != text[place])) + text[place + 1 :]
    views = [view_text(fold("s", events[:end])) for end in range(len(events) + 1)]
    known = {line.strip(" \t{},") for view in [*views, f'"state": {SCHEMA}'] for line in view.split("\n")}
    # a change may undo what an event did, or change a comma
    assume(not known.issuperset(line.strip(" \t{},") for line in changed.split("\n")))
    store = put(space, "s", events, changed)
    before = store.history_file("s").read_bytes()
    assert [difference["server"] for difference in verify(space)] == ["s"]
    with pytest.raises(StateError) as caught, store.transaction("s"):
        pass
    assert caught.value.hint
    assert "pipeline/state/s.json" in str(caught.value)
    assert store.history_file("s").read_bytes() == before


@parametrize_subtests(
    "bad, message",
    [
        ({"event": "blessed", "id": "1"}, "unknown event 'blessed'"),
        ({"event": "approved", "id": "1", "channel": "production"}, "is incomplete"),
        ({"event": "held", "id": "1", "actor": "a"}, "is incomplete"),
        ({"event": "stage.finished", "id": "1", "stage": "build"}, "is incomplete"),
        ({"event": "promoted", "id": "1", "channel": "staging"}, "is incomplete"),
        ({"id": "1"}, "unknown event None"),
    ],
)
def test_an_event_that_cannot_be_read_is_named(bad, message):
    with pytest.raises(StateError, match=message) as caught:
        fold("s", [bad])
    assert caught.value.hint


def test_every_kind_of_event_that_is_read_can_be_folded():
    assert set(EVENT_HANDLERS) == set(EVENT_KINDS)


def said(kind: str, actor: str, **facts) -> dict:
    return {"event": kind, "actor": actor, "reason": f"{actor} says so", **facts}


def test_the_last_word_on_a_candidate_counts():
    about = {"channel": "production", "candidate": "one"}
    approvals = [said("approved", "ada", **about), said("approved", "ben", **about)]
    state = fold("s", [built("one"), *approvals])
    assert sorted(state.candidates["one"].approvals["production"]) == ["ada", "ben"]
    state = fold("s", [built("one"), *approvals, said("rejected", "eve", **about)])
    assert state.candidates["one"].approvals == {}
    assert state.candidates["one"].rejections == {"production": {"eve": "eve says so"}}
    state = fold("s", [built("one"), *approvals, said("rejected", "eve", **about), said("approved", "ada", **about)])
    assert state.candidates["one"].approvals == {"production": {"ada": "ada says so"}}
    assert state.candidates["one"].rejections == {}


def test_approvals_are_for_these_bytes_and_come_back_with_them():
    about = {"channel": "production", "candidate": "one"}
    state = fold("s", [built("one"), said("approved", "ada", **about), built("two"), built("one")])
    assert state.candidates["two"].approvals == {}
    assert "ada" in state.candidates["one"].approvals["production"]


def test_a_rollback_moves_the_channel_and_holds_it_and_what_was_offered_before_is_kept():
    def move(name: str, kind: str = "promoted") -> dict:
        return said(kind, "ada", channel="production", candidate=name, version="1")

    names = [f"{number:02}" for number in range(12)]
    history = [item for name in names for item in (built(name), move(name))]
    state = fold("s", [*history, move("09", "rolled-back")])
    assert state.channels["production"].candidate == "09"
    assert state.channels["production"].before == ("11", "10", "08", "07", "06")
    assert state.holds == {"production": {"actor": "ada", "reason": "ada says so"}}
    assert fold("s", [*history, move("09", "rolled-back"), said("released", "ada", channel="production")]).holds == {}


def test_retirement_empties_the_channels_and_can_be_taken_back():
    moves = [
        {"event": "promoted", "channel": name, "candidate": "one", "version": "1"} for name in ("staging", "production")
    ]
    one = fold("s", [built("one"), *moves, said("retired", "ada", channel="production")])
    assert (list(one.channels), list(one.holds), one.retired) == (["staging"], ["production"], None)
    whole = fold("s", [built("one"), *moves, said("retired", "ada")])
    assert (whole.channels, whole.retired) == ({}, {"actor": "ada", "reason": "ada says so"})
    assert fold("s", [built("one"), *moves, said("retired", "ada"), said("revived", "ada")]).retired is None


def built(name: str) -> dict:
    made = {"version": "1", "files": {"f": "sha256:x"}}
    facts = {"stage": "build", "outcome": "passed", "inputs": {}, "fingerprint": "", "candidate": name, "built": made}
    return {"event": "stage.finished", **facts}


def test_what_is_in_a_channel_or_current_is_kept_however_old_it_is():
    promoted = {"event": "promoted", "channel": "production", "candidate": "00", "version": "1"}
    names = [f"{number:02}" for number in range(15)]
    state = fold("s", [built("00"), promoted, *(built(name) for name in names[1:])])
    assert sorted(state.candidates) == ["00", *names[-10:]]
    older = fold("s", [*(built(name) for name in names[:10]), built("00"), built("10")])
    assert "00" not in older.candidates, "it was current, and is no more"
    assert "00" in fold("s", [*(built(name) for name in names[:10]), built("00")]).candidates


def test_a_candidate_that_is_built_again_keeps_its_number_and_its_checks():
    check = {
        "event": "stage.finished",
        "stage": "test",
        "outcome": "passed",
        "inputs": {},
        "fingerprint": "f",
        "candidate": "one",
    }
    state = fold("s", [built("one"), check, built("two"), built("one")])
    assert state.candidate == "one"
    assert state.candidates["one"].number == 1
    assert state.candidates["one"].checks["test"]["outcome"] == "passed"
    assert state.candidates["two"].checks == {}
