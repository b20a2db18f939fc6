"""Where the official SDKs were seen to deviate from the specification: one test for each, over real HTTP and stdio.

The findings, measured with mcp 2.3.0 (Python) and @modelcontextprotocol/server 2.4.0 (TypeScript), are in each test's
first line; that we do better is what the test shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from mcpfactory_runtime.protocol.peer import META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, R2025_03_26, R2025_06_18, R2025_11_25
from tests.patience import PATIENCE
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.requirements import requirement
from tests.runtime.transports.conftest import Process, hello, modern, process, request  # noqa: F401 - a fixture among them

NEW = LATEST.name
ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.fixture
def http(sample_url: str) -> Iterator[httpx.Client]:  # noqa: F811 - the fixture
    with httpx.Client(
        base_url=sample_url.removesuffix("/mcp"), timeout=PATIENCE, trust_env=False, verify=False
    ) as client:
        yield client


def post(http: httpx.Client, message: Any, **headers: str) -> httpx.Response:
    return http.post("/mcp", json=message, headers={name.replace("_", "-"): value for name, value in headers.items()})


def modern_post(http: httpx.Client, method: str, params: dict[str, Any] | None = None) -> httpx.Response:
    name = (params or {}).get("name") or (params or {}).get("uri")
    named = {"mcp_name": name} if name else {}
    return post(http, modern(method, params), mcp_protocol_version=NEW, mcp_method=method, **named)


def begin(http: httpx.Client, version: str) -> str:
    session = post(http, hello(version)).headers["mcp-session-id"]
    post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
    return str(session)


def code(answer: httpx.Response) -> int:
    found: int = answer.json()["error"]["code"]
    return found


@requirement("http-modern.version-missing", "http-modern.version-mismatch")
@pytest.mark.parametrize("headers", [{}, {"mcp_protocol_version": LATEST_LEGACY.name}], ids=["missing", "legacy"])
def test_modern_metadata_with_a_missing_or_legacy_version_header(http: httpx.Client, headers: dict[str, str]) -> None:
    """Python: -32600 "Missing session ID", without the request's id, and the id of a discarded session."""
    answer = post(http, modern("tools/list", id=7), mcp_method="tools/list", **headers)
    assert (answer.status_code, code(answer), answer.json()["id"]) == (400, HEADER_MISMATCH, 7)
    assert "mcp-session-id" not in answer.headers


@requirement("tools.unknown-tool")
def test_unknown_tool(http: httpx.Client, process: Process) -> None:  # noqa: F811 - the fixture
    """Python: a result with isError."""
    assert code(modern_post(http, "tools/call", {"name": "nothing"})) == INVALID_PARAMS
    session = begin(http, LATEST_LEGACY.name)
    assert code(post(http, request("tools/call", {"name": "nothing"}), mcp_session_id=session)) == INVALID_PARAMS
    assert process.ask(modern("tools/call", {"name": "nothing"}))["error"]["code"] == INVALID_PARAMS


@requirement("prompts.unknown")
def test_unknown_prompt(http: httpx.Client) -> None:
    """Python: -32603 with status 200."""
    answer = modern_post(http, "prompts/get", {"name": "nothing"})
    assert (answer.status_code, code(answer)) == (400, INVALID_PARAMS)


@requirement("pages.bad-cursor")
@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_invalid_cursor(http: httpx.Client, method: str) -> None:
    """Both: ignored, the full list comes back."""
    assert code(modern_post(http, method, {"cursor": "no-such-cursor"})) == INVALID_PARAMS
    session = begin(http, LATEST_LEGACY.name)
    assert code(post(http, request(method, {"cursor": "no-such-cursor"}), mcp_session_id=session)) == INVALID_PARAMS


@requirement("resources.not-found-legacy", "resources.not-found")
def test_resource_not_found_in_a_legacy_session(http: httpx.Client) -> None:
    """Both: -32602 in every revision."""
    for version in (R2025_03_26, R2025_06_18, R2025_11_25):
        session = begin(http, version.name)
        answer = post(http, request("resources/read", {"uri": "memo://none"}), mcp_session_id=session)
        assert code(answer) == RESOURCE_NOT_FOUND
    assert code(modern_post(http, "resources/read", {"uri": "memo://none"})) == INVALID_PARAMS


@requirement("batch.accept", "batch.refused")
def test_batch_in_the_one_revision_that_has_them(http: httpx.Client) -> None:
    """Python: refused where it must be accepted. TypeScript: accepted where there are none, too."""
    batch = [request("ping", id=1), request("tools/call", ADD, 2)]
    answer = post(http, batch, mcp_session_id=begin(http, R2025_03_26.name))
    assert sorted(message["id"] for message in answer.json()) == [1, 2]
    for version in (R2025_06_18, R2025_11_25):
        assert post(http, batch, mcp_session_id=begin(http, version.name)).status_code == 400


@requirement("stdio.wrong-line", "message.not-json", "batch.refused", "message.error-without-id")
def test_batch_or_bad_json_on_stdio(process: Process) -> None:  # noqa: F811 - the fixture
    """Python: no reply at all."""
    process.ask(hello())
    assert process.ask(b"{nonsense\n")["error"]["code"] == PARSE_ERROR
    assert process.ask([request("ping")])["error"]["code"] == INVALID_REQUEST
    assert process.ask(request("ping"))["result"] == {}


