from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_06_18
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.requirements import requirement
from tests.runtime.transports.conftest import hello, modern, request
from tests.timeouts import TIMEOUT

ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture
def http(sample_url: str) -> Any:  # noqa: F811 - the fixture
    with httpx.Client(
        base_url=sample_url.removesuffix("/mcp"), timeout=TIMEOUT, trust_env=False, verify=False
    ) as client:
        yield client


def post(http: httpx.Client, message: Any, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.post("/mcp", json=message, headers=named)


def ask(http: httpx.Client, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    """A modern request with the headers it needs."""
    name = (params or {}).get("name") or (params or {}).get("uri")
    own = {"mcp_protocol_version": LATEST.name, "mcp_method": method} | ({"mcp_name": name} if name else {})
    return post(http, modern(method, params), **{**own, **headers})


def begin(http: httpx.Client, version: str = LATEST_LEGACY.name) -> str:
    answer = post(http, hello(version))
    assert answer.status_code == 200
    session = answer.headers["mcp-session-id"]
    post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
    return session


def events(text: str) -> list[dict[str, str]]:
    return [
        dict(line.partition(":")[::2] for line in block.replace(": ", ":").splitlines() if not line.startswith(":"))
        for block in text.strip().split("\n\n")
    ]


@requirement("session.begun", "session.ascii", "session.delete", "session.ended")
def test_a_session_is_begun_used_and_ended(http: httpx.Client) -> None:
    session = begin(http)
    assert all(0x21 <= ord(letter) <= 0x7E for letter in session)
    answer = post(http, request("tools/call", ADD), mcp_session_id=session)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["content"][0]["text"] == "3"
    assert http.delete("/mcp", headers={"mcp-session-id": session}).status_code == 200
    assert post(http, request("ping"), mcp_session_id=session).status_code == 404


@requirement("http-modern.unknown-method", "http-modern.error-id", "meta.undeclared-capability-status")
@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tools/call", {"name": "nothing"}, 400, -32602),
        ("nonsense", None, 404, METHOD_NOT_FOUND),
        ("ping", None, 404, METHOD_NOT_FOUND),
        ("tools/call", {"name": "greet"}, 400, -32021),
        ("resources/read", {"uri": "memo://none"}, 400, -32602),
        ("tools/call", {"name": "protocol_error"}, 200, -5),
        ("tools/call", {"name": "unencodable"}, 200, -32603),
    ],
)
def test_errors_choose_the_status_even_when_a_handler_raises_them(
    http: httpx.Client, method: str, params: dict[str, Any] | None, status: int, code: int
) -> None:
    answer = ask(http, method, params)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (status, code, 1)


@requirement("http.request", "http-modern.no-resume", "http-modern.no-buffering", "http-modern.stream-ends")
def test_a_stream_is_begun_only_when_the_handler_sends_something_first(http: httpx.Client) -> None:
    plain = ask(http, "tools/call", ADD)
    assert plain.headers["content-type"] == "application/json"
    params = {"name": "speak"}
    headers = {"mcp-protocol-version": LATEST.name, "mcp-method": "tools/call", "mcp-name": "speak"}
    streamed = http.post("/mcp", json=modern("tools/call", params, 5, progressToken="p"), headers=headers)
    assert streamed.headers["content-type"] == "text/event-stream"
    assert streamed.headers["x-accel-buffering"] == "no"
    messages = [json.loads(event["data"]) for event in events(streamed.text)]
    assert [message.get("method", "result") for message in messages] == ["notifications/progress"] * 3 + ["result"]
    assert all("id" not in event for event in events(streamed.text))


@requirement("polling.primed", "polling.not-before")
@pytest.mark.parametrize("version", [R2025_06_18.name, LATEST_LEGACY.name])
def test_a_session_stream_is_primed_where_the_revision_can_resume_from_there(http: httpx.Client, version: str) -> None:
    session = begin(http, version)
    params = {"name": "speak", "_meta": {"progressToken": 1}}
    answer = post(http, request("tools/call", params), mcp_session_id=session)
    found = events(answer.text)
    assert (found[0]["data"] == "") == (version == LATEST_LEGACY.name)
    assert all("id" in event for event in found)
    assert json.loads(found[-1]["data"])["id"] == 1


@requirement("resume.replay", "resume.own-stream")
def test_a_stream_is_taken_up_again_after_its_last_event(http: httpx.Client) -> None:
    session = begin(http)
    params = {"name": "speak", "_meta": {"progressToken": 1}}
    all_events = events(post(http, request("tools/call", params), mcp_session_id=session).text)
    headers = {"mcp-session-id": session, "last-event-id": all_events[2]["id"]}
    again = events(http.get("/mcp", headers=headers).text)
    assert again == all_events[3:]
    headers["last-event-id"] = "77-1"
    assert http.get("/mcp", headers=headers).status_code == 400


@requirement("origin.validated", "origin.status", "origin.host")
def test_pages_of_other_sites_are_refused_before_anything_else(http: httpx.Client) -> None:
    assert post(http, hello(), origin="http://evil.example").status_code == 403
    assert post(http, hello(), host="evil.example").status_code == 403
    assert post(http, hello(), origin="http://localhost:3000").status_code == 200
