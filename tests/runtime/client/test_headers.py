from __future__ import annotations

from typing import Any

from mcpfactory_runtime.client.http_messages import encode_value, header_parameters, mcp_request_headers
from mcpfactory_runtime.protocol.http import header_annotation_error
from mcpfactory_runtime.revisions import LATEST
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "value, expected",
    [
        ("eu west", "eu west"),
        (7, "7"),
        (True, "true"),
        (" x", "=?base64?IHg=?="),
        ("", "=?base64??="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
    ],
)
def test_values_that_a_header_would_not_keep_are_encoded(value: Any, expected: str) -> None:
    assert encode_value(value) == expected


def test_annotated_arguments_are_found_through_properties_alone_and_sent_when_given() -> None:
    marked = {"type": "string", "x-mcp-header": "Region"}
    deep = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    listed = {"type": "array", "items": {"properties": {"z": {"x-mcp-header": "Z"}}}}
    tool = {"name": "t", "inputSchema": {"properties": {"a": marked, "b": deep, "c": listed, "d": True}}}
    parameters = {"t": header_parameters(tool)}
    assert parameters == {"t": {("a",): "Region", ("b", "n"): "N"}}
    call = {"method": "tools/call", "params": {"name": "t", "arguments": {"a": None, "b": {"n": 3}}}}
    assert mcp_request_headers(call, LATEST.name, LATEST, parameters) == {
        "MCP-Protocol-Version": LATEST.name,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "t",
        "Mcp-Param-N": "3",
    }


MARKED = {"type": "string", "x-mcp-header": "Region"}


@parametrize_subtests(
    "schema, match",
    [
        ({"properties": {"a": {"type": "string", "x-mcp-header": ""}}}, "not a header name"),
        ({"properties": {"a": {"type": "string", "x-mcp-header": "My Region"}}}, "not a header name"),
        ({"properties": {"a": {"type": "string", "x-mcp-header": "R\n"}}}, "not a header name"),
        ({"properties": {"a": {"type": "string", "x-mcp-header": 7}}}, "not a header name"),
        ({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}, "on a, which is not a string"),
        ({"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}}, "on a, which is not a string"),
        (
            {"properties": {"a": {"type": "object", "x-mcp-header": "A", "properties": {}}}},
            "on a, which is not a string",
        ),
        ({"properties": {"a": MARKED, "b": {**MARKED, "x-mcp-header": "REGION"}}}, "used twice"),
        ({"x-mcp-header": "A", "type": "string"}, "reached by `properties` alone"),
        ({"properties": {"a": {"type": "array", "items": MARKED}}}, "reached by `properties` alone"),
        ({"properties": {"a": {"anyOf": [{"properties": {"b": MARKED}}]}}}, "reached by `properties` alone"),
        ({"if": {"properties": {"b": MARKED}}}, "reached by `properties` alone"),
        ({"properties": {"b": {"$ref": "#/$defs/r"}}, "$defs": {"r": MARKED}}, "reached by `properties` alone"),
    ],
)
def test_an_annotation_at_the_wrong_place_or_with_the_wrong_name_is_a_fault(schema: Any, match: str) -> None:
    assert match in header_annotation_error(schema)
