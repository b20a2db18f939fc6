"""Schemas of builtin types, without pydantic, whose import takes six times as long as that of pydantic-core.

`pydantic_schemas` converts other types.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from mcpfactory_runtime.types import Json

CoreAndJson = tuple[Json, Json]

_SIMPLE: Final[dict[Any, CoreAndJson]] = {
    int: ({"type": "int"}, {"type": "integer"}),
    float: ({"type": "float", "allow_inf_nan": False}, {"type": "number"}),
    str: ({"type": "str"}, {"type": "string"}),
    bool: ({"type": "bool"}, {"type": "boolean"}),
    None: ({"type": "none"}, {"type": "null"}),
    type(None): ({"type": "none"}, {"type": "null"}),
    Any: ({"type": "any"}, {}),
    object: ({"type": "any"}, {}),
    list: ({"type": "list"}, {"type": "array"}),
    dict: ({"type": "dict", "keys_schema": {"type": "str"}}, {"type": "object"}),
}


def builtin_schema(annotation: Any) -> CoreAndJson | None:
    """Return the pydantic-core schema and the JSON Schema of an annotation, or None if the type is not supported.

    Supported types are int, float, str, bool, None, Any, list, dict with string keys, Literal of strings, integers and
    booleans, and unions of these types. The metadata of `Annotated` may only contain strings, which become the
    description.
    """
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:  # the annotation is not hashable, for example Annotated with a list
        return None
    if simple is not None:
        return dict(simple[0]), dict(simple[1])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments)
    if origin is Literal:
        return _literal(arguments)
    if origin is list:
        items = builtin_schema(arguments[0])
        return items and ({"type": "list", "items_schema": items[0]}, {"type": "array", "items": items[1]})
    if origin is dict and arguments[0] is str:
        values = builtin_schema(arguments[1])
        core: Json = {"type": "dict", "keys_schema": {"type": "str"}}
        return values and (
            {**core, "values_schema": values[0]},
            {"type": "object", "additionalProperties": values[1]} if values[1] else {"type": "object"},
        )
    if origin is Union or origin is types.UnionType:
        return _union(arguments)
    return None


def _annotated(arguments: tuple[Any, ...]) -> CoreAndJson | None:
    if not all(isinstance(extra, str) for extra in arguments[1:]):
        return None
    inner = builtin_schema(arguments[0])
    return inner and (inner[0], {**inner[1], "description": " ".join(arguments[1:])})


def _literal(values: tuple[Any, ...]) -> CoreAndJson | None:
    kinds = {type(value) for value in values}
    if not kinds <= {str, int, bool}:
        return None
    schema: Json = {"enum": list(values)}
    if len(kinds) == 1:
        schema = {"type": _SIMPLE[kinds.pop()][1]["type"], **schema}
    return {"type": "literal", "expected": list(values)}, schema


def _union(arguments: tuple[Any, ...]) -> CoreAndJson | None:
    members = [builtin_schema(member) for member in arguments if member is not type(None)]
    known = [member for member in members if member is not None]
    if len(known) != len(members):
        return None
    core: Json = {"type": "union", "choices": [member[0] for member in known]} if len(known) > 1 else known[0][0]
    choices = [member[1] for member in known]
    if len(members) < len(arguments):
        core = {"type": "nullable", "schema": core}
        choices.append({"type": "null"})
    return core, {"anyOf": choices}
