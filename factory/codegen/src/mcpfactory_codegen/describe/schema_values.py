"""Texts about a schema: meanings of enum values and constants, and examples.

Extensions such as `x-enum-descriptions`, `x-enumNames` and `x-ms-enum` give the meanings of enum values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.text import dump_json, one_line
from mcpfactory_runtime.schemas.merge import enum_values
from mcpfactory_runtime.schemas.walk import resolve_definition, subschemas_of, types_of

EXAMPLE_DEPTH: Final = 1
"""Maximum depth of values whose schemas keep examples: arguments and their direct members."""

_MEANINGS: Final = ("x-enum-descriptions", "x-enumDescriptions")
_NAMES: Final = ("x-enumNames", "x-enum-varnames", "x-enum-names")
_MOST_VALUES: Final = 16
_ONE: Final = 80  # maximum characters that explain one enum value
_ALL: Final = 400  # maximum characters that explain all values of one enum
_LONGEST_EXAMPLE: Final = 32
_BESIDE_A_PART: Final = frozenset({"allOf", "title", "description", "default", "example", "examples", "deprecated"})
_PLACEHOLDERS: Final = frozenset(
    {"", "string", "text", "example", "null", "none", "abc", "foo", "bar", "test", "value"}
)


def enum_meanings(schema: dict[str, Any]) -> str:
    """Return the meanings of enum values, such as `1: open; 2: closed`, or "" for unknown or too long meanings."""
    values = schema.get("enum")
    if not isinstance(values, list) or len(values) > _MOST_VALUES:
        return ""
    said = _said(schema, values)
    pairs = ((value, one_line(said[index], _ONE).rstrip(".")) for index, value in enumerate(values) if index in said)
    explained = "; ".join(f"{_shown(value)}: {text}" for value, text in pairs if text and text != _shown(value))
    return explained if len(explained) <= _ALL else ""


def _said(schema: dict[str, Any], values: list[Any]) -> dict[int, str]:
    for key in _MEANINGS:
        if found := _texts(schema.get(key), values):
            return found
    entries = schema["x-ms-enum"].get("values") if isinstance(schema.get("x-ms-enum"), dict) else None
    if isinstance(entries, list):
        rows = [one for one in entries if isinstance(one, dict)]
        texts = {_shown(one.get("value")): one.get("description") for one in rows}
        return _texts(texts, values)
    # only integers need names, because a text usually is its own name
    if all(isinstance(value, int) for value in values):
        return next((found for key in _NAMES if (found := _texts(schema.get(key), values))), {})
    return {}


def _texts(found: Any, values: list[Any]) -> dict[int, str]:
    """Return the text for each index of `values`, from a list or an object of texts."""
    each: Iterable[Any] = ()
    if isinstance(found, list) and len(found) == len(values):
        each = found
    elif isinstance(found, dict):
        each = (found.get(_shown(value)) for value in values)
    return {index: text for index, text in enumerate(each) if isinstance(text, str) and text.strip()}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value)


def constant_title(schema: dict[str, Any]) -> str:
    """Return the title of a `const` schema, which explains the value in a `oneOf`."""
    title = schema.get("title")
    if "const" not in schema or schema.get("description") or not isinstance(title, str):
        return ""
    return "" if title == _shown(schema["const"]) else one_line(title, _ONE)


def constant_value(schema: JsonSchema, schemas: dict[str, JsonSchema]) -> str | int | float | None:
    """Return the only string or number that a schema permits (`const` or a one-value `enum`), or None.

    Booleans are excluded, because a required true is often a consent of the caller (`accept_terms: true`).
    """
    found = resolve_definition(schema, schemas)
    if isinstance(found, dict) and len(parts := subschemas_of(found, "allOf")) == 1:
        found = resolve_definition(parts[0], schemas) if found.keys() <= _BESIDE_A_PART else found
    if not isinstance(found, dict):
        return None
    values = enum_values(found)
    if values is None or len(values) != 1:
        return None
    (value,) = values
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def example_of(schema: dict[str, Any]) -> Any:
    """Return a short example of a string schema without a documented format, or None."""
    if "string" not in types_of(schema):
        return None
    if schema.keys() & {"enum", "const", "default", "format", "$ref"}:
        return None
    listed = schema.get("examples")
    example = listed[0] if isinstance(listed, list) and listed else schema.get("example")
    if not isinstance(example, str) or len(example) > _LONGEST_EXAMPLE or example.lower() in _PLACEHOLDERS:
        return None
    return example if example.isprintable() and example not in str(schema.get("description", "")) else None
