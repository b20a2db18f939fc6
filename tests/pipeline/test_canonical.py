"""The canonical text is what the standard library writes, byte for byte: histories and states of every version are compared by it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.base.hashing import canonical_json

FACTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=30,
)


def written(data: object) -> str:
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)


@given(FACTS)
def test_it_is_what_the_standard_library_writes(data: object) -> None:
    assert canonical_json(data) == written(data)


@pytest.mark.parametrize("data", [{1: "a number for a key"}, {"a": {2}}, [object()]])
def test_what_is_no_data_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(data)