@requirement("origin.validated", "origin.status")
def test_bad_origin(http: httpx.Client) -> None:
    """TypeScript's fixture: served."""
    for origin in ("http://evil.example", "null", "https://localhost.evil.example"):
        assert post(http, hello(), origin=origin).status_code == 403
        assert post(http, modern("tools/list"), origin=origin, mcp_protocol_version=NEW).status_code == 403


@requirement("initialize.other-version", "initialize.latest-version")
def test_initialize_asking_for_a_version_without_handshake_or_garbage(http: httpx.Client, process: Process) -> None:  # noqa: F811 - the fixture
    """Both negotiate the newest version that has a handshake; so do we."""
    for asked in (NEW, "garbage", "1999-01-01"):
        assert post(http, hello(asked)).json()["result"]["protocolVersion"] == LATEST_LEGACY.name
    assert process.ask(hello(NEW))["result"]["protocolVersion"] == LATEST_LEGACY.name


@requirement("message.not-json", "http.not-accepted")
def test_bad_json_over_http(http: httpx.Client) -> None:
    """TypeScript: a page of HTML."""
    for headers in ({"mcp-protocol-version": NEW}, {"mcp-session-id": begin(http, LATEST_LEGACY.name)}, {}):
        answer = http.post("/mcp", content=b"{nonsense", headers={"content-type": "application/json", **headers})
        assert (answer.status_code, code(answer)) == (400, PARSE_ERROR)
        assert answer.headers["content-type"] == "application/json"


@requirement("http.request")
@pytest.mark.parametrize("accept", ["application/json", None, "*/*", "text/event-stream"])
def test_accept_header_with_one_type_or_none(http: httpx.Client, accept: str | None) -> None:
    """Python: 406."""
    client = httpx.Client(base_url=http.base_url, timeout=PATIENCE, trust_env=False, verify=False, headers={})
    client.headers.pop("accept")
    given = {} if accept is None else {"accept": accept}
    with client:
        assert modern_post(client, "tools/call", ADD).status_code == 200
        session = begin(client, LATEST_LEGACY.name)
        answer = post(client, request("tools/call", ADD), mcp_session_id=session, **given)
        assert answer.status_code == 200
        assert '"text":"3"' in answer.text


@requirement("version-header.mismatch")
@pytest.mark.parametrize("other", [version.name for version in LEGACY.values() if version is not R2025_06_18])
def test_legacy_version_header_that_is_not_the_negotiated_one(http: httpx.Client, other: str) -> None:
    """Both: accepted."""
    session = begin(http, R2025_06_18.name)
    assert post(http, request("ping"), mcp_session_id=session, mcp_protocol_version=other).status_code == 400
    good = post(http, request("ping"), mcp_session_id=session, mcp_protocol_version=R2025_06_18.name)
    assert good.json()["result"] == {}


@requirement("tools.list-changed", "initialize.offer")
def test_legacy_list_changed_capabilities(process: Process) -> None:  # noqa: F811 - the fixture
    """Python: always false."""
    offered = process.ask(hello())["result"]["capabilities"]
    assert {kind: offered[kind]["listChanged"] for kind in ("tools", "prompts", "resources")} == {
        "tools": True,
        "prompts": True,
        "resources": True,
    }
    process.say(request("tools/call", {"name": "grow"}))
    heard: set[Any] = set()
    while len(heard) < 3:
        heard.add(process.hear().get("method"))
        heard.discard(None)
    assert heard == {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


@requirement("polling.primed", "polling.not-before")
def test_priming_event_of_a_stream(http: httpx.Client) -> None:
    """Python decides by the request's header, so that an old session may be primed; the session's revision decides here."""
    params = {"name": "speak", "_meta": {"progressToken": 1}}
    for version in (R2025_03_26, R2025_06_18, R2025_11_25):
        answer = post(http, request("tools/call", params), mcp_session_id=begin(http, version.name))
        first = dict(line.split(": ", 1) for line in answer.text.split("\n\n")[0].splitlines() if ": " in line)
        assert ("data" not in first or first["data"] == "") == (version is R2025_11_25)


# the three ways in which the official server's process is locked to the lifecycle of its first request
@requirement("version.handshake-after-probe", "version.modern-after-handshake", "version.handshake-beside")
def test_lifecycles_of_a_process_in_any_order(process: Process) -> None:  # noqa: F811 - the fixture
    """Python: the first request decides for the process's life, even a probe that was refused."""
    unknown = modern("server/discover", None, 1, **{META_VERSION: "2099-01-01"})
    assert process.ask(unknown)["error"]["code"] == UNSUPPORTED_VERSION
    assert process.ask(hello())["result"]["protocolVersion"] == LATEST_LEGACY.name
    assert process.ask(modern("tools/call", ADD, 2))["result"]["resultType"] == "complete"
    assert "resultType" not in process.ask(request("tools/call", ADD, 3))["result"]
    assert process.ask(modern("server/discover", None, 4))["result"]["supportedVersions"]


@requirement("http-modern.unknown-method", "version.retired-methods")
def test_tasks_methods_that_the_newest_revision_retired(http: httpx.Client) -> None:
    """Neither SDK knows tasks; what is retired must be told from what is unknown to nobody."""
    for method in ("tasks/list", "tasks/result", "ping", "initialize", "logging/setLevel", "resources/subscribe"):
        answer = modern_post(http, method)
        assert answer.status_code == 404, method
        assert json.loads(answer.text)["error"]["code"] == -32601
