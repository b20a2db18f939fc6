from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import ToolResult
from mcpfactory_runtime.upstream import Operation, SecurityScheme, response
from mcpfactory_runtime.upstream.client import response_file_writer
from mcpfactory_runtime.upstream.response import to_tool_result
from tests.subtest_table import parametrize_subtests

GET = Operation("GET", "/books/{id}")


def read(content: bytes | str, kind: str = "application/json", status: int = 200, **more: Any) -> ToolResult:
    data = content.encode() if isinstance(content, str) else content
    headers = {"content-type": kind} if kind else {}
    headers |= {name.replace("_", "-"): value for name, value in more.pop("headers", {}).items()}
    return to_tool_result(status, headers, data, more.pop("operation", GET), **more)


def text(result: ToolResult) -> str:
    (block,) = result.content
    return str(block["text"])


def failure(status: int, content: str, kind: str = "application/json", **headers: str) -> str:
    with pytest.raises(ToolError) as caught:
        read(content, kind, status, headers=headers)
    return str(caught.value)


def test_a_json_object_is_structured_content_and_compact_text() -> None:
    result = read('{ "a": 1,\n "b": "é" }')
    assert (text(result), result.structured, result.is_error) == ('{"a":1,"b":"é"}', {"a": 1, "b": "é"}, False)


@parametrize_subtests("value", [[1, 2], "x", 3, None, True])
def test_other_json_is_wrapped_because_structured_content_is_an_object(value: Any) -> None:
    result = read(json.dumps(value), "application/vnd.api+json")
    assert (json.loads(text(result)), result.structured) == (value, {"result": value})


@parametrize_subtests(
    "content, kind, accept, structured",
    [
        ('{"a":1}', "text/plain", "application/json", {"a": 1}),
        (" \n[1]", "text/html; charset=utf-8", "application/json", {"result": [1]}),
        ('\ufeff{"a":1}', "text/html", "application/json", {"a": 1}),
        ('{"a":1}', "application/octet-stream", "text/plain, application/json;q=0.9", {"a": 1}),
        ('{"a":1}', "text/javascript", "application/vnd.api+json", {"a": 1}),
        ('{"a":1}', "text/plain", "text/plain", None),
        ('{"a":1}', "text/csv", "application/json", None),
        ("{{ template }}", "text/html", "application/json", None),
        ("12", "text/plain", "application/json", None),
        ('\ufeff{"a":1}', "application/json", "application/json", {"a": 1}),
        (
            '{"a": NaN, "b": [-Infinity, "NaN"]}',
            "application/json",
            "application/json",
            {"a": None, "b": [None, "NaN"]},
        ),
        ('{"a":1}\n\r\n{"b":2}\n', "application/x-ndjson", "application/json", {"result": [{"a": 1}, {"b": 2}]}),
        ('\x1e{"a":1}\n\x1e2\n', "application/json-seq", "application/json", {"result": [{"a": 1}, 2]}),
        ('{"a":1}\nnot json', "application/x-ndjson", "application/json", None),
        ('{"a":1}', "image/png", "application/json", None),
    ],
)
def test_json_is_recognised_whatever_its_label_where_json_is_expected(
    content: str, kind: str, accept: str, structured: Any
) -> None:
    operation = Operation("GET", "/x", accept=accept)
    result = to_tool_result(200, {"content-type": kind}, content.encode(), operation)
    assert result.structured == structured
    if structured is not None:
        assert json.loads(text(result)) == structured.get("result", structured)


def test_half_a_surrogate_pair_does_not_reach_the_peer() -> None:
    result = read(r'{"a":"\ud800"}')
    text(result).encode()
    json.dumps(result.structured, ensure_ascii=False).encode()


def test_text_is_decoded_in_its_charset_and_loses_control_characters() -> None:
    assert text(read("é".encode("latin-1"), "text/plain; charset=ISO-8859-1")) == "é"
    assert text(read("\ufeffa\x1b[31m\0b\tc\r\n".encode(), "text/csv; charset=nonsense")) == "a[31mb\tc\r\n"


@pytest.mark.parametrize(("kind", "block"), [("image/png", "image"), ("image/webp", "image"), ("audio/mpeg", "audio")])
def test_images_and_audio_are_blocks_of_their_kind(kind: str, block: str) -> None:
    assert read(b"\0\1", kind).content == [{"type": block, "data": b64encode(b"\0\1").decode(), "mimeType": kind}]


