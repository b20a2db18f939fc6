"""How a schema of values that callers send differs from an older one: what is no longer accepted, what is accepted now.

Gives `(code, path, message)`; the path is below the schema (`.street`, `[]`), the codes are those of `diff.CHANGES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_codegen.ir import definition
from mcpfactory_codegen.text import compact

__all__ = ["schema_changes"]

_Found = tuple[str, str, str]
_Schema = dict[str, Any]
_Defs = tuple[Mapping[str, Any], Mapping[str, Any]]

_DEPTH: Final = 12
_ALL: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_ONLY: Final = ("pattern", "format", "multipleOf", "uniqueItems", "contentEncoding", "contentMediaType")
_TEXTS: Final = ("title", "description", "examples", "example", "deprecated", "$comment")
_BRANCHES: Final = ("anyOf", "oneOf")
_OTHER: Final = (
    *("allOf", "not", "if", "then", "else", "prefixItems", "contains", "minContains", "maxContains", "propertyNames"),
    *("patternProperties", "dependentSchemas", "dependentRequired", "unevaluatedItems", "unevaluatedProperties"),
)
_SHOWN: Final = 6


def schema_changes(old: Any, new: Any, definitions: _Defs) -> Iterator[_Found]:
    """Yield the differences of two schemas; `definitions` are the `$defs` that each may refer to."""
    if compact([old, definitions[0]]) != compact([new, definitions[1]]):  # in Python 1 == True, in JSON not
        yield from _compare(old, new, "", definitions, frozenset())


def _compare(old: Any, new: Any, path: str, defs: _Defs, above: frozenset[tuple[str, str]]) -> Iterator[_Found]:
    pair = _reference(old), _reference(new)
    if (any(pair) and pair in above) or path.count(".") + path.count("[") > _DEPTH:
        return  # a cycle that both have; it was compared where it began
    above |= {pair} if any(pair) else set()
    before, after = _resolved(old, defs[0]), _resolved(new, defs[1])
    yield from _types(before, after, path)
    yield from _enums(before, after, path)
    yield from _bounds(before, after, path)
    yield from _only(before, after, path)
    yield from _members(before, after, path, defs, above)
    if "items" in before or "items" in after:
        yield from _compare(before.get("items", True), after.get("items", True), path + "[]", defs, above)
    for keyword in _BRANCHES:
        yield from _branches(keyword, before, after, path, defs)
    changed = [key for key in _OTHER if _plain(before.get(key), defs[0]) != _plain(after.get(key), defs[1])]
    if changed:
        yield "schema-changed", path, f"{', '.join(changed)} changed"
    texts = [key for key in _TEXTS if before.get(key) != after.get(key)]
    if texts:
        yield "text-changed", path, f"{', '.join(texts)} changed"


def _reference(schema: Any) -> str:
    return str(schema.get("$ref", "")) if isinstance(schema, dict) else ""


def _resolved(schema: Any, defs: Mapping[str, Any]) -> _Schema:
    """Return the schema as an object, its `$ref` followed; siblings of the reference win."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return {"not": {}} if schema is False else {}
        if "$ref" not in schema:
            return schema
        target = defs.get(definition(str(schema["$ref"])), {})
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **rest} if isinstance(target, dict) else target
    return {}


def _types(old: _Schema, new: _Schema, path: str) -> Iterator[_Found]:
    before, after = _kinds(old), _kinds(new)
    if before == after:
        return
    change = f"{_words(before)} → {_words(after)}"
    if after < before:
        yield "type-narrowed", path, change
    elif after > before:
        yield "type-widened", path, change
    else:
        yield "type-changed", path, change


def _kinds(schema: _Schema) -> frozenset[str]:
    given = schema.get("type")
    if given is None:
        return _ALL
    kinds = set(given) if isinstance(given, list) else {str(given)}
    return frozenset(kinds | {"integer"} if "number" in kinds else kinds)


def _words(kinds: frozenset[str]) -> str:
    if kinds == _ALL:
        return "anything"
    return " or ".join(sorted(kinds - {"integer"} if "number" in kinds else kinds))


def _enums(old: _Schema, new: _Schema, path: str) -> Iterator[_Found]:
    before, after = _values(old), _values(new)
    if before is not None and (after is None or set(after) - set(before)):
        added = [] if after is None else [value for value in after if value not in before]
        yield "enum-widened", path, f"also {_list(added)}" if added else "any value"
    if after is not None and (before is None or set(before) - set(after)):
        gone = [] if before is None else [value for value in before if value not in after]
        yield "enum-narrowed", path, f"no longer {_list(gone)}" if gone else f"only {_list(after)}"


