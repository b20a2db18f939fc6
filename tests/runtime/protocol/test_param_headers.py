from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, McpError
from mcpfactory_runtime.protocol.http import check_mirrored_headers, find_header_arguments
from tests.runtime.requirements import requirement


def annotated(kind: str, header: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header}


@requirement("param-header.reachable")
def test_annotations_are_found_through_properties_only() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": annotated("string", "Region"),
            "where": {"type": "object", "properties": {"zone": annotated("integer", "Zone")}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": annotated("string", "Item")}}},
        },
        "anyOf": [{"properties": {"y": annotated("string", "Any")}}],
    }
    assert find_header_arguments(schema) == (("mcp-param-region", ("region",)), ("mcp-param-zone", ("where", "zone")))


@requirement("param-header.types", "param-header.names")
@pytest.mark.parametrize(
    "properties",
    [
        {"a": annotated("number", "A")},
        {"a": annotated("string", "")},
        {"a": annotated("string", "not a token")},
        {"a": annotated("string", 5)},
        {"a": annotated("string", "Same"), "b": annotated("string", "SAME")},
        {"a": True},
    ],
)
def test_invalid_annotations_mean_nothing(properties: dict[str, Any]) -> None:
    assert find_header_arguments({"properties": properties}) == ()


MIRRORED = (("mcp-param-a", ("a",)),)


@requirement("param-header.missing", "param-header.mismatch", "param-header.invalid")
@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"a": "eu"}, None),
        ({"a": "eu"}, "us"),
        ({"a": "eu"}, "EU"),
        ({"a": "ü"}, "=?base64?w7w?="),
        ({"a": "ü"}, "=?base64?/w==?="),
        ({"a": 5}, "five"),
        ({"a": True}, "True"),
        ({}, "eu"),
        (None, "eu"),
        ({"a": None}, "eu"),
    ],
)
def test_headers_that_are_missing_or_say_something_else_are_refused(arguments: Any, header: str | None) -> None:
    with pytest.raises(McpError) as refused:
        check_mirrored_headers(MIRRORED, arguments, {} if header is None else {"mcp-param-a": header})
    assert refused.value.code == HEADER_MISMATCH
