"""What documents say by `x-mcp` extensions: which operations are for models, and that the person has the last word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.select import NOT_SELECTED, inclusion_from_extensions, select
from tests.codegen.reading.support import Reader
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "extensions, mark",
    [
        ({}, None),
        ({"x-mcp": True}, True),
        ({"x-mcp": False}, False),
        ({"x-mcp": {"enabled": False}}, False),
        ({"x-mcp": {"skip": True}}, False),
        ({"x-mcp": {"disabled": False}}, True),
        ({"x-mcp": {"name": "a", "servers": []}}, None),
        ({"x-mcp": "yes"}, None),
        ({"x-mcp-tool": {"enabled": True, "name": "x"}}, True),
        ({"x-mcp-enabled": False}, False),
        ({"x-mcp-ignore": True}, False),
        ({"x-mcp-exclude": "true"}, None),
        ({"X-MCP-Hidden": True}, False),
        ({"x-speakeasy-mcp": {"disabled": True}}, False),
        ({"x-speakeasy-mcp": {"scopes": ["read"]}}, None),
        ({"x-mcp": False, "x-mcp-enabled": True}, True),
        ({"x-mcp": True, "x-mcp-name": "list"}, True),
    ],
)
def test_every_makers_mark_is_read(extensions: Any, mark: bool | None) -> None:
    assert inclusion_from_extensions(extensions) is mark


def one(name: str, **fields: Any) -> dict[str, Any]:
    return {"get": {"operationId": name, "responses": {"200": {"description": ""}}, **fields}}


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_the_innermost_mark_decides_and_a_named_operation_is_in_all_the_same(reader: Reader) -> None:
    paths = {
        "/a": one("a"),
        "/b": one("b", **{"x-mcp": True}),
        "/c": {"x-mcp-ignore": True, **one("c", **{"x-mcp": {"enabled": True}})},
        "/d": {"x-mcp": True, **one("d", **{"x-mcp": False})},
    }
    api = reader.parts(paths=paths, **{"x-mcp": False})

    def kept(selection: Selection) -> list[str]:
        return [operation.operation_id for operation in select(api, selection).operations]

    assert kept(Selection()) == ["b", "c"]
    assert kept(Selection(include_operations=("a", "GET /d", "b"))) == ["a", "b", "d"]
    assert kept(Selection(include_paths=("/*",))) == ["b", "c"]
    left = {skipped.path: skipped.reason for skipped in select(api, Selection()).skipped}
    assert set(left) == {"/a", "/d"}
    assert all(reason.startswith(NOT_SELECTED) for reason in left.values())
