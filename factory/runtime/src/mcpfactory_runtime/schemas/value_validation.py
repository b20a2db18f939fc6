"""Validation and repair of single values, and error messages for models.

The location of an error contains a label for each branch of a union (`STRICT` or `LENIENT`, with the branch). This
module removes the labels. If several branches fail, only the error of the closest branch is reported.
"""

from __future__ import annotations

import difflib
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeGuard

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from mcpfactory_runtime.schemas.walk import types_of

STRICT: Final = "\0x"
LENIENT: Final = "\0l"
_MAX_PROBLEMS: Final = 8  # maximum problems in one message
_MAX_ECHO: Final = 60  # maximum characters of an echoed value
_MISMATCH: Final = 100  # distance of a value from a branch of another type

Place = tuple[str | int, ...]

_TEXTS: Final[dict[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is not a known argument",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "none_required": "must be null",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "recursion_loop": "is nested too deeply",
    "recursion_depth_exceeded": "is nested too deeply",
}
_KIND_ERRORS: Final = frozenset(
    {"type", "dict_type", "list_type", "tuple_type", "string_type", "bool_type", "none_required"}
)


_WITHOUT_VALUE: Final = frozenset({"missing", "forms", "recursion_loop", "recursion_depth_exceeded"})


class ArgumentError(ValueError):
    """Error for arguments that do not match the input schema."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:_MAX_PROBLEMS])
        more = len(self.problems) - _MAX_PROBLEMS
        if more > 0:
            shown += f"; and {more} more"
        super().__init__(f"Invalid arguments: {shown}{'' if shown.endswith('?') else '.'}")


@dataclass(frozen=True, slots=True)
class _FoundProblem:
    place: Place
    code: str
    text: str
    value: Any

    def below(self, length: int) -> _FoundProblem:
        return _FoundProblem(self.place[length:], self.code, self.text, self.value)


def pydantic_argument_error(text: str) -> PydanticCustomError:
    """Return an error for an invalid argument. `text` follows the argument's name, such as "must be at least 1"."""
    return PydanticCustomError("problem", "{text}", {"text": text})


def merge_errors(refusals: Iterable[ValidationError]) -> ValidationError:
    """Merge the errors of several validations into one."""
    found: list[InitErrorDetails] = []
    for one in (one for refusal in refusals for one in refusal.errors(include_url=False)):
        context = one.get("ctx", {})
        kind = PydanticCustomError(one["type"], "{text}", context) if "text" in context else one["type"]
        found.append({"type": kind, "loc": one["loc"], "input": one["input"], "ctx": context})
    return ValidationError.from_exception_data("value", found)


def short_json(value: Any) -> str:
    """Return a value as JSON text, cut to a short length."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_ECHO else text[: _MAX_ECHO - 1] + "…"


def explain_validation_error(error: ValidationError, properties: Sequence[str] = ()) -> ArgumentError:
    """Return the error for a failed validation."""
    found = [
        _FoundProblem(tuple(one["loc"]), one["type"], _text(one["type"], one.get("ctx", {}), one["msg"]), one["input"])
        for one in error.errors(include_url=False)
    ]
    texts = [_sentence(one, properties) for one in _flatten(found)]
    return ArgumentError(list(dict.fromkeys(texts)))


def _text(code: str, context: dict[str, Any], message: str) -> str:
    if "text" in context:
        return str(context["text"])
    return _TEXTS[code].format_map(context) if code in _TEXTS else message[:1].lower() + message[1:]


def _sentence(one: _FoundProblem, properties: Sequence[str]) -> str:
    name = _name(one.place)
    if one.code == "extra_forbidden":
        close = difflib.get_close_matches(str(one.place[-1]), properties, 1) if len(one.place) == 1 else []
        known = f" (arguments: {', '.join(properties)})" if len(one.place) == 1 and len(properties) <= 20 else ""
        return f"{name} {one.text}" + (f"; did you mean {close[0]}?" if close else known)
    if one.code in _WITHOUT_VALUE:
        return f"{name} {one.text}"
    return f"{name} {one.text}, not {_shown_value(one.value)}"


def _shown_value(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_ECHO else "what was given"


def _name(place: Place) -> str:
    name = ""
    # A last part "[key]" means that `propertyNames` refused the key.
    for part in place[:-1] if place[-1:] == ("[key]",) else place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    if len(name) > 2 * _MAX_ECHO:
        name = f"{name[:_MAX_ECHO]}…{name[-_MAX_ECHO:]}"
    name = name or "the value"
    return f"the name {name}" if place[-1:] == ("[key]",) else name


def _flatten(found: Iterable[_FoundProblem]) -> list[_FoundProblem]:
    """Return the errors of the closest union branch, or a summary of all branches, without labels."""
    plain: list[_FoundProblem] = []
    unions: dict[Place, dict[str, list[_FoundProblem]]] = {}
    for one in found:
        at = next((at for at, part in enumerate(one.place) if isinstance(part, str) and part.startswith("\0")), -1)
        if at < 0:
            plain.append(one)
        else:
            branches = unions.setdefault(one.place[:at], {})
            branches.setdefault(str(one.place[at]), []).append(one.below(at + 1))
    for place, branches in unions.items():
        lenient = {label: errors for label, errors in branches.items() if label.startswith(LENIENT)}
        closest = _closest([_flatten(errors) for errors in (lenient or branches).values()])
        plain += [_FoundProblem(place + one.place, one.code, one.text, one.value) for one in closest]
    return plain


def _closest(branches: list[list[_FoundProblem]]) -> list[_FoundProblem]:
    scores = [_distance(branch) for branch in branches]
    best = min(scores)
    if len(branches) == 1 or (best < _MISMATCH and scores.count(best) == 1):
        return branches[scores.index(best)]
    whole = [one for branch in branches for one in branch if not one.place]
    if len(whole) == sum(map(len, branches)):
        texts = list(dict.fromkeys(one.text.removeprefix("must be ") for one in whole))
        return [_FoundProblem((), "type", f"must be {' or '.join(texts)}", whole[0].value)]
    described = list(
        dict.fromkeys(" and ".join(f"{_name(one.place)} {one.text}" for one in branch[:3]) for branch in branches)
    )
    text = f"fits none of its {len(branches)} forms: {'; or '.join(described[:4])}"
    return [_FoundProblem((), "forms", text, None)]


def _distance(branch: list[_FoundProblem]) -> int:
    """Return the distance of a value from a branch, where a wrong type weighs more than a wrong enumeration value."""
    total = 0
    for one in branch:
        if not one.place and one.code in _KIND_ERRORS:
            total += _MISMATCH
        else:
            total += 20 if one.code == "enum" else 1
    return total


KEYS_BY_KIND: Final[dict[str, frozenset[str]]] = {
    "object": frozenset(
        {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"}
        | {"propertyNames"}
    ),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}),
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
"""Type of a value → keywords that apply only to values of the type."""
OWN_KEYS: Final = frozenset().union(*KEYS_BY_KIND.values())
_MAX_HASHED: Final = 2**60  # larger integers may have equal hashes

_BOUNDS: Final[tuple[tuple[str, str, Callable[[Any, Any], bool]], ...]] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "greater than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)


class NumberValidator:
    """Validator of numbers. `whole` requires integers, and converts 5.0 to 5 (JSON Schema §6.1.1)."""

    __slots__ = ("_bounds", "_lenient", "_multiple", "_whole")

    def __init__(self, schema: Mapping[str, Any], *, whole: bool, lenient: bool) -> None:
        self._whole = whole
        self._lenient = lenient
        self._multiple = schema["multipleOf"] if is_number(schema.get("multipleOf")) and schema["multipleOf"] > 0 else 0
        self._bounds = [(words, inside, schema[key]) for key, words, inside in _BOUNDS if is_number(schema.get(key))]

    def __call__(self, value: Any) -> Any:
        """Return the number, or raise a `pydantic_argument_error`."""
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
                raise pydantic_argument_error(f"must be {words} {short_json(bound)}")
        if self._multiple and not _is_multiple(value, self._multiple):
            raise pydantic_argument_error(f"must be a multiple of {short_json(self._multiple)}")
        return value


class EnumValidator:
    """Validator of listed values, compared as JSON, in which 1 equals 1.0, but not true."""

    __slots__ = ("_by_key", "_by_text", "_values")

    def __init__(self, values: list[Any], *, lenient: bool) -> None:
        self._values = values
        self._by_key = {json_key(value): value for value in values}
        texts = [value if isinstance(value, str) else short_json(value) for value in values]
        self._by_text = dict(zip(texts, values, strict=True)) if lenient and len(set(texts)) == len(texts) else {}

    def __call__(self, value: Any) -> Any:
        """Return the value if it is listed, or in lenient mode the listed value with the same text."""
        key = json_key(value)
        if key in self._by_key:
            return value
        text = value if isinstance(value, str) else short_json(value) if isinstance(value, bool | int) else None
        if text is not None and text in self._by_text:
            return self._by_text[text]
        listed = ", ".join(short_json(one) for one in self._values[:20]) + (", …" if len(self._values) > 20 else "")
        raise PydanticCustomError("enum", "{text}", {"text": f"must be {'one of ' * (len(self._values) > 1)}{listed}"})


def check_property_count(low: int, high: int | None, value: Any) -> Any:
    """Check `minProperties` and `maxProperties`."""
    if len(value) < low:
        raise pydantic_argument_error(f"needs at least {low} {'property' if low == 1 else 'properties'}")
    if high is not None and len(value) > high:
        raise pydantic_argument_error(f"must have at most {high} {('property' if high == 1 else 'properties')}")
    return value


def check_unique(value: list[Any]) -> list[Any]:
    """Check `uniqueItems`."""
    if len({json_key(one) for one in value}) < len(value):
        raise pydantic_argument_error("must not have duplicate items")
    return value


def number_from_text(text: str) -> Any:
    """Return the number in a text, or the text if it is not a JSON number."""
    if re.fullmatch(r"\s*-?(0|[1-9]\d{0,300})(\.\d{1,300})?([eE][+-]?\d{1,3})?\s*", text, re.ASCII):
        number = json.loads(text)
        return number if math.isfinite(number) else text
    return text


def text_from_integer(value: Any) -> Any:
    """Return an integer as text, and any other value unchanged, because the text of 1.0 is ambiguous."""
    return str(value) if type(value) is int and abs(value) < 10**40 else value


def boolean_from_text(value: Any) -> Any:
    """Return the boolean for "true" or "false", and any other value unchanged."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _container_from_text(opening: str, value: Any) -> Any:
    """Parse the JSON text of an array or an object, and return any other value unchanged."""
    if isinstance(value, str) and value.lstrip().startswith(opening):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


object_from_text = partial(_container_from_text, "{")
array_from_text = partial(_container_from_text, "[")


def parse_argument_text(schema: Any, text: str) -> Any:
    """Parse a user's input as JSON, unless the schema permits only strings."""
    kinds = set(types_of(schema))
    if kinds == {"string"} or (kinds == {"string", "null"} and text != "null"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return [text] if kinds == {"array"} else text  # the server reports the invalid text


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return True if the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_multiple(value: float, of: float) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    try:
        ratio = value / of
    except OverflowError:  # the integer is too large for a float
        (above, below), (step, part) = value.as_integer_ratio(), of.as_integer_ratio()
        return above * part % (below * step) == 0
    return math.isfinite(ratio) and math.isclose(ratio, round(ratio), rel_tol=1e-9, abs_tol=1e-9)


def has_json_type(value: Any, kinds: Iterable[Any]) -> bool:
    """Return True if a value has one of the given JSON Schema types, or if one of the types is unknown."""
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


def json_key(value: Any) -> Any:
    """Return a key that is equal for equal JSON values, such as 1 and 1.0, or objects with another order of members."""
    if isinstance(value, bool) or value is None:
        return (type(value), value)
    if isinstance(value, list):
        return ("array", *map(json_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, json_key(one)) for name, one in value.items()))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) >= _MAX_HASHED:  # a caller could choose large integers with equal hashes
        return ("number", hex(value))
    return value if isinstance(value, str | int | float) else repr(value)


def _type_problem(name: str) -> PydanticCustomError:
    return PydanticCustomError("type", "{text}", {"text": f"must be {name}"})
