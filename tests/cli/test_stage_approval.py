"""An approval stage in front of `build` is about the tools that `generate` made, and not about how many they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import InProcessCli
from tests.dashboard.conftest import serving
from tests.dashboard.http_browser import PEOPLE, Browser

STAGE = """
[[pipeline.stages]]
name = "tools-approved"
kind = "approval"
needs = ["generate"]
before = ["build"]
message = "Are these the tools that callers need?"
"""
RUN = ("pipeline", "run", "shop", "--until", "tools-approved")
APPROVE = ("pipeline", "approve", "shop", "--stage", "tools-approved")


def document(*operations: str) -> str:
    """An API document with these operations, each of which answers at its own path."""
    query = [{"name": "q", "in": "query", "description": "Words of the title.", "schema": {"type": "string"}}]
    answers = {"200": {"description": "Books."}}
    paths = {
        f"/{one}": {
            "get": {"operationId": one, "summary": f"Summary of {one}", "parameters": query, "responses": answers}
        }
        for one in operations
    }
    info: dict[str, Any] = {"title": "Shop", "version": "1.0"}
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": [{"url": "http://127.0.0.1:1"}], "paths": paths})


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> InProcessCli:
    """A workspace with a server whose two tools were approved; then one of them was replaced."""
    outside = InProcessCli(tmp_path_factory.mktemp("stage"))
    (outside.folder / "api.json").write_text(document("listBooks", "listAuthors"))
    assert outside("init", "ws", "--factory", "index").code == 0
    shell = outside.at(outside.folder / "ws")
    assert shell("new", "shop", "--from-openapi", "../api.json").code == 0
    config = shell.folder / "mcpfactory.toml"
    config.write_text(config.read_text() + STAGE)
    assert shell(*RUN).code == 0
    assert shell(*APPROVE).code == 0
    assert verdict(shell) == "up-to-date"
    (file,) = (shell.folder / "servers/shop/api").glob("*.json")
    file.write_text(document("listBooks", "listShops"))
    assert shell(*RUN).code == 0
    return shell


def verdict(shell: InProcessCli) -> str:
    steps = shell("pipeline", "plan", "shop", "--json").data
    return next(step["verdict"] for step in steps if step["stage"] == "tools-approved")


def test_approval_of_a_stage_ends_when_a_tool_is_replaced(swapped: InProcessCli) -> None:
    assert verdict(swapped) == "waiting"
    assert "tools-approved" in swapped("inbox", "shop").out


def test_approve_stage_shows_question_tools_and_changes_since_the_last_approval(swapped: InProcessCli) -> None:
    shown = swapped(*APPROVE, "--dry-run")
    with serving(swapped.folder, PEOPLE) as address:
        page = Browser(address).login("Ada").get("/servers/shop/actions/approve/", check="1").text
    expected = (
        "Are these the tools",
        "list_shops",
        "Summary of listShops",
        "Words of the title",
        "tool-removed",
        "tool-added",
    )
    for text in (shown.out + shown.err, page):
        assert [words for words in expected if words not in text] == []


def test_a_tool_list_that_was_changed_after_generate_is_not_approved(swapped: InProcessCli) -> None:
    kept = swapped.folder / "pipeline/artifacts/shop/reports/generate/tools.json"
    text = kept.read_text()
    kept.write_text(text.replace("list_shops", "list_authors"))
    refused = swapped(*APPROVE)
    kept.write_text(text)
    assert (refused.code, "has changed since the stage wrote the file" in refused.err) == (1, True)
