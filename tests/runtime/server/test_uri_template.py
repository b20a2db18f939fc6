from __future__ import annotations

import pytest

from mcpfactory_runtime.server.uri_template import UriTemplate
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests


@requirement("resources.templates", "resources.template-read")
@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("notes://{id}", "notes://5", {"id": "5"}),
        ("notes://{id}", "notes://a/b", None),
        ("notes://{id}", "notes://", None),
        ("notes://{id}", "notes://a%20b", {"id": "a b"}),
        ("a://{x}/b/{y}", "a://1/b/2", {"x": "1", "y": "2"}),
        ("a://{x,y}", "a://1,2", {"x": "1", "y": "2"}),
        ("file:///{+path}", "file:///a/b/c.txt", {"path": "a/b/c.txt"}),
        ("file:///{path*}", "file:///a/b", {"path": "a/b"}),
        ("a://b{#part}", "a://b#x/y", {"part": "x/y"}),
        ("a://b{.ext}", "a://b.txt", {"ext": "txt"}),
        ("a://b{/one,two}", "a://b/1/2", {"one": "1", "two": "2"}),
        ("a://b{;p,q}", "a://b;p=1;q", {"p": "1", "q": ""}),
        ("a://b{?p,q}", "a://b?q=2&p=1", {"p": "1", "q": "2"}),
        ("a://b{?p,q}", "a://b", {}),
        ("a://b{?p}", "a://b?z=1", None),
        ("a.b://{x}", "aXb://1", None),
        ("a://100%/{x}", "a://100%25/1", {"x": "1"}),
        ("städte://ä b/{name}", "städte://ä b/Köln am Rhein", {"name": "Köln am Rhein"}),
        ("städte://ä b/{name}", "st%c3%a4dte://%C3%A4%20b/K%C3%B6ln%20am%20Rhein", {"name": "Köln am Rhein"}),
        ("a://{größe}", "a://%7Eb", {"größe": "~b"}),
        ("a://{x}", "a://100%", {"x": "100%"}),
        ("a://b{?p,q}", "a://b?q=2#x&p=1", {"q": "2"}),
        ("a://b{?p}", "a://b#x?p=1", {}),
        ("a://b{?p}{#part}", "a://b?p=1#x?y", {"p": "1", "part": "x?y"}),
    ],
)
def test_templates_are_read_backwards(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == values


@parametrize_subtests(
    "template, uri, unsafe",
    [
        ("notes://{id}", "notes://..%2F..%2Fetc%2Fpasswd", True),
        ("notes://{id}", "notes://a%2fb", True),
        ("notes://{id}", "notes://a%5Cb", True),
        ("notes://{id}", "notes://a%00", True),
        ("notes://{id}", "notes://..", True),
        ("notes://{id}", "notes://v1..v2", False),
        ("notes://{id}", "notes://a:b", False),
        ("notes://{id}", "notes://%252e%252e%252f", False),  # decoded once: it is a name
        ("file:///{path*}", "file:///a/b..c/d", False),
        ("file:///{path*}", "file:////etc/passwd", True),
        ("file:///{+path}", "file:///a/%2e%2e/b", True),
        ("file:///{+path}", "file:///a%5C..%5Cb", True),
        ("file:///{+path}", "file:///C:/windows", True),
        ("file:///{+path}", "file:///a/b%00.txt", True),
        ("page:{+url}", "page:https://example.com/a", False),
        ("a://b{/one,two}", "a://b/../2", True),
        ("a://b{?q}", "a://b?q=AC/DC", False),
        ("a://b{?q}", "a://b?q=../x", True),
        ("a://b{#part}", "a://b#/etc", True),
    ],
)
def test_values_that_lead_out_of_a_folder_are_told(template: str, uri: str, unsafe: bool) -> None:
    found = UriTemplate(template)
    values = found.match(uri)
    assert values is not None
    assert found.unsafe(values) is unsafe
    assert not found.unsafe(values, found.names)


@parametrize_subtests(
    "template", ["a://{", "a://}", "a://{1x}", "a://{x}{x}", "a://{}", "a://{a b}", "a://{a²}", "a://{x**}"]
)
def test_malformed_templates_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match="URI template"):
        UriTemplate(template)
