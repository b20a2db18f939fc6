"""Every kind of paging comes out as one continuation: arguments for the next call of the same tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.upstream import Operation, Paging, Parameter
from mcpfactory_runtime.upstream.response import to_tool_result
from tests.subtest_table import parametrize_subtests

PARAMETERS = tuple(Parameter(name, "query", name) for name in ("q", "cursor", "page", "per_page", "offset", "limit"))
HERE = "https://api.example/items?q=x"

CURSOR = Paging("cursor", "cursor", next=("meta", "next_cursor"))
URL = Paging("cursor", "cursor", next=("next",))
LAST = Paging("last", "cursor", items=("data",), more=("has_more",))
PAGE = Paging("page", "page", items=("data",), size="per_page", limit=2, total=("total",), pages=("pages",))
OFFSET = Paging("offset", "offset", items=("data",), size="limit", total=("total",), next=("next",))
TWO = [{"id": 1}, {"id": 2}]


def going_on(paging: Paging | None, body: Any, link: str = "", **arguments: Any) -> tuple[dict[str, Any], str]:
    """The arguments of the next call, and the sentence for the model; ({}, "") when there is none."""
    result = to_tool_result(
        200,
        {"content-type": "application/json", "link": link},
        json.dumps(body).encode(),
        Operation("GET", "/items", PARAMETERS, paging=paging),
        arguments=arguments,
        url=HERE,
    )
    assert json.loads(result.content[0]["text"]) == body
    notes = [block["text"] for block in result.content[1:]]
    return (result.meta or {"mcpfactory/next": {"arguments": {}}})["mcpfactory/next"]["arguments"], "".join(notes)


GOING_ON: list[tuple[str, Paging | None, Any, str, dict[str, Any], dict[str, Any]]] = [
    ("a cursor", CURSOR, {"meta": {"next_cursor": "abc"}}, "", {}, {"cursor": "abc"}),
    ("no cursor", CURSOR, {"meta": {"next_cursor": ""}}, "", {}, {}),
    ("null", CURSOR, {"meta": {"next_cursor": None}}, "", {}, {}),
    ("no place for a cursor", CURSOR, {"meta": []}, "", {}, {}),
    ("the same cursor again", CURSOR, {"meta": {"next_cursor": "abc"}}, "", {"cursor": "abc"}, {}),
    ("a cursor of monstrous length", CURSOR, {"meta": {"next_cursor": "a" * 5000}}, "", {}, {}),
    ("a URL", URL, {"next": "https://api.example/items?q=x&cursor=a%2Fb"}, "", {"q": "x"}, {"cursor": "a/b"}),
    ("a relative URL", URL, {"next": "/items?cursor=c&key=secret"}, "", {}, {"cursor": "c"}),
    ("a URL without what we have", URL, {"next": "https://api.example/items?token=c"}, "", {}, {}),
    ("a broken URL", URL, {"next": "https://[x/?cursor=c"}, "", {}, {}),
    ("the last item", LAST, {"data": TWO, "has_more": True}, "", {}, {"cursor": 2}),
    ("no more items", LAST, {"data": TWO, "has_more": False}, "", {}, {}),
    ("an empty list", LAST, {"data": [], "has_more": True}, "", {}, {}),
    ("a page of several", PAGE, {"data": TWO, "pages": 3}, "", {}, {"page": 2}),
    ("the last page", PAGE, {"data": TWO, "pages": 3}, "", {"page": 3}, {}),
    ("a page by total", PAGE, {"data": TWO, "total": 5}, "", {"page": "2"}, {"page": 3}),
    ("the last by total", PAGE, {"data": TWO, "total": 4}, "", {"page": 2}, {}),
    ("perhaps a page", PAGE, {"data": TWO}, "", {}, {"page": 2}),
    ("half a page", PAGE, {"data": TWO}, "", {"per_page": 3}, {}),
    ("an offset", OFFSET, {"data": TWO, "total": 5}, "", {"offset": 2}, {"offset": 4}),
    ("the end of an offset", OFFSET, {"data": TWO, "total": 4}, "", {"offset": 2}, {}),
    ("an offset by URL", OFFSET, {"data": TWO, "next": "?offset=40&limit=2"}, "", {"limit": 2}, {"offset": 40}),
    ("an offset without a next", OFFSET, {"data": TWO, "next": None, "total": 9}, "", {}, {}),
    ("a link, unrecognised", None, [], '<https://api.example/i?page=2>; rel="next"', {}, {"page": "2"}),
    ("a link, page", PAGE, {"data": TWO}, '</i?page=7>; rel="next", </i?page=9>; rel="last"', {}, {"page": 7}),
    ("links without a next", PAGE, {"data": TWO}, '</i?page=1>; rel="first"', {}, {}),
    ("nothing known", None, TWO, "", {}, {}),
]


@parametrize_subtests("paging, body, link, arguments, following", [row[1:] for row in GOING_ON])
def test_the_next_call_is_told(
    paging: Paging | None, body: Any, link: str, arguments: dict[str, Any], following: dict[str, Any]
) -> None:
    found, note = going_on(paging, body, link, **arguments)
    assert found == following
    assert bool(note) == bool(following)
    assert all(f"{name}=" in note for name in following)


NAMES = st.sampled_from(["data", "next", "more", "total"])
PATHS = st.lists(NAMES, max_size=2).map(tuple)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "7", "?page=2", "https://[", "//x/?offset=1", "https://api.example/i?cursor=%ff&page=x"])
)
BODIES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("id"), inner, max_size=4)
)
PAGINGS = st.builds(
    Paging,
    st.sampled_from(["link", "cursor", "last", "page", "offset"]),
    st.sampled_from(["cursor", "page", "offset"]),
    **dict.fromkeys(["next", "items", "more", "done", "total", "pages"], PATHS),
    size=st.sampled_from(["", "limit"]),
    limit=st.integers(0, 3),
)


@given(PAGINGS, BODIES, st.dictionaries(st.sampled_from(["cursor", "page", "offset", "limit"]), SCALARS))
def test_whatever_an_api_answers_the_next_call_differs_from_this_one(
    paging: Paging, body: Any, arguments: dict[str, Any]
) -> None:
    following, note = going_on(paging, body, **arguments)
    for name, value in following.items():
        assert isinstance(value, str | int | float)
        assert value != arguments.get(name, ())
    assert not following or note.startswith(("More: ", "There may be more: "))


@pytest.mark.parametrize("link", ["https://evil.example/items?cursor=c", "//evil.example/items?cursor=c"])
def test_a_next_page_on_another_host_is_named_and_not_used(link: str) -> None:
    found, note = (
        going_on(URL, {"next": link}) if link.startswith("https") else going_on(URL, {}, f"<{link}>; rel=next")
    )
    assert found == {}
    assert note == "More is on another host, evil.example, which is not followed."
