"""What is shown is so: histories that cannot be read, servers without an API document, holds, runs."""

from __future__ import annotations

import json
import os
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.dashboard.conftest import WorkspaceBuilder
from tests.dashboard.http_browser import PEOPLE
from tests.dashboard.test_decision import shop

__all__ = ["shop"]


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")


def shown(client: TestClient, path: str) -> str:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def told(client: TestClient, path: str) -> Any:
    return client.get(path, headers={"Accept": "application/json"}).json()


def test_a_history_that_cannot_be_read_is_a_problem_and_not_a_beginning(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    assert told(client, "/servers/bookshop/")["status"] == "passed"
    file = four_servers.store.history_file("bookshop")
    before = file.stat()
    file.write_bytes(b"\xff" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # so that it looks as it was when it was read last
    page = told(client, "/servers/bookshop/")
    assert page["status"] == "broken"
    assert "history" in page["problem"]
    assert page["hint"]
    assert "Nothing has happened yet" not in shown(client, "/servers/bookshop/")


@pytest.mark.parametrize("action", ["approve", "reject", "promote", "hold", "run"])
def test_what_is_wrong_with_a_state_is_said_where_one_would_decide(shop: WorkspaceBuilder, action: str) -> None:
    file = shop.store.state_file("bookshop")
    file.write_text(file.read_text().replace('"2.0.0"', '"2.0.1"'))
    client = TestClient(create_app(shop.root, people=PEOPLE), base_url="http://127.0.0.1")
    headers = {"Authorization": f"Bearer {PEOPLE['Ada']}", "Accept": "application/json"}
    path, values = f"/servers/bookshop/actions/{action}/", {"channel": "production", "reason": "because"}
    answer = client.get(path, params=values, headers=headers).json()
    assert "does not match its history" in answer["problem"]
    assert "mcpfactory pipeline verify --repair bookshop" in answer["hint"]
    assert (answer["ready"], answer["ticket"]) == (False, "")
    decide = client.get("/servers/bookshop/decide/production/", headers=headers)
    assert "does not match its history" in decide.json()["error"]["message"]
    assert "no candidate" not in decide.text


def test_a_server_without_an_api_document_has_the_tools_that_its_candidate_listed(
    four_servers: WorkspaceBuilder,
) -> None:
    four_servers.add("notes")
    (four_servers.root / "servers/notes/.mcpfactory/report.json").unlink()
    four_servers.passed("notes", "generate")
    candidate = four_servers.built("notes", "1.0.0")
    four_servers.validated("notes", candidate, "passed", {"score": 99, "passed": True, "findings": []})
    tool = {
        "name": "add_note",
        "description": "Adds a note.",
        "inputSchema": {"type": "object", "properties": {"text": {}}},
    }
    file = four_servers.workspace.artifacts / "notes" / candidate / "validate" / "tools.json"
    file.write_text(json.dumps({"tools": [tool]}))
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")
    page = told(client, "/servers/notes/")
    assert [(one["name"], one["arguments"]) for one in page["tools"]] == [("add_note", ["text"])]
    assert page["tokens"] > 0
    row = next(row for row in told(client, "/board/")["servers"] if row["name"] == "notes")
    assert (row["tools"], row["tokens"]) == (1, page["tokens"])
    assert "Adds a note." in shown(client, "/servers/notes/tools/")
    file.unlink()
    assert "not known yet" in shown(client, "/servers/notes/tools/")


def test_what_was_never_run_is_so_in_the_inbox_and_on_the_board(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    kinds = {item["server"]: item["kind"] for item in told(client, "/")["items"]}
    statuses = {row["name"]: row["status"] for row in told(client, "/board/")["servers"]}
    assert (kinds["zebra"], statuses["zebra"]) == ("never", "never")
    assert statuses["weather"] == "stale", "what ran before is another thing"
    assert {item.server: item.kind for item in read_inbox(four_servers.workspace)} == kinds
