"""The API's own description: true of every page, and enough for the factory to make a server from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, path_of
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from tests.dashboard.conftest import WorkspaceBuilder
from tests.timeouts import TIMEOUT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_answers_is_what_the_document_says(four_servers: WorkspaceBuilder, page: Page) -> None:
    candidates = [four_servers.built("bookshop", version) for version in ("1.2.0", "1.3.0")]
    assert len(set(candidates)) == 2
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1:8765")
    document = client.get("/openapi.json").json()
    assert document["servers"] == [{"url": "http://127.0.0.1:8765"}]
    operation = document["paths"][page.path]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    logs = four_servers.workspace.artifacts / "bookshop" / "logs"
    logs.mkdir(parents=True)
    (logs / "test.log").write_text("1 failed\n")
    others = {"log": {"name": "bookshop", "stage": "test"}}  # of the live dashboard alone
    instances = [
        *page.instances(WorkspaceReader(four_servers.root), ["atlas", "bookshop"]),
        *filter(None, [others.get(page.name)]),
    ]
    assert instances
    for values in instances:
        answer = client.get(path_of(page, values), headers={"Accept": "application/json"})
        assert answer.headers["content-type"] == "application/json"
        jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())


def test_the_factory_makes_a_server_of_the_dashboard_and_its_tools_answer(
    four_servers: WorkspaceBuilder, address: str, tmp_path: Path
) -> None:
    environ = {**os.environ, "MCPFACTORY_ALLOW_PRIVATE": "1"}

    def mcpfactory(*command: str, cwd: Path) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "mcpfactory", *command, "--json"],
            cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    document = tmp_path / "api.json"
    app = TestClient(create_app(four_servers.root), base_url=address)
    document.write_text(app.get("/openapi.json").text)
    shop = tmp_path / "ws"
    subprocess.run(
        [sys.executable, "-m", "mcpfactory", "init", str(shop), "--factory", "index"],
        check=True,
        capture_output=True,
        timeout=TIMEOUT,
    )
    made = mcpfactory("new", "--from-openapi", str(document), "--name", "watch", cwd=shop)
    assert made["tools"] == len(PAGES)
    board = mcpfactory("call", "watch", "get_board", "--arg", "status=failed", cwd=shop)
    assert [row["name"] for row in board["structuredContent"]["servers"]] == ["atlas"]
    server = mcpfactory("call", "watch", "get_server", "--arg", "name=atlas", cwd=shop)
    assert server["structuredContent"]["findings"][0]["rule"] == "tool-calls.some-succeed"
    for tool in ("get_inbox", "get_runs"):
        assert mcpfactory("call", "watch", tool, cwd=shop)["structuredContent"]["workspace"] == "library"
