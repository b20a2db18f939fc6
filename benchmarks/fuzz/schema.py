"""The compiler of JSON Schema: `[schema, arguments]` as JSON. Compiling works or refuses the schema; checking works or refuses."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.fuzz.mutation import mutate_json
from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.server.schema.json_schema import ArgumentError, compile_schema
from mcpfactory_runtime.server.schema.references import UnusableSchemaError

__all__ = ["SEEDS", "WORDS", "mutate", "one"]


def _seed(arguments: Any, **schema: Any) -> bytes:
    return json.dumps([schema, arguments]).encode()


_TREE = {"$defs": {"t": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}}}
_FIELDS = {
    "a": {"type": "integer", "minimum": 0, "multipleOf": 5},
    "b": {"type": ["string", "null"], "minLength": 2, "pattern": "^x+$"},
    "c": {"enum": [1, "1", None, [1]]},
    "d": {"type": "array", "items": {"type": "number"}, "prefixItems": [{"const": 1}], "maxItems": 3},
    "e": {"anyOf": [{"type": "boolean"}, {"type": "object", "minProperties": 1}], "nullable": True},
}
SEEDS = (
    _seed(
        {"a": 5, "b": "xx", "c": "1", "d": [1, 2.5], "e": {"f": 1}}, type="object", properties=_FIELDS, required=["a"]
    ),
    _seed({"a": "5", "b": None, "c": 1.0, "d": "[1]", "e": "true"}, properties=_FIELDS, additionalProperties=False),
    _seed({"kids": [{"kids": []}]}, allOf=[{"$ref": "#/$defs/t"}], **_TREE),
    _seed({"x": 1}, oneOf=[{"$ref": "#"}, {"required": ["x"], "minimum": 3}], additionalProperties={"type": "string"}),
    _seed(
        {"a": {}},
        oneOf=[
            {"enum": [{}], "minItems": 1, "additionalProperties": {"oneOf": [{"$ref": "#"}, {}]}},
            {"type": "object"},
        ],
    ),
    _seed({}, type="object", properties={"p": {"$ref": "#/properties/q"}, "q": {"$ref": "#/properties/p"}}),
)
WORDS = (
    *(
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
    ),
    *(
        "allOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
    ),
    *(
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "nullable",
        "patternProperties",
    ),
    *(
        "object",
        "array",
        "string",
        "integer",
        "number",
        "boolean",
        "null",
        "#",
        "#/properties/a",
        "#/$defs/t",
        "$id",
        "$anchor",
        "$schema",
        "a",
        "b",
    ),
)
mutate = mutate_json


def one(data: bytes) -> None:
    """Compile the schema and check the arguments; what was accepted is JSON and is accepted again, unchanged."""
    try:
        value = jsonrpc.decode(data)
    except McpError:
        return
    if not (type(value) is list and len(value) == 2 and all(type(part) is dict for part in value)):
        return
    schema, arguments = value
    try:
        validator = compile_schema(schema)
    except UnusableSchemaError as error:
        if "hint:" not in str(error):
            raise
        return
    before = jsonrpc.encode(arguments)
    try:
        found = validator.validate(arguments)
    except ArgumentError:
        pass
    else:
        text = jsonrpc.encode(found)
        again = validator.validate(found)
        assert jsonrpc.encode(again) == text, f"{found} became {again}"
    assert jsonrpc.encode(arguments) == before, "the caller's arguments were changed"
