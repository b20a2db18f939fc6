"""How a form is filled in: each field's default, else its first choices, else a value of its type."""

from __future__ import annotations

from typing import Any

VALUES: dict[str, Any] = {"boolean": True, "integer": 7, "number": 7}


def fill(schema: dict[str, Any]) -> dict[str, Any]:
    """A value for each field of a requested schema."""
    return {name: _value(field) for name, field in schema["properties"].items()}


def _value(field: dict[str, Any]) -> Any:
    if "default" in field:
        return field["default"]
    if field.get("type") == "array":
        return [_value(field["items"])]
    if choices := field.get("oneOf") or field.get("anyOf"):
        return choices[0]["const"]
    if "enum" in field:
        return field["enum"][0]
    return VALUES.get(field["type"], "Ann")
