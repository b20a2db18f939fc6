"""Recordings of traffic: requests become operations by method and path, and no credential of a recording gets into a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.sources.secrets import redacted
from tests.codegen.reading.support import codes
from tests.codegen.sources.support import SourceReader, parameters

SECRET = "hunter2-0f9e8d7c6b5a"
SHORT = "correcthorsebattery"  # has no form by which it is found elsewhere once it was seen
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
JSON = "application/json"


def entry(url: str, answer: Any = None, method: str = "GET", kind: str = JSON, **request: Any) -> dict[str, Any]:
    """A request with its answer."""
    body = answer if isinstance(answer, str) else json.dumps({"ok": True} if answer is None else answer)
    return {
        "request": {"method": method, "url": url, "headers": [], "queryString": [], "cookies": [], **request},
        "response": {"status": 200, "headers": [], "cookies": [], "content": {"mimeType": kind, "text": body}},
    }


def har(*entries: dict[str, Any]) -> dict[str, Any]:
    """A recording of these requests."""
    return {"log": {"version": "1.2", "creator": {"name": "browser", "version": "9"}, "entries": list(entries)}}


def posted(value: Any, kind: str = JSON, **members: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"postData": {"mimeType": kind, "text": value if isinstance(value, str) else json.dumps(value), **members}}


@pytest.mark.parametrize(
    ("urls", "paths"),
    [
        (["/v1/books/1", "/v1/books/2", "/v1/books"], ["/v1/books/{book_id}", "/v1/books"]),
        (["/books/7f9c24e8-3b12-4fef-91e0-56a2d5a3c9aa/pages/3"], ["/books/{book_id}/pages/{page_id}"]),
        (["/books/507f1f77bcf86cd799439011", "/books/search"], ["/books/{book_id}", "/books/search"]),
        (["/api/v2/me", "/api/v2/me/orders"], ["/api/v2/me", "/api/v2/me/orders"]),
        (["/users/cus_9s6XKzkNRiz8i3/cards", "/users/me/cards"], ["/users/{user_id}/cards", "/users/me/cards"]),
        (["/a/1/2"], ["/a/{a_id}/{id}"]),
        (["/days/2024-05-01"], ["/days/{day_id}"]),
    ],
)
def test_ids_in_paths_are_parameters(reader: SourceReader, urls: list[str], paths: list[str]) -> None:
    api = reader.api(har(*(entry(f"https://api.test{url}") for url in urls)))
    assert [one.path for one in api.operations] == paths
    assert api.servers == ("https://api.test",)
    assert codes(api) == ["har-redacted"]


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (entry("https://api.test/app.js", "x", kind="application/javascript"), "it is a file"),
        (entry("https://api.test/logo.png"), "it is a file"),
        (
            entry("https://api.test/", "<html>", kind="text/html; charset=utf-8"),
            "neither what was sent nor the answer is JSON or a form (text/html)",
        ),
        (entry("https://www.google-analytics.com/collect", method="POST"), "it reports to a service of analytics"),
        (entry("https://api.test/books", method="OPTIONS"), "browsers send it for themselves"),
        (entry("https://api.test" + "/1" * 2000), "its path has more than 40 segments"),
        (entry("data:text/plain,x"), "it is no HTTP request"),
        (entry("http://[::1/x"), "it is no HTTP request"),
    ],
)
def test_what_is_no_call_of_an_api_is_left_out_with_its_reason(
    reader: SourceReader, other: dict[str, Any], reason: str
) -> None:
    api = reader.api(har(entry("https://api.test/books"), other))
    assert [one.key for one in api.operations] == ["GET /books"]
    assert [one.reason for one in api.skipped] == [reason]
    assert api.skipped[0].pointer == "/log/entries/1"


def test_queries_are_typed_by_all_requests(reader: SourceReader) -> None:
    api = reader.api(
        har(*(entry(f"https://api.test/books?{query}") for query in ("q=a&page=1&tag=x&tag=y", "q=b&page=2&deep=true")))
    )
    (one,) = api.operations
    assert parameters(one) == {
        "q": ("query", True),
        "page": ("query", True),
        "tag": ("query", False),
        "deep": ("query", False),
    }
    types = {each.name: each.schema["type"] for each in one.parameters if isinstance(each.schema, dict)}
    assert types == {"q": "string", "page": "integer", "tag": "array", "deep": "boolean"}


def test_bodies_and_answers_are_merged_over_requests(reader: SourceReader) -> None:
    answers: list[Any] = [{"id": 1, "title": "Emma"}, {"id": 2.5, "title": None, "new": []}]
    sent = [{"title": "Emma", "pages": 1}, {"title": "Persuasion"}]
    pairs = zip(answers, sent, strict=True)
    api = reader.api(har(*(entry("https://api.test/books", answer, "POST", **posted(body)) for answer, body in pairs)))
    (one,) = api.operations
    assert one.body is not None
    assert (one.body.content_type, one.body.required) == (JSON, True)
    assert isinstance(one.body.schema, dict)
    assert one.body.schema["required"] == ["title"]
    answer = one.responses[0].schema
    assert isinstance(answer, dict)
    assert answer["required"] == ["id", "title"]
    assert answer["properties"]["id"] == {"type": ["number", "null"]}


def test_forms_and_files(reader: SourceReader) -> None:
    form = {
        "postData": {
            "mimeType": "multipart/form-data; boundary=x",
            "params": [{"name": "f", "fileName": "a.png", "value": "…"}, {"name": "n", "value": "1"}],
        }
    }
    fields = posted("a=1&b=two", "application/x-www-form-urlencoded")
    api = reader.api(
        har(entry("https://api.test/up", method="POST", **form), entry("https://api.test/in", method="POST", **fields))
    )
    first, second = api.operations
    assert first.body is not None
    assert second.body is not None
    assert (first.body.content_type, list(first.body.encoding)) == ("multipart/form-data", ["f"])
    assert isinstance(second.body.schema, dict)
    assert second.body.schema["properties"] == {"a": {"type": "integer"}, "b": {"type": "string"}}


def _private() -> dict[str, Any]:
    """A recording with a secret in each place that could hold one."""
    headers = [
        {"name": name, "value": value}
        for name, value in {
            "Authorization": f"Bearer {SECRET}", "Cookie": f"sid={SECRET}", "X-Api-Key": SECRET, "X-CSRF-Token": SECRET, "X-Version": "7",
            "X-Odd": JWT, "Referer": f"https://api.test/?token={SECRET}",
        }.items()
    ]  # fmt: skip
    body = {
        "title": "Emma",
        "password": SECRET,
        "card": {"cvv": SECRET, "apiToken": SECRET},
        "odd": JWT,
        "link": f"https://u:{SECRET}@x.test/?access_token={SECRET}",
        "pairs": [{"name": "password", "value": SHORT}, {"key": "apiKey", "value": SHORT}],
        "inner": json.dumps({"password": SHORT, "pin": 1234}),
        "form": f"a=1&password={SHORT}",
        "query": f'mutation {{ login(password: "{SHORT}") {{ id }} }}',
        "back": f"/callback?access_token={SHORT}#id_token={SHORT}",
        "shell": f"curl -H 'Authorization: Bearer {SHORT}' x",
    }
    url = (
        f"https://user:{SECRET}@api.test/books/{JWT}?api_key={SECRET}&q=a&next=https://x.test/?token={SECRET}#{SECRET}"
    )
    query = [{"name": "api_key", "value": SECRET}]
    one = entry(
        url,
        {"id": 1, "accessToken": SECRET, "session": {"id": SECRET}},
        "POST",
        headers=headers,
        cookies=[{"name": "sid", "value": SECRET}],
        queryString=query,
        **posted(body),
    )
    one["response"] |= {
        "headers": [
            {"name": "Set-Cookie", "value": SECRET},
            {"name": "Content-Type", "value": JSON},
            {"name": "Location", "value": f"/callback?access_token={SHORT}"},
        ],
        "cookies": [{"name": "sid", "value": SECRET}],
    }
    login = entry(
        "https://api.test/login",
        method="POST",
        **posted(f"user=me&password={SECRET}", "application/x-www-form-urlencoded"),
    )
    page = entry("https://api.test/", f"<html>{SECRET}", kind="text/html")
    broken = entry("https://api.test/odd", f"{{broken {SECRET}", method="POST", **posted(f"{{broken {SECRET}"))
    echo = entry(
        f"https://api.test/echo/{SECRET};jsessionid={SHORT}?to=%2Fin%3Ftoken%3D{SHORT}", {"who": f"it is {SECRET}"}
    )
    return {**har(one, login, page, broken, echo), "comment": SECRET}


def test_no_credential_of_a_recording_gets_into_a_server(tmp_path: Path) -> None:
    recording = _private()
    assert json.dumps(recording).count(SECRET) > 15
    (tmp_path / "session.har").write_text(json.dumps(recording))
    made = create_server(tmp_path, source=tmp_path / "session.har", name="recorded")
    assert made.recognised == "a recording of HTTP traffic (HAR), 5 operations"
    written = {file: file.read_bytes() for file in made.path.rglob("*") if file.is_file()}
    assert made.path / "api/recording.json" in written
    assert [
        (str(file), secret)
        for file, content in written.items()
        for secret in (SECRET, SHORT, JWT)
        if secret.encode() in content
    ] == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("The token of a page: see the key figures.", None),
        ('{"page_token": "abc", "pin": 1234, "token": true}', '{"page_token": "abc", "pin": 0, "token": true}'),
        ('{"token": "{{token}}"}', None),
        ("skateboards-of-2024-and-before", None),
    ],
)
def test_what_is_no_credential_stays(written: str, shown: str | None) -> None:
    assert redacted(written) == (shown or written)


@pytest.mark.parametrize("path", ["/v1/token:generate", "/v1/sessions:batchDelete"])
def test_a_path_is_no_list_of_names_and_values(reader: SourceReader, path: str) -> None:
    assert [one.path for one in reader.api(har(entry(f"https://api.test:8443{path}"))).operations] == [path]


def test_credentials_become_security_schemes(reader: SourceReader) -> None:
    api = reader.api(_private())
    (one,) = [each for each in api.operations if "books" in each.path]
    assert sorted((each.kind, each.place, each.parameter) for each in api.security_schemes) == [
        ("apiKey", "header", "X-Api-Key"), ("apiKey", "header", "X-CSRF-Token"), ("apiKey", "query", "api_key"), ("bearer", "", ""),
    ]  # fmt: skip
    assert parameters(one) == {
        "book_id": ("path", True),
        "q": ("query", False),
        "next": ("query", False),
        "X-Version": ("header", False),
        "X-Odd": ("header", False),
    }


def test_a_copy_is_read_as_what_it_is_a_copy_of(reader: SourceReader) -> None:
    first = load(reader.write(_private()))
    again = load(reader.write(first.raw.decode(), "copy"))
    assert (again.raw, again.data) == (first.raw, first.data)


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [{}], [[]], {"a": None}, [7], "http://[", "\ud800"])
@pytest.mark.parametrize(
    "key", ["url", "method", "headers", "queryString", "postData", "response", "status", "content"]
)
def test_no_value_of_an_entry_ends_the_reading(reader: SourceReader, key: str, wrong: Any) -> None:
    one = entry("https://api.test/a?x=1", method="POST", **posted({"a": 1}))
    for part in (one, one["request"], one["response"]):
        if key in part or key in {"url", "response"}:
            part[key] = wrong
    reader.api(har(one, entry("https://api.test/b")))
