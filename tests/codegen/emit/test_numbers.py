"""Numbers of schemas, however large, small or contradictory: a server is made, and its tool can be called."""

from __future__ import annotations

import json
from tempfile import NamedTemporaryFile
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mcpfactory_codegen.cases.cases import cases
from mcpfactory_codegen.describe.tools import make_api_tools
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document, load

NUMBERS = st.one_of(
    st.sampled_from(
        [
            0,
            1,
            -1,
            0.5,
            5,
            10**9,
            2**31,
            2**53 + 1,
            2**63,
            2**64,
            10**19,
            10**400,
            -(10**400),
            1e308,
            -1e308,
            5e-324,
            float("inf"),
            float("-inf"),
            float("nan"),
            "7",
            "1e999",
            True,
            None,
            [],
        ]
    ),
    st.integers(),
    st.floats(),
)
BOUNDS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]  # fmt: skip
SCHEMAS = st.builds(
    lambda kind, bounds, more: {**kind, **more, **bounds},
    st.sampled_from(
        [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "array", "items": {"type": "string"}}, {"type": "object", "additionalProperties": {"type": "integer"}}, {}]
    ),
    st.dictionaries(st.sampled_from([*BOUNDS, "default", "example"]), NUMBERS, min_size=1, max_size=4),
    st.sampled_from([{}, {"pattern": "^a{3}$"}, {"pattern": "^.{9999999999}$"}, {"format": "uuid"}, {"uniqueItems": True}]),
)  # fmt: skip


def _document(schema: Any) -> Document:
    content = {"application/json": {"schema": {"type": "object", "properties": {"b": schema}}}}
    operation = {
        "operationId": "make",
        "parameters": [{"name": "q", "in": "query", "schema": schema}],
        "requestBody": {"content": content},
        "responses": {"200": {"description": "made", "content": content}},
    }
    data = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": {"post": operation}}}
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(data, file)
        file.flush()
        return load(file.name)


@given(SCHEMAS)
@example({"type": "string", "minLength": 10**9})
@example({"type": "integer", "minimum": 10**400})
@example({"type": "number", "multipleOf": 5e-324, "minimum": 1e308})
@example({"type": "array", "items": {"type": "string"}, "minItems": 10**9, "uniqueItems": True})
def test_no_number_ends_generation_or_leaves_a_tool_without_a_call(schema: dict[str, Any]) -> None:
    api = read_api(_document(schema))
    names = name_api(api, server="numbers")
    tools = make_api_tools(api, names).tools
    json.dumps([tool.input_schema for tool in tools], allow_nan=False)
    (case,) = cases(api, names, tools)  # no number may keep the tool from being called
    json.dumps(case, allow_nan=False)
