"""What one value of a schema must be, and how it is repaired: numbers, enumerations, and texts that mean something else."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from pydantic_core import PydanticCustomError

from mcpfactory_runtime.server.schema.errors import problem, show

__all__ = [
    "KEYS_BY_KIND",
    "OWN_KEYS",
    "TYPES",
    "Enumeration",
    "Number",
    "array_from_text",
    "boolean_from_text",
    "check_size",
    "check_unique",
    "is_number",
    "is_of",
    "number_from_text",
    "object_from_text",
    "text_from_integer",
]

KEYS_BY_KIND: Final[dict[str, frozenset[str]]] = {
    "object": frozenset(
        {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"}
        | {"propertyNames"}
    ),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
"""The keywords that speak of one kind of value."""
OWN_KEYS: Final = frozenset().union(*KEYS_BY_KIND.values())
_HASHED: Final = 2**60  # whole numbers from here on may share their hash with others

_BOUNDS: Final[tuple[tuple[str, str, Callable[[Any, Any], bool]], ...]] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "greater than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)


class Number:
    """A number within its bounds; `whole` also turns 5.0 into 5, which JSON Schema calls an integer (§6.1.1)."""

    __slots__ = ("_bounds", "_lenient", "_multiple", "_whole")

    def __init__(self, schema: Mapping[str, Any], *, whole: bool, lenient: bool) -> None:
        self._whole = whole
        self._lenient = lenient
        self._multiple = schema["multipleOf"] if is_number(schema.get("multipleOf")) and schema["multipleOf"] > 0 else 0
        self._bounds = [(words, inside, schema[key]) for key, words, inside in _BOUNDS if is_number(schema.get(key))]

    def __call__(self, value: Any) -> Any:
        """Return the number; raises a problem."""
        if self._lenient and isinstance(value, str):
            value = number_from_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _type_problem("an integer" if self._whole else "a number")
        if self._whole and isinstance(value, float):
            if not value.is_integer():
                raise _type_problem("an integer")
            value = int(value)
        for words, inside, bound in self._bounds:
            if not inside(value, bound):
                raise problem(f"must be {words} {show(bound)}")
        if self._multiple and not _is_multiple(value, self._multiple):
            raise problem(f"must be a multiple of {show(self._multiple)}")
        return value


class Enumeration:
    """One of the listed values, compared as JSON: 1 equals 1.0 but not true."""

    __slots__ = ("_by_key", "_by_text", "_values")

    def __init__(self, values: list[Any], *, lenient: bool) -> None:
        self._values = values
        self._by_key = {_json_key(value): value for value in values}
        texts = [value if isinstance(value, str) else show(value) for value in values]
        self._by_text = dict(zip(texts, values, strict=True)) if lenient and len(set(texts)) == len(texts) else {}

    def __call__(self, value: Any) -> Any:
        """Return the value, or the listed one that its text means; raises a problem."""
        key = _json_key(value)
        if key in self._by_key:
            return value
        text = value if isinstance(value, str) else show(value) if isinstance(value, bool | int) else None
        if text is not None and text in self._by_text:
            return self._by_text[text]
        listed = ", ".join(show(one) for one in self._values[:20]) + (", …" if len(self._values) > 20 else "")
        raise PydanticCustomError("enum", "{text}", {"text": f"must be {'one of ' * (len(self._values) > 1)}{listed}"})


def check_size(low: int, high: int | None, value: Any) -> Any:
    """`minProperties` and `maxProperties`."""
    if len(value) < low:
        raise problem(f"needs at least {low} {'property' if low == 1 else 'properties'}")
    if high is not None and len(value) > high:
        raise problem(f"may have at most {high} {'property' if high == 1 else 'properties'}")
    return value


def check_unique(value: list[Any]) -> list[Any]:
    """`uniqueItems`."""
    if len({_json_key(one) for one in value}) < len(value):
        raise problem("must have no two items that are the same")
    return value


def number_from_text(text: str) -> Any:
    """Return the number that a text is in JSON, or the text."""
    if re.fullmatch(r"\s*-?(0|[1-9]\d{0,300})(\.\d{1,300})?([eE][+-]?\d{1,3})?\s*", text, re.ASCII):
        number = json.loads(text)
        return number if math.isfinite(number) else text
    return text


def text_from_integer(value: Any) -> Any:
    """Return the text of a whole number (not of 1.0, whose text may be meant as 1.00), or the value."""
    return str(value) if type(value) is int and abs(value) < 10**40 else value


def boolean_from_text(value: Any) -> Any:
    """Return what "true" and "false" mean, or the value."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _container_from_text(opening: str, value: Any) -> Any:
    """Return the array or object that a text is in JSON, or the value."""
    if isinstance(value, str) and value.lstrip().startswith(opening):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


object_from_text = partial(_container_from_text, "{")
array_from_text = partial(_container_from_text, "[")


def is_number(value: Any) -> bool:
    """Return a number as JSON knows them: booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_multiple(value: float, of: float) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    try:
        ratio = value / of
    except OverflowError:  # an integer that no float can be
        (above, below), (step, part) = value.as_integer_ratio(), of.as_integer_ratio()
        return above * part % (below * step) == 0
    return math.isfinite(ratio) and math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-9)


def is_of(value: Any, kinds: Iterable[Any]) -> bool:
    """Whether a value is of one of the types that JSON Schema names; of an unknown type is any value."""
    return any(kind not in TYPES or TYPES[kind](value) for kind in kinds if isinstance(kind, str))


TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "number": is_number,
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
}


def _json_key(value: Any) -> Any:
    """Return what two values have in common that are the same JSON: 1 and 1.0, objects in whatever order."""
    if isinstance(value, bool) or value is None:
        return (type(value), value)
    if isinstance(value, list):
        return ("array", *map(_json_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _json_key(one)) for name, one in value.items()))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) >= _HASHED:  # the hash of a text cannot be chosen by who sends it
        return ("number", hex(value))
    return value if isinstance(value, str | int | float) else repr(value)


def _type_problem(name: str) -> PydanticCustomError:
    return PydanticCustomError("type", "{text}", {"text": f"must be {name}"})
