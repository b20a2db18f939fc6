"""Check of generated tools' results against the listed `outputSchema`.

MCP (server/tools, Output Schema): with an output schema, structured content MUST conform to it. APIs do not always
follow their documents. A call that the API carried out must not look like a failed one, or a model would repeat it.
Therefore:

1. Conforming content passes unchanged.
2. Members (and items of lists) that do not conform are left out of the structured content; the text has the complete
   response, and a note lists the missing parts. A null that the schema does not permit is left out without a note,
   since an absent member means the same. A string that contains the number or the boolean required by the schema (all
   values of XML are strings) is converted, unless digits would be lost.
3. If that is not enough, because a required member is missing, the result is an error that reports that the call was
   carried out.
4. Missing content, or content that is not JSON, becomes the empty object.

Output schemas are generated in a plain form (`mcpfactory_codegen.describe.schemas`): `type`, `properties`,
`required`, `items`, `additionalProperties`, `enum`; other keywords are ignored here.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from mcpfactory_runtime.server.output import Converter, free_result
from mcpfactory_runtime.server.schema.values import TYPES, boolean_from_text, number_from_text
from mcpfactory_runtime.types import Json

_DIGITS: Final = (
    17  # of a fraction: as many as programs write so that another reads the same number (IEEE 754, binary64)
)
_SHOWN: Final = 5  # places that a note names
_REMOVED: Final = object()


def conforming(schema: Json) -> Converter:
    """Return a converter whose results keep to the output schema of their tool."""

    def convert(value: Any) -> Json:
        result = free_result(value)
        if result.get("isError"):
            return {key: one for key, one in result.items() if key != "structuredContent"}
        structured = result.get("structuredContent", {})
        return _repaired(result, structured, schema)

    return convert


def _repaired(result: Json, structured: Any, schema: Json) -> Json:
    missing: dict[str, None] = {}
    kept = _fit(structured, schema, "", missing)
    if kept is _REMOVED:
        kept = {}
    absent = _missing_required(kept, schema, "")
    if absent:
        return {
            **{key: one for key, one in result.items() if key != "structuredContent"},
            "content": [*result["content"], _note(f"{_ANOTHER} {absent} is missing. {_DONE}")],
            "isError": True,
        }
    content = result["content"]
    if missing:
        names = [name or "everything" for name in missing]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        content = [*content, _note(f"{_ANOTHER} {', '.join(names[:_SHOWN])}{more} is not in the structured content.")]
    return {**result, "content": content, "structuredContent": kept}


_ANOTHER: Final = "Note: the API answered otherwise than its document says:"
_DONE: Final = "The call itself was carried out: do not repeat it because of this."


def _note(text: str) -> Json:
    return {"type": "text", "text": text}


def _fit(value: Any, schema: Any, place: str, missing: dict[str, None]) -> Any:
    """Return the value without nonconforming parts, or `_REMOVED`; add the places of removed parts to `missing`."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, str) and not _is_of(value, schema):
        value = _meant(value)
    if not _is_of(value, schema):
        if value is not None:
            missing[place] = None
        return _REMOVED
    if isinstance(value, dict):
        return _fit_object(value, schema, place, missing)
    items = schema.get("items")
    if isinstance(value, list) and items is not None:
        fitted = [_fit(one, items, f"{place}[]", missing) for one in value]
        return [one for one in fitted if one is not _REMOVED]
    return value


def _meant(text: str) -> Any:
    """Return the number or the truth value that a text is in JSON; else, or where digits would be lost, the text."""
    found = number_from_text(text)
    if found is text:
        return boolean_from_text(text)
    exact = Decimal(text.strip())
    whole = exact == exact.to_integral_value()
    kept = exact == Decimal(repr(found)) if whole else len(exact.as_tuple().digits) <= _DIGITS
    return found if kept else text


def _fit_object(value: Json, schema: Mapping[str, Any], place: str, missing: dict[str, None]) -> Json:
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    kept: Json = {}
    for name, one in value.items():
        inner = f"{place}.{name}" if place else name
        known = properties.get(name, more)
        if known is False:
            missing[inner] = None
            continue
        fitted = _fit(one, known, inner, missing)
        if fitted is not _REMOVED:
            kept[name] = fitted
    return kept


def _is_of(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if kinds is not None and not any(
        TYPES[one](value) for one in (kinds if isinstance(kinds, list) else [kinds]) if one in TYPES
    ):
        return False
    values = schema.get("enum")
    return values is None or any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)


def _missing_required(value: Any, schema: Any, place: str) -> str:
    """Return the first place where a required member is missing, or "" if all are present."""
    if not isinstance(schema, Mapping):
        return ""
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return f"{place}.{name}" if place else str(name)
        inner = [(name, part) for name, part in schema.get("properties", {}).items() if name in value]
        found = (_missing_required(value[name], part, f"{place}.{name}" if place else name) for name, part in inner)
        return next(filter(None, found), "")
    if isinstance(value, list) and "items" in schema:
        return next(filter(None, (_missing_required(one, schema["items"], f"{place}[]") for one in value)), "")
    return ""