@pytest.mark.parametrize("kind", ["application/pdf", "image/tiff", "image/x-icon"])
def test_other_binary_content_is_an_embedded_resource(kind: str) -> None:
    (block,) = read(b"%PDF\xb5", kind).content
    assert block["type"] == "resource"
    assert block["resource"]["mimeType"] == kind
    assert block["resource"]["blob"] == b64encode(b"%PDF\xb5").decode()


def test_text_of_an_unknown_application_type_is_text() -> None:
    assert read("{// why\n}", "application/hujson").content == [{"type": "text", "text": "{// why\n}"}]


def test_an_image_of_text_is_a_text_resource() -> None:
    (block,) = read("<svg/>", "image/svg+xml").content
    assert (block["type"], block["resource"]["text"]) == ("resource", "<svg/>")


def test_declared_headers_of_a_failure_are_before_the_hint() -> None:
    operation = Operation("PATCH", "/x", headers=("retry-after", "upload-offset"))
    headers = {"upload_offset": "7\x1b", "retry_after": "5"}
    with pytest.raises(ToolError) as caught:
        read("", "", 409, headers=headers, operation=operation)
    assert str(caught.value).splitlines()[1:-1] == ["Retry-After: 5 seconds", "upload-offset: 7"]


def test_an_empty_answer_says_its_status_and_where_the_new_thing_is() -> None:
    assert text(read(b"", "", 204)) == "204 No Content, empty body."
    assert text(read(b"", "", 201, headers={"location": "/books/7"})) == "201 Created, empty body.\nlocation: /books/7"
    upload = Operation("POST", "/x", headers=("upload-offset", "upload-expires"))
    assert text(read(b"", "", 201, headers={"upload_offset": "0"}, operation=upload)).endswith("\nupload-offset: 0")
    headers = {"etag": "x", "date": "today", "allow": "GET", "server": "s", "link": "<y>"}
    told = text(read(b"", "text/html", headers=headers, operation=Operation("HEAD", "/x")))
    assert told == "200 OK.\nallow: GET\ncontent-type: text/html\netag: x\nlink: <y>"


def test_declared_headers_follow_the_content() -> None:
    operation = Operation("GET", "/x", headers=("upload-offset", "absent"))
    content = read('{"a": 1}', headers={"upload_offset": "7", "etag": "x"}, operation=operation).content
    assert [block["text"] for block in content] == ['{"a":1}', "upload-offset: 7"]


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    shown = text(read("x" * 5000, "text/plain", max_text=1000))
    assert shown.startswith("x" * 1000 + "\n")
    assert "first 1,000 characters of a response of 5,000 characters" in shown
    assert "of 9,000 bytes" in text(read("x" * 5000, "text/plain", cut=True, headers={"content_length": "9000"}))


def test_binary_content_that_was_cut_is_refused() -> None:
    with pytest.raises(ToolError, match="more than 10 bytes, which is too large"):
        read(b"\0" * 10, "image/png", cut=True)


@parametrize_subtests(
    "body, told",
    [
        ('{"title": "Out of stock", "detail": "Only 2 left.", "type": "about:blank"}', "Out of stock; Only 2 left."),
        ('{"message": "No such book"}', "No such book"),
        ('{"error": "invalid_grant", "error_description": "Expired."}', "Expired.; invalid_grant"),
        ('{"error": {"code": 7, "message": "Bad"}}', "Bad"),
        ('{"errors": [{"field": "title", "message": "too long"}, {"detail": "x"}]}', "title: too long; x"),
        ('{"detail": [{"loc": ["body", "n"], "msg": "not a number"}]}', "body.n: not a number"),
        ('{"errors": {"title": ["is empty"]}}', "title: is empty"),
        ('{"errors": {"age": "negative"}}', "age: negative"),
        ('{"errorMessages": ["No project"], "errors": {}}', "No project"),
        ('{"title": "Bad", "invalid-params": [{"name": "age", "reason": "negative"}]}', "Bad; age: negative"),
        ('{"fault": {"faultstring": "No policy"}}', "No policy"),
        ('{"errors": [{"message": "No field x", "path": ["book", "x"]}]}', "book.x: No field x"),
        ('{"code": 9}', '{"code":9}'),
        ("plain words", "plain words"),
    ],
)
def test_the_apis_own_message_is_told(body: str, told: str) -> None:
    assert failure(400, body).splitlines()[0] == f"GET /books/{{id}} failed: 400 Bad Request: {told}"


