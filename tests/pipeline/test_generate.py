"""The stage `generate` on a server that is made from an API document: what makes it run, and what it puts right."""

from __future__ import annotations

import json

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.state.store import Store
from tests.pipeline.inprocess_executor import InProcessExecutor

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {
        "/books": {
            "get": {
                "operationId": "listBooks",
                "summary": "List the books.",
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}


@pytest.fixture
def shop(workspace, tmp_path):
    """A server from a document, generated and recorded."""
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    create_server(workspace.root / "servers", name="shop", source=str(tmp_path / "api.json"))
    assert run_pipeline(workspace, until="generate", executor=InProcessExecutor()).servers == {"shop": "passed"}
    return workspace.server("shop")


def due(workspace) -> dict[str, tuple[str, ...]]:
    return {step.stage: step.reasons for step in plan_servers(workspace, until="generate") if step.verdict == "run"}


def test_what_it_made_counts_as_what_it_read(workspace, shop):
    assert due(workspace) == {}
    assert Store(workspace).state("shop").stages["generate"].summary["tools"] == 1


def test_a_changed_document_is_told_and_generated(workspace, shop):
    text = shop.document.read_text()
    shop.document.write_text(text.replace("List the books.", "List all the books."))
    assert due(workspace) == {"generate": ("document changed",)}
    run_pipeline(workspace, until="generate", executor=InProcessExecutor())
    assert "List all the books." in (shop.folder / "src/shop_mcp/_generated/manifest.json").read_text()
    assert due(workspace) == {}


@pytest.mark.parametrize("action", ["edit", "delete"])
def test_a_hand_in_the_generated_files_is_noticed_and_put_right(workspace, shop, action):
    folder = shop.folder / "src" / shop.package / "_generated"
    file = folder / "api.py"
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*.py"))}
    if action == "edit":
        file.write_text(file.read_text() + "\n# a hand was here\n")
    else:
        file.unlink()
    assert due(workspace) == {"generate": ("generated files changed",)}
    assert run_pipeline(workspace, until="generate", executor=InProcessExecutor()).servers == {"shop": "passed"}
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*.py"))} == before
    assert due(workspace) == {}


def test_a_changed_configuration_is_told(workspace, shop):
    config = shop.folder / "mcpfactory.toml"
    config.write_text(config.read_text() + "\n# a remark\n")
    assert due(workspace) == {"generate": ("config changed",)}


def test_a_file_that_the_document_may_refer_to_belongs_to_it(workspace, shop):
    (shop.document.parent / "schemas.json").write_text("{}")
    assert due(workspace) == {"generate": ("document changed",)}


def test_a_file_added_to_the_generated_ones_is_told(workspace, shop):
    (shop.folder / "src" / shop.package / "_generated" / "extra.py").write_text("x = 1\n")
    assert due(workspace) == {"generate": ("generated files changed",)}


@pytest.mark.parametrize("text", ["not: [an, api", '{"openapi": "9.9"}', None])
def test_a_document_that_cannot_be_used_failed_and_is_not_tried_again(workspace, shop, text):
    shop.document.unlink() if text is None else shop.document.write_text(text)
    outcome = run_pipeline(workspace, until="generate", executor=InProcessExecutor())
    assert (outcome.servers, outcome.ran) == ({"shop": "failed"}, 1)
    record = Store(workspace).state("shop").stages["generate"]
    assert "hint: " in record.message or "read the log" in record.message
    assert str(workspace.root) not in record.message
    assert run_pipeline(workspace, until="generate", executor=InProcessExecutor()).ran == 0
