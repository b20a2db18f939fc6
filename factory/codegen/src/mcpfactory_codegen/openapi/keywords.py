"""The keywords of a schema as tables: what each may hold in JSON Schema 2020-12, and what happens to the others.

A keyword in none of the tables is unknown and is dropped with a warning, so whatever passes through here satisfies the
metaschema. The checks return the value to keep, or raise ValueError with what is wrong.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

__all__ = [
    "ANNOTATIONS",
    "DATA",
    "DROPPED",
    "INPLACE",
    "LISTS",
    "MAPS",
    "SCALARS",
    "SCHEMAS",
    "TYPES",
    "TYPE_FORMATS",
    "TYPE_MENDS",
]

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

TYPE_MENDS: Final[dict[str, str]] = {
    # what people write instead of a type; "" means that anything goes
    "int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "timestamp": "integer",
    "float": "number", "double": "number", "decimal": "number", "numeric": "number",
    "bool": "boolean",
    "str": "string", "text": "string", "date": "string", "datetime": "string", "date-time": "string", "time": "string",
    "uuid": "string", "uri": "string", "url": "string", "email": "string", "enum": "string", "binary": "string",
    "byte": "string", "base64": "string", "file": "string",
    "dict": "object", "map": "object", "hash": "object", "json": "object", "struct": "object",
    "list": "array", "set": "array", "tuple": "array",
    "any": "", "mixed": "", "undefined": "", "": "", "none": "null", "nil": "null",
}  # fmt: skip

TYPE_FORMATS: Final[dict[str, str]] = {
    "int32": "int32", "int64": "int64", "long": "int64", "float": "float", "double": "double", "date": "date",
    "datetime": "date-time", "date-time": "date-time", "time": "time", "uuid": "uuid", "uri": "uri", "url": "uri",
    "email": "email", "binary": "binary", "file": "binary", "byte": "byte", "base64": "byte",
}  # fmt: skip
"""What a mended type says about the format."""

SCHEMAS: Final = frozenset(
    {
        "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
INPLACE: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords that apply a schema to the same value: a cycle of only these never ends."""
DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose values are data: nothing in them is a schema or a reference."""
ANNOTATIONS: Final = frozenset({"title", "description", "default", "deprecated", "examples"})

DROPPED: Final = frozenset(
    {
        # said elsewhere, or by us
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "definitions", "id",
        # of OpenAPI only; handled in schemas.py where they have an equivalent
        "discriminator", "example", "externalDocs", "nullable", "readOnly", "writeOnly", "xml", "collectionFormat",
        # of older drafts; handled in schemas.py
        "additionalItems", "dependencies",
        # of an example object that was taken for a schema; of code generators
        "allowEmptyValue", "links",
    }
)  # fmt: skip


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it has to be text")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError("it has to be true or false")


def _number(value: Any) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", value):
        return float(value) if "." in value else int(value)
    raise ValueError("it has to be a number")


def _positive(value: Any) -> int | float:
    number = _number(value)
    if number <= 0:
        raise ValueError("it has to be greater than 0")
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number < 0 or number != int(number):
        raise ValueError("it has to be a whole number of 0 or more")
    return int(number)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("it has to be a list of names")
    return list(dict.fromkeys(value))


def _name_lists(value: Any) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise ValueError("it has to be an object of lists of names")
    return {name: _names(names) for name, names in value.items()}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("it has to be a list of values")  # one kind of error for all checks
    return value


def _examples(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):  # Example Objects by name, as a media type would have them
        return [one["value"] if isinstance(one, dict) and "value" in one else one for one in value.values()]
    return [value]


def _any(value: Any) -> Any:
    """Return data passes as it is: shared with the document, never copied, never looked into."""
    return value


_FOREIGN: Final = re.compile(r"(?<!\\)\(\?(?:[aiLmsux]+[:)-]|>|P[=>]|#|\()|(?<!\\)(?:[*+?]|\{\d+,?\d*\})\+")
"""Inline flags, atomic groups, possessive repetition, comments and conditions of Python, Perl or Java."""
_EDGES: Final = re.compile(r"\\(.)", re.DOTALL)


def _pattern(value: Any) -> str:
    return _expression(_text(value))


@lru_cache(maxsize=4096)
def _expression(value: str) -> str:
    """Return a regular expression that readers in Python can use too; ECMA-262 has a few constructs that `re` has not."""
    if len(value) > 5000:
        raise ValueError("it is longer than 5000 characters")
    literal = re.fullmatch(r"/(\^.*)/([a-z]*)", value, re.DOTALL)  # JavaScript's slashes are no part of the expression
    if literal is not None and "i" in literal[2]:
        raise ValueError("it takes capitals for small letters, which a pattern cannot say")
    text = literal[1] if literal is not None else value
    if (foreign := _FOREIGN.search(text)) is not None:
        raise ValueError(f"{foreign[0][:20]!r} means something else, or nothing, in JavaScript's regular expressions")
    text = _EDGES.sub(lambda match: {"A": "^", "Z": "$", "z": "$"}.get(match[1], match[0]), text)
    if "\\k<" not in text:
        text = re.sub(r"\(\?<([A-Za-z_]\w*)>", "(", text)  # names of groups: `re` writes them in another way
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set": harmless, and not ours to fix
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"it is not a regular expression that every client can read ({error})") from None
    return text


SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "title": _text,
    "description": _text,
    "format": _text,
    "pattern": _pattern,
    "contentEncoding": _text,
    "contentMediaType": _text,
    "deprecated": _flag,
    "uniqueItems": _flag,
    "multipleOf": _positive,
    "maximum": _number,
    "minimum": _number,
    "exclusiveMaximum": _number,
    "exclusiveMinimum": _number,
    "maxLength": _count,
    "minLength": _count,
    "maxItems": _count,
    "minItems": _count,
    "maxContains": _count,
    "minContains": _count,
    "maxProperties": _count,
    "minProperties": _count,
    "required": _names,
    "dependentRequired": _name_lists,
    "const": _any,
    "default": _any,
    "enum": _list,
    "examples": _examples,
}
