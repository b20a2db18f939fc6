"""What a model needs of a tool whose description is long: every argument, the required ones to their depth, the others in outline.

A schema is cut by steps, and the first step that is short enough is shown. What is left out is an argument's inner parts, the end of its
description, and most values of a long enumeration; never an argument, and never that one is required.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import to_json

__all__ = ["outlined"]

Json = dict[str, Any]

_STEPS: Final = ((240, 3), (120, 2), (80, 1), (40, 0))
"""Characters of a description that stay, and how deep arguments go that are not required."""

_DEEPEST: Final = 8  # levels of what is required
_PARTS: Final = 200  # of all arguments: a schema that holds itself in several places has no end
_VALUES: Final = 12  # of an enumeration
_KEPT: Final = ("type", "format", "const", "default", "minimum", "maximum", "pattern", "additionalProperties")
_CHOICES: Final = ("anyOf", "oneOf", "allOf")


def outlined(wire: Json, size: int) -> tuple[Json, bool]:
    """Return a tool as it was listed, or its outline where that is longer than so many bytes, and whether it is one."""
    if len(to_json(wire)) <= size:
        return wire, False
    schema = wire.get("inputSchema", {})
    outline = wire
    for text, depth in _STEPS:
        cutter = _Cutter(schema, text)
        shown = {"description": _shortened(wire.get("description", ""), size // 4)}
        outline = {**wire, **shown, "inputSchema": cutter.cut(schema, depth + 1, 0)}
        if len(to_json(outline)) <= size:
            break
    return (outline, True) if len(to_json(outline)) < len(to_json(wire)) else (wire, False)


class _Cutter:
    def __init__(self, root: Json, text: int) -> None:
        self._definitions: Json = root.get("$defs", {})
        self._text = text
        self._left = _PARTS

    def cut(self, schema: Any, depth: int, level: int) -> Any:
        """Return a schema down to some depth; what is required does not count, up to a bound."""
        if not isinstance(schema, dict):
            return schema
        schema = self._resolved(schema)
        kept: Json = {key: schema[key] for key in _KEPT if key in schema and not isinstance(schema[key], dict | list)}
        if isinstance(schema.get("type"), list):
            kept["type"] = schema["type"]
        if text := schema.get("description"):
            kept["description"] = _shortened(text, self._text)
        if values := schema.get("enum"):
            kept["enum"] = [*values[:_VALUES], *(["…"] if len(values) > _VALUES else [])]
        if depth <= 0 or level >= _DEEPEST or self._left <= 0:
            return kept
        self._left -= level > 0
        if properties := schema.get("properties"):
            required = schema.get("required", [])
            kept["properties"] = {
                name: self.cut(part, depth if name in required else depth - 1, level + 1)
                for name, part in properties.items()
            }
            if required:
                kept["required"] = required
        if (items := schema.get("items")) is not None:
            kept["items"] = self.cut(items, depth, level + 1)
        for key in _CHOICES:
            if parts := schema.get(key):
                kept[key] = [self.cut(part, depth - (len(parts) > 1), level + 1) for part in parts]
        return kept

    def _resolved(self, schema: Json) -> Json:
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            target = self._definitions.get(reference.rpartition("/")[2]) if isinstance(reference, str) else None
            if not isinstance(target, dict):
                break
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
