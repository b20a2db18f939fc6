"""JSON that is too long stays JSON, and says what is missing and how to see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.upstream import Operation, Paging, Parameter
from mcpfactory_runtime.upstream.response import to_tool_result
from mcpfactory_runtime.upstream.truncate import dump_json, shorten

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=40,
)


def _part_of(small: Any, large: Any) -> bool:
    """Whether everything in `small` stands at the same place in `large`."""
    if isinstance(large, str):
        return small == large or (small.endswith("…") and large.startswith(small[:-1]))
    if isinstance(large, list):
        return len(small) <= len(large) and all(map(_part_of, small, large))
    if isinstance(large, dict):
        return all(name in large and _part_of(one, large[name]) for name, one in small.items())
    return bool(small == large)


@given(VALUES, st.integers(0, 400))
def test_what_is_shortened_is_part_of_what_was_there_and_fits(value: Any, room: int) -> None:
    shown, cuts = shorten(value, room)
    assert _part_of(shown, value)
    assert bool(cuts) or shown == value
    if room >= 100 and isinstance(value, list | dict):
        assert len(dump_json(shown)) <= room + 24
    if len(dump_json(value)) <= room:
        assert (shown, cuts) == (value, [])


def answered(value: Any, operation: Operation, **arguments: Any) -> tuple[Any, list[str]]:
    """The structured content of a long answer, and the notes about it."""
    result = to_tool_result(
        200,
        {"content-type": "application/json"},
        json.dumps(value).encode(),
        operation,
        arguments=arguments,
        max_text=1000,
    )
    assert not result.is_error
    first, *notes = [block["text"] for block in result.content]
    assert len(first) <= 1000
    assert json.loads(first) == (result.structured["result"] if isinstance(value, list) else result.structured)
    return json.loads(first), notes


LONG = [{"id": number, "name": f"book {number}"} for number in range(1000)]


@pytest.mark.parametrize(
    ("operation", "ways"),
    [
        (Operation("GET", "/x"), ""),
        (Operation("GET", "/x", (Parameter("author", "query", "author"),)), "narrow it with `author`"),
        (Operation("GET", "/x", (Parameter("fields", "query", "fields"),)), "choose fields with `fields`"),
        (
            Operation("GET", "/x", paging=Paging("page", "page", size="per_page")),
            "ask for fewer at a time with `per_page` (at most 37)",
        ),
    ],
)
def test_a_long_list_says_how_many_it_shows_and_what_helps(operation: Operation, ways: str) -> None:
    shown, notes = answered(LONG, operation)
    assert shown == LONG[:37]
    tail = f" To see the rest, {ways}." if ways else ""
    assert notes == [f"[Cut: the answer has 28,781 characters; this shows 37 of 1,000 items.{tail}]"]


def test_small_members_stay_whole_beside_large_ones() -> None:
    shown, notes = answered({"id": 7, "text": "é" * 9000, "tags": ["a"]}, Operation("GET", "/x"))
    assert (shown["id"], shown["tags"], shown["text"][-1]) == (7, ["a"], "…")
    assert "of 9,000 characters of `text`" in notes[0]
