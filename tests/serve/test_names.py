"""Names of several servers behind one endpoint: told apart, short enough for every client, and the same tomorrow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.serve.child_server import MAX_NAME, GatewayNames, inner_uri
from tests.subtest_table import parametrize_subtests

SERVERS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
TOOLS = st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True)


@given(st.lists(st.tuples(SERVERS, TOOLS), unique=True, max_size=8))
def test_different_tools_have_different_names_that_every_client_takes(pairs):
    names = {GatewayNames(server).name(name) for server, name in pairs}
    assert len(names) == len(pairs)
    assert all(re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}", name) for name in names)


@parametrize_subtests(
    "one, other",
    [
        (("a", "b_c"), ("a_b", "c")),
        (("a.b", "c"), ("a-b", "c")),
        (("a_b", "c"), ("a-b", "c")),
        (("a", "x.y"), ("a", "x-y")),
        (("my_shop", "list_books"), ("my-shop", "list_books_f065ac1c")),
    ],
)
def test_names_that_look_alike_are_told_apart(one, other):
    assert GatewayNames(one[0]).name(one[1]) != GatewayNames(other[0]).name(other[1])


def test_plain_names_stay_readable():
    assert GatewayNames("bookshop").name("list_books") == "bookshop_list_books"
    assert GatewayNames("my-shop").name("list_books") == "my-shop_list_books"
    assert GatewayNames("my_shop").name("list_books") == "my-shop_list_books_f065ac1c"
    assert len(GatewayNames("bookshop").name("x" * 100)) == MAX_NAME


@pytest.mark.parametrize("uri", ["note://1", "https://example.com/a?b=c#d", "mcp://other/x://y", "file:///etc/hosts"])
def test_uris_come_back_as_they_were(uri):
    assert inner_uri(GatewayNames("my_shop").uri(uri)) == ("my_shop", uri)


@parametrize_subtests("uri", ["note://1", "mcp://", "mcp://a", "mcp://a/", "mcp:///x", "gateway://health"])
def test_what_is_no_uri_of_the_gateway_is_none(uri):
    assert inner_uri(uri) is None


def test_links_in_results_lead_to_the_gateway():
    link = {"type": "resource_link", "uri": "note://1", "name": "one"}
    held = {"type": "resource", "resource": {"uri": "note://1", "text": "x"}}
    text = {"type": "text", "text": "note://1"}
    assert GatewayNames("a").content(link)["uri"] == "mcp://a/note://1"
    assert GatewayNames("a").content(held)["resource"] == {"uri": "mcp://a/note://1", "text": "x"}
    assert GatewayNames("a").content(text) == text
