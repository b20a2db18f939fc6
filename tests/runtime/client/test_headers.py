from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.client.headers import encode_value, header_parameters, modern_headers
from mcpfactory_runtime.revisions import LATEST


@pytest.mark.parametrize(
    ("value", "expected"),
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


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_a_header(text: str) -> None:
    value = encode_value(text)
    assert value.isascii()
    assert value.isprintable()
    encoded = value.startswith("=?base64?") and value.endswith("?=")
    assert (b64decode(value[9:-2]).decode() if encoded else value) == text


def test_annotated_arguments_are_found_through_properties_alone_and_sent_when_given() -> None:
    marked = {"type": "string", "x-mcp-header": "Region"}
    deep = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    listed = {"type": "array", "items": {"properties": {"z": {"x-mcp-header": "Z"}}}}
    tool = {"name": "t", "inputSchema": {"properties": {"a": marked, "b": deep, "c": listed, "d": True}}}
    parameters = {"t": header_parameters(tool)}
    assert parameters == {"t": {("a",): "Region", ("b", "n"): "N"}}
    call = {"method": "tools/call", "params": {"name": "t", "arguments": {"a": None, "b": {"n": 3}}}}
    assert modern_headers(call, LATEST.name, parameters) == {
        "MCP-Protocol-Version": LATEST.name,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "t",
        "Mcp-Param-N": "3",
    }
