"""The canonical text is what the standard library writes, byte for byte: histories and states of every version are compared by it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.base.canonical import canonical_text
from mcpfactory_pipeline.state.state import (
    Candidate,
    Publication,
    Release,
    ServerState,
    StageDecision,
    StageRecord,
    parse,
    to_text,
)

FACTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=30,
)
TEXTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
NAMES = st.text(max_size=5)


def by_name(record: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(NAMES, record, max_size=3)


STATES = st.builds(
    ServerState,
    server=NAMES,
    candidate=st.none() | NAMES,
    stages=by_name(
        st.builds(
            StageRecord, NAMES, NAMES, TEXTS, st.none() | NAMES, NAMES, st.dictionaries(NAMES, FACTS, max_size=3), TEXTS
        )
    ),
    candidates=by_name(
        st.builds(
            Candidate,
            NAMES,
            st.integers(),
            TEXTS,
            TEXTS,
            by_name(TEXTS),
            channels=st.lists(NAMES, max_size=3).map(tuple),
        )
    ),
    channels=by_name(st.builds(Release, NAMES, NAMES, st.lists(NAMES, max_size=3).map(tuple))),
    holds=by_name(TEXTS),
    retired=st.none() | TEXTS,
    published=by_name(st.builds(Publication, NAMES, NAMES, NAMES, NAMES, NAMES, TEXTS)),
    publishing=by_name(st.builds(Publication, NAMES, NAMES, NAMES, NAMES)),
    decisions=by_name(st.builds(StageDecision, TEXTS, st.none() | NAMES, TEXTS, TEXTS)),
    sent_back=by_name(TEXTS),
)


def written(data: object) -> str:
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)


@given(FACTS)
def test_it_is_what_the_standard_library_writes(data: object) -> None:
    assert canonical_text(data) == written(data)


@given(STATES)
def test_the_text_of_a_state_is_that_of_its_data(state: ServerState) -> None:
    assert to_text(state) == written(state.to_json()) + "\n"


def test_a_state_that_was_read_has_the_text_that_it_was_read_from() -> None:
    record = StageRecord(
        "passed", "f", {"stage": "1"}, "c", "words", {"score": 97.0, "gates": []}, {"logs/test.log": "sha256:0"}
    )
    state = ServerState(
        "books", "c", {"test": record}, {"c": Candidate("1.0", 1, {"a.whl": "sha256:1"}, channels=("staging",))}
    )
    assert to_text(parse(to_text(state), "books.json")) == to_text(state)


@pytest.mark.parametrize("data", [{1: "a number for a key"}, {"a": {2}}, [object()]])
def test_what_is_no_data_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        canonical_text(data)