def _values(schema: _Schema) -> list[str] | None:
    """Return the values of enum or const, as JSON; None when any is accepted."""
    if "const" in schema:
        return [compact(schema["const"])]
    return [compact(value) for value in schema["enum"]] if isinstance(schema.get("enum"), list) else None


def _list(values: list[str]) -> str:
    return ", ".join(values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")


def _bounds(old: _Schema, new: _Schema, path: str) -> Iterator[_Found]:
    for keyword, sign in [*((key, 1) for key in _UPPER), *((key, -1) for key in _LOWER)]:
        before, after = (_bound(schema.get(keyword), sign) for schema in (old, new))
        if before != after:
            code = "constraint-narrowed" if after < before else "constraint-widened"
            yield code, path, _keyword_change(keyword, old, new)


def _bound(value: Any, sign: int) -> float:
    """How much is allowed: larger is wider; no bound is the widest."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value * sign if known else float("inf")


def _only(old: _Schema, new: _Schema, path: str) -> Iterator[_Found]:
    """Keywords that are compared as a whole: to have one is narrower than to have none."""
    for keyword in _ONLY:
        before, after = old.get(keyword) or None, new.get(keyword) or None
        if before != after:
            yield (
                "constraint-widened" if after is None else "constraint-narrowed",
                path,
                _keyword_change(keyword, old, new),
            )


def _keyword_change(keyword: str, old: _Schema, new: _Schema) -> str:
    before, after = (compact(schema[keyword]) if keyword in schema else "none" for schema in (old, new))
    return f"{keyword} {before} → {after}"


def _members(old: _Schema, new: _Schema, path: str, defs: _Defs, above: frozenset[tuple[str, str]]) -> Iterator[_Found]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    needed, needs = set(old.get("required") or ()), set(new.get("required") or ())
    open_before, open_after = (schema.get("additionalProperties", True) for schema in (old, new))
    for name in before:
        if name not in after:
            yield "argument-removed" if open_after is False else "schema-changed", f"{path}.{name}", "is gone"
    for name in after:
        if name not in before:
            code = "argument-added-required" if name in needs else "argument-added"
            yield code, f"{path}.{name}", "is new and required" if name in needs else "is new"
        else:
            yield from _compare(before[name], after[name], f"{path}.{name}", defs, above)
    for name in sorted((needs - needed) - (after.keys() - before.keys())):
        yield "argument-required", f"{path}.{name}", "is now required"
    for name in sorted((needed - needs) & after.keys()):
        yield "argument-optional", f"{path}.{name}", "is no longer required"
    if open_before is False and open_after is not False:
        yield "constraint-widened", path, "accepts other properties"
    elif open_before is not False and open_after is False:
        yield "constraint-narrowed", path, "accepts no other properties"
    elif isinstance(open_before, dict) or isinstance(open_after, dict):
        yield from _compare(open_before, open_after, f"{path}.*", defs, above)


def _branches(keyword: str, old: _Schema, new: _Schema, path: str, defs: _Defs) -> Iterator[_Found]:
    if keyword not in old and keyword not in new:
        return
    before = {compact(_plain(branch, defs[0])) for branch in old.get(keyword) or ()}
    after = {compact(_plain(branch, defs[1])) for branch in new.get(keyword) or ()}
    if before == after:
        return
    if keyword == "anyOf" and before and before < after:
        yield "type-widened", path, f"{keyword} has more branches"
    elif keyword == "anyOf" and after and (after < before or not before):
        yield "type-narrowed", path, f"{keyword} has fewer branches" if before else f"{keyword} is new"
    else:
        yield "schema-changed", path, f"{keyword} changed"


def _plain(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a schema without texts and with its references inlined, so that only what it accepts is compared."""
    if depth > _DEPTH:
        return None
    if isinstance(schema, list):
        return [_plain(item, defs, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = _resolved(schema, defs)
        depth += 4  # a cycle ends early, at the same place on both sides
    named = {"properties", "patternProperties", "dependentSchemas", "$defs"}
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in named and isinstance(value, dict):
            plain[key] = {name: _plain(member, defs, depth + 1) for name, member in value.items()}
        elif key == "required" and isinstance(value, list):
            plain[key] = sorted(map(str, value))
        elif key not in _TEXTS and key != "default":
            plain[key] = _plain(value, defs, depth + 1)
    return plain
