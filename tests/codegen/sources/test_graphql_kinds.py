"""Schemas as Hasura, Relay and Apollo servers have them: valid documents, arguments that can be filled, a test of each tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from graphql import build_schema, parse, validate

from mcpfactory_codegen.openapi import read_source
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.servers.create import create_server

SCHEMAS: Final = Path(__file__).with_name("schemas")
MOST_BYTES: Final = 3_000  # of an input schema; a recursive filter must not be expanded
TOOLS: Final = {
    "hasura": "orders orders_aggregate orders_by_pk insert_orders update_orders_by_pk delete_orders",
    "relay": "node viewer repository add_star close_issue",
    "apollo": "top_products product search create_review",
}
SELECTED: Final = {
    ("hasura", "delete_orders"): "{ affected_rows returning { id status",
    ("relay", "node"): "{ __typename id ... on User { login }",
    ("apollo", "createReview"): "... on ValidationError { message field }",
}


@pytest.mark.parametrize("kind", TOOLS)
def test_each_kind_of_schema_becomes_tools_that_can_be_tested(kind: str, tmp_path: Path) -> None:
    made = create_server(tmp_path, name=kind, source=SCHEMAS / f"{kind}.graphql")
    assert [tool.name for tool in made.api_tools] == TOOLS[kind].split()
    assert [problem.code for problem in made.problems] == ["server-missing"]
    assert max(len(json.dumps(tool.input_schema)) for tool in made.api_tools) < MOST_BYTES
    cases: dict[str, Any] = json.loads((made.path / "tests/_generated/cases.json").read_bytes())
    assert cases["untested"] == {}


@pytest.mark.parametrize("kind", TOOLS)
def test_the_documents_of_each_kind_of_schema_are_valid(kind: str) -> None:
    file = SCHEMAS / f"{kind}.graphql"
    known = build_schema(file.read_text("utf-8"), assume_valid_sdl=True)
    sent = {one.operation_id: one.body.graphql for one in read_source(load(str(file))).operations if one.body}
    assert {name: validate(known, parse(text)) for name, text in sent.items()} == {name: [] for name in sent}
    for (named, operation), part in SELECTED.items():
        assert named != kind or part in sent[operation]
