"""Bodies by media type: OpenAPI 3.1 §4.8.13 – §4.8.15, RFC 7578."""

from __future__ import annotations

import email.policy
import json
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Body, Field, Operation
from mcpfactory_runtime.upstream.request import UpstreamRequest, build_request
from tests.subtest_table import parametrize_subtests

FORM = "application/x-www-form-urlencoded"


def post(
    content_type: str, fields: list[Field], arguments: dict[str, Any], *, required: bool = False
) -> UpstreamRequest:
    operation = Operation("POST", "/x", body=Body(content_type, tuple(fields), required), accept="")
    return build_request(operation, arguments, "https://api.example.com")


def kind(request: UpstreamRequest) -> str:
    return dict(request.headers).get("Content-Type", "")


def parts(request: UpstreamRequest) -> list[EmailMessage]:
    head = f"Content-Type: {kind(request)}\r\n\r\n".encode()
    message = BytesParser(policy=email.policy.HTTP).parsebytes(head + (request.content or b""))
    return [part for part in message.iter_parts() if isinstance(part, EmailMessage)]


def test_fields_are_merged_into_json_at_their_paths() -> None:
    fields = [
        Field("n", ("name",)),
        Field("f", ("owner", "first")),
        Field("l", ("owner", "last-name")),
        Field("x", ("x",)),
    ]
    request = post("application/json", fields, {"n": "Rex", "f": "A", "l": "B"})
    assert json.loads(request.content or b"") == {"name": "Rex", "owner": {"first": "A", "last-name": "B"}}
    assert kind(request) == "application/json"


@parametrize_subtests("value", [[{"id": 1}], "hello", 0, False, None, {"k": "v"}, {}])
def test_a_whole_json_body_is_any_value(value: Any) -> None:
    request = post("application/merge-patch+json", [Field("b")], {"b": value})
    assert json.loads(request.content or b"") == value
    assert kind(request) == "application/merge-patch+json"


def test_no_field_means_no_body_unless_one_is_required() -> None:
    fields = [Field("a", ("a",))]
    assert post("application/json", fields, {}).content is None
    assert kind(post("application/json", fields, {})) == ""
    assert post("application/json", fields, {}, required=True).content == b"{}"
    assert post("application/json", [Field("whole")], {}, required=True).content is None


@parametrize_subtests(
    "field, value, expected",
    [
        (Field("v", ("v",)), "x y&z", "v=x%20y%26z"),
        (Field("v", ("v",)), True, "v=true"),
        (Field("v", ("v",)), ["a", "b"], "v=a&v=b"),
        (Field("v", ("v",), style="form", explode=False), ["a", "b"], "v=a,b"),
        (Field("v", ("v",), style="deepObject"), {"a": {"b": 1}}, "v%5Ba%5D%5Bb%5D=1"),
        (Field("v", ("v",)), {"a": 1}, "v=%7B%22a%22%3A1%7D"),
        (Field("v", ("v",), content_type="application/json"), ["a"], "v=%5B%22a%22%5D"),
        (Field("v", ("v",), allow_reserved=True), "a/b&c", "v=a/b%26c"),
        (Field("v"), {"p": "q", "r": [1, 2]}, "p=q&r=1&r=2"),
    ],
)
def test_forms_follow_the_encoding_object(field: Field, value: Any, expected: str) -> None:
    request = post(FORM, [field], {"v": value})
    assert (request.content, kind(request)) == (expected.encode(), FORM)


def test_multipart_sends_files_fields_and_objects_as_parts() -> None:
    fields = [
        Field("file", ("file",), file=True),
        Field("img", ("img",), content_type="image/png, image/jpeg", file=True),
        Field("purpose", ("purpose",)),
        Field("meta", ("meta",)),
        Field("tags", ("tags",)),
        Field("csv", ("csv",), style="form", explode=False),
    ]
    arguments = {
        "file": "hello",
        "img": {"base64": "AAEC", "filename": 'a".png'},
        "purpose": "é",
        "meta": {"a": 1},
        "tags": ["x", "y"],
        "csv": ["p", "q"],
    }
    found = parts(post("multipart/form-data", fields, arguments))
    names = [part.get_param("name", header="content-disposition") for part in found]
    assert names == ["file", "img", "purpose", "meta", "tags", "tags", "csv"]
    contents = [part.get_payload(decode=True) for part in found]
    assert contents == [b"hello", b"\0\1\2", "é".encode(), b'{"a":1}', b"x", b"y", b"p,q"]
    assert [part.get_filename() for part in found] == ["file", "a%22.png", None, None, None, None, None]
    types = [part.get("Content-Type") for part in found]
    assert types == ["application/octet-stream", "image/png", None, "application/json", None, None, None]


def test_a_part_cannot_forge_another() -> None:
    evil = '"\r\nX-Evil: 1\r\n\r\n'
    arguments = {"v": {"text": "a\r\n--b\r\nc", "filename": evil}}
    (part,) = parts(post("multipart/form-data", [Field("v", (evil,), file=True)], arguments))
    assert part.get_payload(decode=True) == b"a\r\n--b\r\nc"
    assert "X-Evil" not in part


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"path": "/etc/passwd"}, "local paths are not read"),
        ({"base64": "$$"}, "invalid base64"),
        ({"text": "x", "content_type": "a/b\r\nX: 1"}, "control character"),
    ],
)
def test_a_file_argument_that_cannot_be_sent_is_refused(value: Any, match: str) -> None:
    with pytest.raises(ToolError, match=match):
        post("multipart/form-data", [Field("v", ("v",), file=True)], {"v": value})


@parametrize_subtests(
    "content_type, value, content, sent",
    [
        ("text/plain", "hello é", "hello é".encode(), "text/plain; charset=utf-8"),
        ("text/csv; charset=utf-8", "a,b\n", b"a,b\n", "text/csv; charset=utf-8"),
        ("application/xml", "<a>1</a>", b"<a>1</a>", "application/xml"),
        ("application/octet-stream", "hello", b"hello", "application/octet-stream"),
        ("application/octet-stream", {"base64": "AAEC"}, b"\0\1\2", "application/octet-stream"),
        ("application/x-ndjson", [{"a": 1}, {"a": 2}], b'{"a":1}\n{"a":2}\n', "application/x-ndjson"),
        ("*/*", {"a": 1}, b'{"a":1}', "application/json"),
        ("*/*", "x", b"x", "text/plain; charset=utf-8"),
    ],
)
def test_other_bodies_are_sent_as_they_are_given(content_type: str, value: Any, content: bytes, sent: str) -> None:
    request = post(content_type, [Field("b")], {"b": value})
    assert (request.content, kind(request)) == (content, sent)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_have_is_refused(value: float) -> None:
    with pytest.raises(ToolError, match="JSON cannot express"):
        post("application/json", [Field("b")], {"b": value})
