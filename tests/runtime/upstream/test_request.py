"""Expectations come from the style tables of OpenAPI 3.1 §4.8.12.4 and 3.2 §4.12, RFC 6570 §3.2 and RFC 3986."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, Parameter
from mcpfactory_runtime.upstream.auth import Credentials
from mcpfactory_runtime.upstream.operation import ParameterLocation, Style
from mcpfactory_runtime.upstream.request import UpstreamRequest, build_request
from tests.subtest_table import parametrize_subtests

BASE = "https://api.example.com/v1"
ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


def one(place: ParameterLocation, value: Any, path: str = "/x", name: str = "color", **details: Any) -> UpstreamRequest:
    operation = Operation("GET", path, (Parameter("a", place, name, **details),), accept="")
    return build_request(operation, {"a": value}, BASE)


def target(request: UpstreamRequest) -> str:
    return request.url.removeprefix(BASE)


@parametrize_subtests(
    "style, explode, value, expected",
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, ARRAY, "blue,black,brown"),
        ("simple", True, ARRAY, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200,B,150"),
        ("simple", True, OBJECT, "R=100,G=200,B=150"),
        ("label", False, "blue", ".blue"),
        ("label", False, ARRAY, ".blue,black,brown"),
        ("label", True, ARRAY, ".blue.black.brown"),
        ("label", False, OBJECT, ".R,100,G,200,B,150"),
        ("label", True, OBJECT, ".R=100.G=200.B=150"),
        ("matrix", False, "", ";color"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, ARRAY, ";color=blue,black,brown"),
        ("matrix", True, ARRAY, ";color=blue;color=black;color=brown"),
        ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
        ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
        ("segments", None, "shelves/1/books/a b", "shelves/1/books/a%20b"),
        ("segments", None, "a:b/%2e%2e", "a:b/%252e%252e"),
        ("", None, 42, "42"),
        ("", None, True, "true"),
        ("", None, 1.5, "1.5"),
        ("", None, "a/b c?d#e", "a%2Fb%20c%3Fd%23e"),
        ("", None, "50%25 é", "50%2525%20%C3%A9"),
    ],
)
def test_a_path_parameter_is_written_in_its_style(
    style: Style, explode: bool | None, value: Any, expected: str
) -> None:
    assert target(one("path", value, "/x/{color}/y", style=style, explode=explode)) == f"/x/{expected}/y"


@parametrize_subtests("value", ["", "a//b", "/a", "a/", "a/./b", "a/../b", "..", "a\\..\\b"])
def test_segments_lead_nowhere_else(value: str) -> None:
    with pytest.raises(ToolError, match="another resource"):
        one("path", value, "/x/{color}/y", style="segments")


@parametrize_subtests(
    "style, explode, value, expected",
    [
        ("", None, "blue", "color=blue"),
        ("", None, "", "color="),
        ("", None, False, "color=false"),
        ("", None, 0, "color=0"),
        ("form", True, ARRAY, "color=blue&color=black&color=brown"),
        ("form", False, ARRAY, "color=blue,black,brown"),
        ("form", False, ["a,b", "c"], "color=a%2Cb,c"),
        ("form", True, OBJECT, "R=100&G=200&B=150"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("spaceDelimited", False, ARRAY, "color=blue%20black%20brown"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, ARRAY, "color=blue%7Cblack%7Cbrown"),
        ("tabDelimited", False, ARRAY, "color=blue%09black%09brown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("deepObject", None, {"a": {"b": [1, 2]}}, "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2"),
        ("form", True, [1, None, 2], "color=1&color=2"),
        ("form", True, None, ""),
        ("form", False, [], ""),
        ("", None, "a&b=c+d e#f", "color=a%26b%3Dc%2Bd%20e%23f"),
        ("", None, [{"a": 1}], "color=%7B%22a%22%3A1%7D"),
    ],
)
def test_a_query_parameter_is_written_in_its_style(
    style: Style, explode: bool | None, value: Any, expected: str
) -> None:
    assert target(one("query", value, style=style, explode=explode)) == "/x" + (f"?{expected}" if expected else "")


@parametrize_subtests(
    "explode, value, expected",
    [
        (False, "a b", "a b"),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (None, True, "true"),
        (None, "é", "é"),
    ],
)
def test_a_header_parameter_is_written_in_the_simple_style(explode: bool | None, value: Any, expected: str) -> None:
    assert one("header", value, name="X-Color", explode=explode).headers == (("X-Color", expected),)


@parametrize_subtests(
    "style, explode, value, expected",
    [
        ("", None, "a b;c", "color=a%20b%3Bc"),
        ("form", False, ARRAY, "color=blue,black,brown"),
        ("form", True, ARRAY, "color=blue; color=black; color=brown"),
        ("form", True, OBJECT, "R=100; G=200; B=150"),
        ("cookie", False, ["a b", "c"], "color=a b,c"),
        ("cookie", True, OBJECT, "R=100; G=200; B=150"),
    ],
)
def test_cookies_share_one_header(style: Style, explode: bool | None, value: Any, expected: str) -> None:
    assert one("cookie", value, style=style, explode=explode).headers == (("Cookie", expected),)


def test_a_parameter_described_by_content_travels_as_that_media_type() -> None:
    assert target(one("query", {"a": [1]}, content_type="application/json")) == "/x?color=%7B%22a%22%3A%5B1%5D%7D"
    assert one("header", {"a": "é"}, content_type="application/json").headers == (("color", '{"a":"é"}'),)


def test_a_querystring_parameter_is_the_whole_query() -> None:
    form = "application/x-www-form-urlencoded"
    assert target(one("querystring", {"foo": "a b", "bar": True, "n": [1, 2]}, content_type=form)) == (
        "/x?foo=a%20b&bar=true&n=1&n=2"
    )
    assert target(one("querystring", {"a": 1}, content_type="application/json")) == "/x?%7B%22a%22%3A1%7D"


@parametrize_subtests("value", ["..", ".", "", "a/../b", "..\\b", "%2e%2e/..", []])
def test_a_path_segment_that_would_address_another_resource_is_refused(value: Any) -> None:
    with pytest.raises(ToolError, match="path segment"):
        one("path", value, "/users/{color}/posts")


def test_a_path_parameter_without_a_value_is_refused() -> None:
    with pytest.raises(ToolError, match="'color' has no value"):
        build_request(Operation("GET", "/x/{color}"), {}, BASE)


@parametrize_subtests("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", ["a", "b\r"], {"a\n": 1}])
def test_a_header_value_with_a_line_end_is_refused(value: Any) -> None:
    with pytest.raises(ToolError, match="character"):
        one("header", value, name="X-Color")


@pytest.mark.parametrize("value", ["a;b=c", "a\r\nb", ["x;"]])
def test_a_raw_cookie_cannot_end_early(value: Any) -> None:
    with pytest.raises(ToolError, match="character"):
        one("cookie", value, style="cookie")


@parametrize_subtests("name", ["Host", "Content-Length", "transfer-encoding", "Proxy-Authorization", "X Y"])
def test_headers_of_the_http_client_are_not_for_arguments(name: str) -> None:
    with pytest.raises(ToolError, match=f"header {name!r}, which arguments must not set"):
        one("header", "x", name=name)


@pytest.mark.parametrize("name", ["Accept", "Authorization", "content-type"])
def test_parameters_that_openapi_tells_to_ignore_are_ignored(name: str) -> None:
    assert one("header", "x", name=name).headers == ()


def test_half_a_surrogate_pair_is_refused_everywhere() -> None:
    for place in ("query", "header", "cookie"):
        with pytest.raises(ToolError, match="surrogate"):
            one(place, "\ud800")


def test_credentials_join_the_request_and_go_before_arguments() -> None:
    operation = Operation("GET", "/x", (Parameter("k", "header", "X-Key"), Parameter("c", "cookie", "c")))
    credentials = Credentials((("X-Key", "s3cret"),), (("key", "a&b"),), (("sid", "t;"),))
    request = build_request(operation, {"k": "mine", "c": "1"}, BASE, credentials)
    assert request.url == f"{BASE}/x?key=a%26b"
    assert request.headers == (("Accept", "application/json"), ("X-Key", "s3cret"), ("Cookie", "c=1; sid=t%3B"))


def test_the_repr_of_a_request_shows_no_secret() -> None:
    credentials = Credentials((("X-Key", "s3cret"),), (("key", "s3cret"),), (("sid", "s3cret"),))
    request = build_request(Operation("GET", "/x"), {}, BASE, credentials)
    assert "s3cret" not in repr(request)
    assert "s3cret" not in repr(credentials)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.booleans())
def test_no_text_leaves_its_query_parameter(text: str, reserved: bool) -> None:
    parts = urlsplit(one("query", text, allow_reserved=reserved).url)
    assert (parts.scheme, parts.netloc, parts.path, parts.fragment) == ("https", "api.example.com", "/v1/x", "")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    assert [name for name, _ in pairs] == ["color"]
    if not reserved:
        assert pairs == [("color", text)]


@given(TEXT, st.booleans())
def test_no_text_leaves_its_path_segment(text: str, reserved: bool) -> None:
    try:
        parts = urlsplit(one("path", text, "/x/{color}/y", allow_reserved=reserved).url)
    except ToolError:
        assert text in ("", ".") or ".." in unquote(text)
        return
    assert (parts.netloc, parts.query, parts.fragment) == ("api.example.com", "", "")
    segments = parts.path.split("/")
    assert [segments[:3], segments[4:]] == [["", "v1", "x"], ["y"]]
    if not reserved:
        assert unquote(segments[3]) == text


@given(TEXT)
def test_no_text_leaves_its_header_line(text: str) -> None:
    try:
        request = one("header", text, name="X-Color")
    except ToolError:
        return
    assert all("\n" not in value and "\r" not in value and "\0" not in value for _, value in request.headers)
