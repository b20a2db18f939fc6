from __future__ import annotations

import pytest

from mcpfactory_runtime.server.uri_template import UriTemplate
from tests.runtime.requirements import requirement


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
    ],
)
def test_templates_are_read_backwards(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize("template", ["a://{", "a://}", "a://{1x}", "a://{x}{x}", "a://{}", "a://{a b}"])
def test_malformed_templates_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match="URI template"):
        UriTemplate(template)
