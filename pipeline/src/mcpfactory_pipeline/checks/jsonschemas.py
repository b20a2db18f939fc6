"""JSON Schemas and their instances; no other module imports `jsonschema` or `referencing`.

Schemas come from untrusted servers. Their depth is therefore limited before recursive code reads them. No schema is
ever fetched; a reference to another document is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema
import jsonschema.validators
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from mcpfactory_pipeline.checks.exchange import is_nested_deeper
from mcpfactory_runtime.schemas.walk import APPLICATORS, children, pointer

MAX_DEPTH: Final = 80  # maximum nesting of schemas; jsonschema needs five Python stack frames per level

# `validator_for` returns this default for an unknown dialect, although its type stubs exclude None.
_UNKNOWN: Final[Any] = None

_LONGEST: Final = 1_000  # maximum characters of a text to match, because a bad pattern may take exponential time

# Keywords without effect on validity; their texts are emptied before caching.
_TEXTS: Final = frozenset({"description", "title"})


def is_known_dialect(schema: Mapping[str, Any]) -> bool:
    """Return True if `$schema` names a dialect that the library knows, or is missing (2020-12)."""
    return "$schema" not in schema or jsonschema.validators.validator_for(schema, default=_UNKNOWN) is not None


def schema_error(schema: Any) -> str:
    """Return why `schema` is invalid in its dialect (default 2020-12); "" for a valid schema."""
    if is_nested_deeper(schema, MAX_DEPTH):
        return f"it is nested deeper than {MAX_DEPTH} levels"
    return _error_in(_dialect(schema), schema, "")


def _error_in(dialect: Any, schema: Any, place: str) -> str:
    """Return the error in the schema at `place`.

    The result of each subschema is cached, because tools share many subschemas.
    """
    outer = dict(schema) if isinstance(schema, dict) else schema
    if isinstance(schema, dict):
        for steps, part in children(schema):
            if error := _error_in(dialect, part, place + pointer(steps)):
                return error
        for keyword, value in schema.items():
            holds = APPLICATORS.get(keyword)
            if isinstance(value, list) and (holds == "list" or keyword == "items"):
                outer[keyword] = value and [{}]
            elif isinstance(value, dict) and holds in ("one", "map"):
                outer[keyword] = {}
            elif keyword in _TEXTS and isinstance(value, str):
                outer[keyword] = ""
    try:
        found = _known_error(dialect, json.dumps(outer))
    except (TypeError, ValueError):  # the value is not JSON, so it cannot come from a server
        found = _found_error(dialect, outer)
    return _sentence(place + found[0], found[1]) if found else ""


@lru_cache(maxsize=65_536)
def _known_error(dialect: Any, text: str) -> tuple[str, str] | None:
    return _found_error(dialect, json.loads(text))


def _found_error(dialect: Any, schema: Any) -> tuple[str, str] | None:
    try:
        dialect.check_schema(schema)
    except jsonschema.SchemaError as error:
        return _place(error), error.message
    return None


def instance_error(instance: Any, schema: Any) -> str:
    """Return why `instance` does not match `schema`; "" for a match. An invalid schema is also an error."""
    if is_nested_deeper(instance, MAX_DEPTH) or is_nested_deeper(schema, MAX_DEPTH):
        return f"it is nested deeper than {MAX_DEPTH} levels"
    try:
        for error in _with_short_patterns(_dialect(schema))(schema, registry=Registry()).iter_errors(instance):
            return _sentence(_place(error), error.message)
    except Unresolvable as error:
        return f"the schema has an unresolvable reference: {error.ref}"
    except Exception:  # noqa: BLE001 - an invalid or endless schema behind a reference may raise anything
        return "the schema cannot be evaluated"
    return ""


def broken_references(schema: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield (place, reference, remote) for every `$ref` and `$dynamicRef` without a target in the schema.

    `place` is a JSON pointer; `remote` is True if the reference names another document.
    """
    if is_nested_deeper(schema, MAX_DEPTH):
        return
    root = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("", root)
    todo: list[tuple[str, Any, Any]] = [("", schema, registry.resolver_with_root(root))]
    while todo:
        place, part, resolver = todo.pop()
        if not isinstance(part, dict):
            continue
        if "$id" in part and place:
            resolver = resolver.in_subresource(DRAFT202012.create_resource(part))
        for keyword in ("$ref", "$dynamicRef"):
            reference = part.get(keyword)
            if isinstance(reference, str) and not _resolves(resolver, reference):
                yield f"{place}/{keyword}", reference, not reference.startswith("#")
        todo += [(place + pointer(steps), child, resolver) for steps, child in children(part)]


def _resolves(resolver: Any, reference: str) -> bool:
    try:
        resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError, AttributeError):  # raised for malformed schemas
        return False
    return True


def _dialect(schema: Any) -> Any:
    default = jsonschema.Draft202012Validator
    return jsonschema.validators.validator_for(schema, default=default) or default


@lru_cache
def _with_short_patterns(dialect: Any) -> Any:
    return jsonschema.validators.extend(dialect, {"pattern": _pattern})  # type: ignore[no-untyped-call]  # of the library


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and len(instance) <= _LONGEST and not re.search(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _place(error: Any) -> str:
    return pointer(error.absolute_path)


def _sentence(place: str, message: str) -> str:
    return f"at {place or 'the root'}: {message[:300]}"
