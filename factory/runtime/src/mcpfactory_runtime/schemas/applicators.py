"""Validators for keywords that pydantic-core does not support, such as `oneOf`, `not`, `if` and `contains`.

Each function returns a core schema that checks one keyword and returns the value unchanged. Subschemas are compiled
without repairs. The caller must omit a keyword if a subschema is not fully checked (`is_fully_checked`). Otherwise, a
`not` could refuse valid values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from mcpfactory_runtime.schemas.references import SchemaReferences, UnusableSchemaError
from mcpfactory_runtime.schemas.value_validation import STRICT, TYPES, merge_errors, pydantic_argument_error
from mcpfactory_runtime.schemas.walk import children, properties_of, required_of, types_of

CoreSchema = core_schema.CoreSchema
Handler = Callable[[Any], Any]

_OPEN: Final = frozenset({"$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"})
MAX_PREFIX: Final = 16  # maximum items in `prefixItems`; a longer list is not checked
_MAX_PARTS: Final = 2_000  # maximum subschemas that `is_fully_checked` visits


class _Attempt(NamedTuple):
    part: str
    value: Any


def _parts(parts: Mapping[str, CoreSchema]) -> CoreSchema:
    """Return a schema that validates the value of an `_Attempt` against the named subschema."""
    choices: dict[Any, CoreSchema] = {
        f"{STRICT}{name}": core_schema.no_info_before_validator_function(_value_of, part)
        for name, part in parts.items()
    }
    return core_schema.tagged_union_schema(choices, _tag_of)


def _value_of(tried: _Attempt) -> Any:
    return tried.value


def _tag_of(tried: _Attempt) -> str:
    return f"{STRICT}{tried.part}"


def _wrapped(check: Callable[[Any, Handler], Any], parts: Mapping[str, CoreSchema]) -> CoreSchema:
    return core_schema.no_info_wrap_validator_function(check, _parts(parts))


def _fits(handler: Handler, part: str, value: Any) -> bool:
    try:
        handler(_Attempt(part, value))
    except ValidationError:
        return False
    return True


def one_of_schema(branches: Sequence[CoreSchema]) -> CoreSchema:
    """Check `oneOf`, and return the result of the matching branch.

    A second validation would take exponential time for nested schemas.
    """

    def check(value: Any, handler: Handler) -> Any:
        fitted: list[Any] = []
        refusals: list[ValidationError] = []
        for number in range(len(branches)):
            try:
                fitted.append(handler(_Attempt(str(number), value)))
            except ValidationError as error:
                refusals.append(error)
            if len(fitted) > 1:
                raise pydantic_argument_error(
                    f"must match exactly one of the {len(branches)} permitted forms, but matches several"
                )
        if not fitted:
            raise merge_errors(refusals)
        return fitted[0]

    return _wrapped(check, {str(number): branch for number, branch in enumerate(branches)})


def not_schema(part: CoreSchema) -> CoreSchema:
    """Check `not`."""

    def check(value: Any, handler: Handler) -> Any:
        if _fits(handler, "not", value):
            raise pydantic_argument_error("must not match the schema in `not`")
        return value

    return _wrapped(check, {"not": part})


def if_then_else_schema(condition: CoreSchema, then: CoreSchema, otherwise: CoreSchema) -> CoreSchema:
    """Check `if`, `then` and `else`."""

    def check(value: Any, handler: Handler) -> Any:
        handler(_Attempt("then" if _fits(handler, "if", value) else "else", value))
        return value

    return _wrapped(check, {"if": condition, "then": then, "else": otherwise})


def dependent_schemas_schema(parts: Mapping[str, CoreSchema]) -> CoreSchema:
    """Check `dependentSchemas`."""

    def check(value: Any, handler: Handler) -> Any:
        for name in parts:
            if isinstance(value, dict) and name in value:
                handler(_Attempt(name, value))
        return value

    return _wrapped(check, parts)


def dependent_required_schema(needed: Mapping[str, Any]) -> CoreSchema:
    """Check `dependentRequired`."""

    def check(value: Any) -> Any:
        for name, others in needed.items() if isinstance(value, dict) else ():
            missing = [one for one in others if one not in value] if name in value and isinstance(others, list) else []
            if missing:
                raise pydantic_argument_error(f"needs {', '.join(map(str, missing))} together with {name}")
        return value

    return core_schema.no_info_plain_validator_function(check)


def contains_schema(part: CoreSchema, low: int, high: int | None) -> CoreSchema:
    """Check `contains`, `minContains` and `maxContains`."""

    def check(value: Any, handler: Handler) -> Any:
        count = sum(_fits(handler, "contains", one) for one in value)
        if count < low or (high is not None and count > high):
            many = f"at least {low}" if count < low else f"at most {high}"
            raise pydantic_argument_error(f"must contain {many} items that match the schema in `contains`")
        return value

    return _wrapped(check, {"contains": part})


def property_names_schema(names: CoreSchema) -> CoreSchema:
    """Check `propertyNames`."""
    return core_schema.dict_schema(keys_schema=names, strict=True)


def pattern_properties_schema(parts: Mapping[str, CoreSchema]) -> CoreSchema:
    """Check `patternProperties`."""

    def check(value: Any, handler: Handler) -> Any:
        kept = dict(value)
        for pattern in parts:
            engine = pattern_validator(pattern)
            matched = {key: one for key, one in kept.items() if engine is not None and engine.isinstance_python(key)}
            if matched:
                kept |= handler(_Attempt(pattern, matched))
        return kept

    inner = {pattern: core_schema.dict_schema(values_schema=part, strict=True) for pattern, part in parts.items()}
    return _wrapped(check, inner)


def skip_matched_properties(patterns: Iterable[str], properties: Iterable[str], rest: CoreSchema) -> CoreSchema:
    """Apply `rest`, the check of additional properties, only to properties that match no pattern."""
    engines = [pattern_validator(pattern) for pattern in patterns]
    return core_schema.no_info_wrap_validator_function(partial(_check_rest, engines, frozenset(properties)), rest)


def _check_rest(
    engines: Sequence[SchemaValidator | None], properties: frozenset[str], value: Any, handler: Handler
) -> Any:
    if not isinstance(value, dict):
        return handler(value)
    aside = {key for key in value if key not in properties and _is_matched(key, engines)}
    kept = handler({key: one for key, one in value.items() if key not in aside})
    return {key: value[key] if key in aside else kept[key] for key in value if key in aside or key in kept}


def matches_any_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Return True if a pattern matches the name or is not supported."""
    return _is_matched(name, [pattern_validator(pattern) for pattern in patterns])