@parametrize_subtests("page", ["<title", "<title>", "<", "<a", " "])
def test_a_hostile_error_page_is_read_in_one_pass(page: str) -> None:
    text = page * 2_000_000  # hours, where it is read again from each beginning
    assert len(response._MARKUP.sub(" ", response._title(text) or text)) <= len(text)


def test_an_html_error_page_is_reduced_to_its_title() -> None:
    page = "<html><head><title>502 &amp; gone</title></head><body>" + "x" * 9000
    assert failure(502, page, "text/html").splitlines()[0] == "GET /books/{id} failed: 502 Bad Gateway: 502 & gone"


PAGE = "<!DOCTYPE html><html><head><title>Sign in &amp; go on</title></head><body>Who are you?</body></html>"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PAGE, "text/html; charset=utf-8"),
        (PAGE, "text/plain"),
        (PAGE, ""),
        (f"\ufeff\n<!-- {'x' * 500} -->\n{PAGE[15:]}", "text/html"),
    ],
)
def test_a_page_in_the_place_of_json_is_no_answer(content: str, kind: str) -> None:
    with pytest.raises(ToolError) as caught:
        read(content, kind)
    first, hint = str(caught.value).splitlines()
    assert first == "GET /books/{id} returned a page instead of JSON: 200 OK: Sign in & go on"
    assert hint.startswith("hint: ")


@parametrize_subtests(
    "status, hint",
    [
        (401, "credentials"),
        (403, "permit"),
        (404, "identifiers"),
        (409, "read it first"),
        (422, "arguments"),
        (429, "wait"),
        (599, "later"),
    ],
)
def test_every_failure_says_what_to_do_next(status: int, hint: str) -> None:
    told = failure(status, "{}")
    assert str(status) in told
    assert hint in told.splitlines()[-1].removeprefix("hint: ")


def test_a_refusal_names_the_variables_that_hold_the_credential() -> None:
    schemes = {"key": SecurityScheme("key", "apiKey", ("BOOKSHOP_API_KEY",), "header", "X-Key")}
    operation = Operation("GET", "/books", security=(("key",), ("other",)))
    for status in (401, 403):
        with pytest.raises(ToolError, match=r"hint: .*The credential is in BOOKSHOP_API_KEY\."):
            read("{}", status=status, operation=operation, schemes=schemes)


def test_a_used_up_rate_limit_is_told_whatever_the_status() -> None:
    told = failure(403, "{}", x_ratelimit_remaining="0", x_ratelimit_reset="1790000000")
    assert "Rate limit exhausted; reset: 1790000000" in told
    assert "limits its rate" in told.splitlines()[-1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"ok": False, "error": "channel_not_found"}, "channel_not_found"),
        ({"data": None, "errors": [{"message": "No field x"}]}, "No field x"),
    ],
)
def test_a_success_that_says_that_it_is_none_is_a_failure(body: Any, told: str) -> None:
    with pytest.raises(ToolError, match=rf"was refused: 200 OK: {told}\n"):
        read(json.dumps(body))


def test_large_binary_content_is_kept_as_a_file_or_refused(tmp_path: Path) -> None:
    content = b"\0" * 1_000_001
    with pytest.raises(ToolError, match="MCPFACTORY_FILES"):
        read(content, "application/pdf")
    (link,) = read(
        content, "application/pdf", store_file=response_file_writer({"MCPFACTORY_FILES": str(tmp_path)})
    ).content
    (file,) = tmp_path.iterdir()
    assert (link["type"], link["uri"], link["size"]) == ("resource_link", file.as_uri(), 1_000_001)
    assert file.read_bytes() == content
    assert (file.suffix, file.stat().st_mode & 0o777) == (".pdf", 0o600)
    with pytest.raises(ToolError, match="MCPFACTORY_FILES"):
        read(content, "application/pdf", store_file=response_file_writer({"MCPFACTORY_FILES": str(tmp_path / "none")}))
