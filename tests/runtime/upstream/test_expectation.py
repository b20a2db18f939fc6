"""What the stub upstream says of requests that differ from their case in one thing."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from mcpfactory_runtime.upstream.stub import RecordedRequest, credential_faults, request_differences
from tests.subtest_table import parametrize_subtests

PARTS = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name="o"\r\n\r\n{"x": 1}\r\n--b--\r\n'
JSON = ("content-type", "application/json; charset=utf-8")
FORM = ("content-type", "application/x-www-form-urlencoded")
MULTIPART = ("content-type", "multipart/form-data; boundary=b")


def sent(*headers: tuple[str, str], query: str = "", body: bytes = b"") -> RecordedRequest:
    return RecordedRequest("POST", "/a%20b", query, headers, body)


@parametrize_subtests(
    "wanted, right, wrong, said",
    [
        ({"strict": True, "query": [["q", "1,2"]]}, sent(query="q=1,2"), sent(query="q=1&q=2"), "query lacks q=1,2"),
        ({"strict": True, "query": []}, sent(), sent(query="x=1"), "query also has x=1"),
        ({"query": []}, sent(query="x=1"), None, ""),
        ({"cookies": [["c", "1"]]}, sent(("cookie", "b=2; c=1")), sent(("cookie", "c=2")), "cookies lacks c=1"),
        (
            {"content_type": "application/json"},
            sent(JSON),
            sent(FORM),
            "content type is application/x-www-form-urlencoded",
        ),
        ({"empty": True}, sent(), sent(body=b"{}"), "there is a body of 2 bytes"),
        ({"text": "t"}, sent(body=b"t"), sent(body=b"u"), "body is u, not t"),
        ({"json": [1]}, sent(JSON, body=b"[1.0]"), sent(JSON, body=b"[true]"), "body is [true], not [1]"),
        (
            {"form": [["a", "1"], ["o", {"json": {"x": 1}}]]},
            sent(FORM, body=b"o=%7B%22x%22:1%7D&a=1"),
            sent(FORM, body=b"a=1&o=x"),
            'form lacks o={"json": {"x": 1}}',
        ),
        ({"form": [["a", "1"]]}, sent(FORM, body=b"a=1"), sent(FORM, body=b"a=1&b=2"), "form also has b=2"),
        (
            {"parts": [["a", "1"], ["o", {"json": {"x": 1}}]]},
            sent(MULTIPART, body=PARTS),
            sent(MULTIPART, body=PARTS.replace(b'"a"', b'"c"')),
            "body lacks a=1",
        ),
    ],
)
def test_each_part_of_a_request_is_compared(wanted: Any, right: Any, wrong: Any, said: str) -> None:
    case = {"method": "POST", "path": "/a b", **wanted}
    assert request_differences(case, right) == []
    assert wrong is None or said in request_differences(case, wrong)[0]


def test_method_and_path_are_compared() -> None:
    assert request_differences({"method": "PUT", "path": "/b"}, sent()) == [
        "method is POST, not PUT",
        "path is /a b, not /b",
    ]


KEY = {"kind": "apiKey", "in": "header", "name": "X-Key", "variables": ["KEY"]}
BEARER = {"kind": "bearer", "in": "header", "name": "Authorization", "variables": ["TOKEN"]}
BASIC = {"kind": "basic", "in": "header", "name": "Authorization", "variables": ["USER", "PASSWORD"]}
ENVIRON = {"KEY": "k", "TOKEN": "t", "USER": "u", "PASSWORD": "p"}


@parametrize_subtests(
    "credential, right, wrong, said",
    [
        (KEY, sent(("x-key", "k")), sent(), "header X-Key is missing"),
        (KEY, sent(("x-key", "k")), sent(("x-key", "t")), "header X-Key is not the value of KEY"),
        (BEARER, sent(("authorization", "Bearer t")), sent(("authorization", "t")), "does not begin with 'Bearer '"),
        (
            BASIC,
            sent(("authorization", f"Basic {b64encode(b'u:p').decode()}")),
            sent(("authorization", "Basic eDp5")),
            "is not the value of USER and PASSWORD",
        ),
        ({**KEY, "in": "query"}, sent(query="X-Key=k"), sent(("x-key", "k")), "query X-Key is missing"),
        ({**KEY, "in": "cookie"}, sent(("cookie", "X-Key=k")), sent(("cookie", "a=k")), "cookie X-Key is missing"),
    ],
)
def test_credentials_must_be_those_of_the_environment(credential: Any, right: Any, wrong: Any, said: str) -> None:
    assert credential_faults({"credentials": [credential]}, right, ENVIRON) == []
    (told,) = credential_faults({"credentials": [credential]}, wrong, ENVIRON)
    assert said in told
