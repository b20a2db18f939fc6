from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.timeouts import TIMEOUT


@pytest.fixture
def workspace(cli, workspace_cache):
    return cli.at(workspace_cache.copy(cli.folder / "ws", ("--factory", "index")))


def test_new_prints_one_json_object_with_the_promised_keys(workspace, document):
    made = workspace("new", "--from-openapi", document, "--name", "shop", "--json").data
    assert (made["server"], made["tools"], made["operations"], made["problems"]) == ("shop", 11, 11, [])
    assert (workspace.folder / "servers/shop/src/shop_mcp/_generated/manifest.json").is_file()


def test_the_name_comes_from_the_title(workspace, document):
    assert workspace("new", "--from-openapi", document, "--json").data["server"] == "bookshop"


def test_only_the_chosen_operations_become_tools(workspace, document):
    made = workspace("new", "--from-openapi", document, "--name", "some", "--include-tag", "orders", "--json").data
    assert made["tools"] == 3
    skipped = workspace("inspect", "some", "--json").data["skipped"]
    assert len(skipped) == 8
    assert all(operation["reason"] for operation in skipped)


def test_a_server_from_a_template_runs(workspace):
    assert workspace("new", "notes", "--template", "minimal").code == 0
    tools = workspace("inspect", "notes", "--start", "--json").data["tools"]
    assert len(tools) == 1


def test_a_template_serves_its_example_only_with_demo(workspace):
    assert workspace("new", "files", "--template", "filesystem").code == 0
    call = {"name": "list_folder", "arguments": {}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    results = []
    for options in ([], ["--demo"]):
        done = subprocess.run(
            [sys.executable, "-m", "mcpfactory", "run", "files", *options],
            cwd=workspace.folder, input="".join(json.dumps(one) + "\n" for one in sent), env=os.environ,
            capture_output=True, text=True, timeout=TIMEOUT, check=True,
        )  # fmt: skip
        results.append(next(one["result"] for one in map(json.loads, done.stdout.splitlines()) if one.get("id") == 2))
    without, demo = results
    assert without["isError"]
    assert "FILES_ROOT is not set" in without["content"][0]["text"]
    assert not demo.get("isError")
    assert [workspace("call", "files", "list_folder", *options).code for options in ([], ["--demo"])] == [1, 0]
    workspace.environ["MCPFACTORY_DEMO"] = "1"
    assert workspace("call", "files", "list_folder").code == 0


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        (("--include-tag", "ordrs"), "no operation matches the tag 'ordrs'", "did you mean 'orders'? tags: books"),
        (("--include-path", "/nowhere/**"), "no operation matches the path", "paths: /books"),
        (("--include-operation", "listBok"), "no operation matches the operation", "did you mean"),
        (("--include-method", "TRACE"), "no operation matches the method 'TRACE'", "methods: DELETE, GET"),
    ],
)
def test_a_selection_that_matches_nothing_makes_no_server(workspace, document, options, said, hint):
    done = workspace("new", "--from-openapi", document, "--name", "shop", *options)
    assert (done.code, said in done.err, hint in done.err) == (4, True, True), done.err
    assert list((workspace.folder / "servers").glob("*/")) == []


HOOK = {"made": {"post": {"responses": {"200": {"description": "ok"}}}}}
EMPTY = {
    "no operations": ({"paths": {}}, "has no operations"),
    "none that can be made": (
        {"paths": {"/bad": {"get": ["not an operation"]}}},
        "(line 1): it is not an object\nhint: write an object",
    ),
    "nothing but webhooks": ({"webhooks": HOOK}, "has only webhooks"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_api_without_tools_makes_no_server(workspace, kind):
    members, said = EMPTY[kind]
    document = {"openapi": "3.1.0", "info": {"title": "E", "version": "1"}, **members}
    (workspace.folder / "empty.json").write_text(json.dumps(document))
    done = workspace("new", "--from-openapi", "empty.json")
    assert (done.code, said in done.err, "hint:" in done.err) == (4, True, True), done.err
    assert list((workspace.folder / "servers").glob("*/")) == []


def test_a_document_that_lost_its_operations_does_not_empty_the_server(workspace, document):
    assert workspace("new", "--from-openapi", document, "--name", "shop").code == 0
    folder = workspace.folder / "servers/shop"
    before = (folder / "src/shop_mcp/_generated/manifest.json").read_bytes()
    (folder / "api/openapi.yaml").write_text("openapi: 3.1.0\ninfo: {title: E, version: '1'}\npaths: {}\n")
    done = workspace("update", "shop", "--from", str(folder / "api/openapi.yaml"))
    assert (done.code, "has no operations" in done.err) == (4, True)
    assert (folder / "src/shop_mcp/_generated/manifest.json").read_bytes() == before


def test_options_that_select_from_a_document_are_refused_for_a_template(workspace):
    done = workspace("new", "plain", "--template", "minimal", "--include-tag", "x", "--strict")
    assert (done.code, "include_tags, strict can be used only for a server from an API document" in done.err) == (
        2,
        True,
    )
