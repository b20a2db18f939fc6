"""Large APIs from the command line: search mode, profiles, overlays, selection by method, and what is suggested."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import InProcessCli


@pytest.fixture(scope="module")
def searching(shop, document):
    """A workspace with the bookshop in search mode."""
    made = shop("new", "--from-openapi", document, "--name", "found", "--mode", "search", "--json")
    assert made.code == 0, made.err
    return shop.at(shop.folder)


def test_every_tool_can_be_called_by_its_name_whatever_the_mode(shop, searching):
    shop = InProcessCli(shop.folder, {"MCPF_FOUND_BASE_URL": shop.environ["MCPF_BOOKSHOP_BASE_URL"]})
    assert "structuredContent" in shop("call", "found", "list_books", "--json").data
    assert shop("call", "found", "search_tools", "--arg", "query=books").code == 3
    answer = shop("call", "found", "search_tools", "--mode", "search", "--arg", "query=order a book")
    assert (answer.code, "- " in answer.out) == (0, True)


def test_validate_judges_the_three_tools_and_calls_the_others_through_them(searching):
    report = searching("validate", "found", "--json").data
    assert (report["passed"], report["tools"], report["failed_gates"]) == (True, 3, [])
    assert report["calls"] == len(report["called"]) >= 13  # the API's eleven tools, and the two that find them
    assert [finding["rule"] for finding in report["findings"]] == ["packaging.license"]  # a person's decision


def test_inspect_says_what_is_offered(searching):
    shown = searching("inspect", "found").out
    assert "mode search, profile full" in shown
    assert "read-only" in shown


def test_methods_and_overlays_choose_what_becomes_a_tool(shop, document):
    (shop.folder / "mine.yaml").write_text(
        "overlay: 1.0.0\ninfo: {title: t, version: '1'}\nactions: [{target: '$.paths.*.get', update: {x-mcp: false}}]\n"
    )
    command = ("new", "--from-openapi", document, "--name", "part", "--dry-run", "--json")
    every = shop(*command).data["tools"]
    reading = shop(*command, "--include-method", "GET").data["tools"]
    writing = shop(*command, "--overlay", "mine.yaml").data["tools"]
    assert reading + writing == every
    assert reading
    assert writing


def test_a_document_that_is_too_large_comes_with_groups_and_what_to_type(shop):
    wordy = [
        {"name": f"q{n}", "in": "query", "schema": {"type": "string"}, "description": "word " * 70} for n in range(10)
    ]
    paths = {
        f"/{tag}/{n}": {"get": {"tags": [tag], "parameters": wordy, "responses": {"200": {"description": ""}}}}
        for tag in ("cats", "dogs") for n in range(14)
    }  # fmt: skip
    large = {"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths}
    (shop.folder / "large.json").write_text(json.dumps(large))
    made = shop("new", "--from-openapi", "large.json", "--name", "large")
    shown = shop("inspect", "large")
    for output in (made, shown):
        assert "--include-tag cats" in output.out
        assert "search" in output.out + output.err
    assert shop("inspect", "large", "--json").data["overview"]["decisions"][0]["code"] == "address"