def _is_matched(name: str, engines: Iterable[SchemaValidator | None]) -> bool:
    return any(one is None or one.isinstance_python(name) for one in engines)


@lru_cache(maxsize=1024)
def pattern_validator(pattern: str) -> SchemaValidator | None:
    """Return a linear-time validator of strings for a pattern, or None if the pattern is not supported."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except SchemaError:
        return None


def is_fully_checked(
    schema: Any, references: SchemaReferences, lists_none: Callable[[Mapping[str, Any]], bool]
) -> bool:
    """Return True if each keyword of a schema is checked, so that every accepted value is valid.

    `lists_none` returns True for an enumeration that permits none of its values, because such an enumeration is not
    enforced.
    """
    waiting, seen = list(schema) if isinstance(schema, list) else [schema], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or not isinstance(part, dict):
            continue
        seen.add(id(part))
        if len(seen) > _MAX_PARTS:
            return False
        if _has_unchecked_keyword(part) or lists_none(part):
            return False
        if isinstance(part.get("$ref"), str):
            try:
                target = references.follow(part)[1]
            except UnusableSchemaError:
                return False
            if target is schema:  # a cycle of references
                return False
            waiting.append(target)
        waiting += [child for _, child in children(part)]
    return True


def _has_unchecked_keyword(part: Mapping[str, Any]) -> bool:
    """Return True if a schema itself has an unchecked constraint."""
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    if isinstance(part.get("patternProperties"), dict):
        patterns += part["patternProperties"]
    return (
        not _OPEN.isdisjoint(part)
        or any(pattern_validator(pattern) is None for pattern in patterns)
        or any(kind not in TYPES for kind in types_of(part))
        or any(isinstance(part.get(key), list) and len(part[key]) > MAX_PREFIX for key in ("prefixItems", "items"))
        or _excludes_required(part)
    )


def _excludes_required(part: Mapping[str, Any]) -> bool:
    """Return True if the schema both requires and forbids a property, which validation accepts."""
    if part.get("additionalProperties") is not False:
        return False
    properties, patterns = properties_of(part), part.get("patternProperties")
    known = patterns if isinstance(patterns, Mapping) else {}
    return any(name not in properties and not matches_any_pattern(name, known) for name in required_of(part))
