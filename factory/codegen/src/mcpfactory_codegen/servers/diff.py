"""Compatibility of a change of a server's tools for their callers, from two manifests. Pure.

breaking   a call that worked can fail, or mean something else
additive   everything that worked still works, and more does
cosmetic   only texts and hints changed

Below an argument, differences that cannot be compared keyword by keyword (`oneOf`, `not`, `if` …) count as breaking,
because compatibility cannot be verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mcpfactory_codegen.ir import definition
from mcpfactory_codegen.text import compact

Kind = Literal["breaking", "additive", "cosmetic"]

CHANGES: Final[dict[str, Kind]] = {
    "tool-removed": "breaking",
    "tool-renamed": "breaking",
    "tool-added": "additive",
    "argument-removed": "breaking",
    "argument-added": "additive",
    "argument-added-required": "breaking",
    "argument-required": "breaking",
    "argument-optional": "additive",
    "type-changed": "breaking",
    "type-narrowed": "breaking",
    "type-widened": "additive",
    "enum-narrowed": "breaking",
    "enum-widened": "additive",
    "constraint-narrowed": "breaking",
    "constraint-widened": "additive",
    "schema-changed": "breaking",
    "output-removed": "breaking",
    "output-changed": "breaking",
    "output-added": "additive",
    "default-changed": "breaking",
    "default-added": "additive",
    "hints-weakened": "breaking",
    "hints-changed": "cosmetic",
    "text-changed": "cosmetic",
    "origin-changed": "breaking",
}
"""Every code of `diff` and of `report.origin_changes`, with its effect on callers."""

_PROMISES: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
_ASSUMED: Final = {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True}  # when a tool does not say


@dataclass(frozen=True, slots=True)
class Change:
    """One difference that callers can meet. `argument` is a path such as `address.street`; "" for the tool itself."""

    kind: Kind
    code: str
    tool: str
    argument: str
    message: str


def diff(
    old: Mapping[str, Any], new: Mapping[str, Any], *, renamed: Mapping[str, str] | None = None
) -> tuple[Change, ...]:
    """Return the changes between two manifests, breaking ones first.

    `renamed` maps old tool names to new ones if the caller knows that both are one operation. A removed tool and an
    added one with the same handler also count as one.
    """
    before = {tool["name"]: tool for tool in old.get("tools", ())}
    after = {tool["name"]: tool for tool in new.get("tools", ())}
    same = _renamed(before, after, renamed or {})
    found: list[Change] = []
    for name, tool in before.items():
        target = name if name in after and name not in same else same.get(name, "")
        if not target:
            found.append(_change("tool-removed", name, "", f"{name} is gone"))
            continue
        if target != name:
            found.append(_change("tool-renamed", name, "", f"{name} is now called {target}"))
        found += _tool(target, tool, after[target])
    known = {*before, *same.values()} - {name for name in same if name not in same.values()}
    for name in (name for name in after if name not in known):
        found.append(_change("tool-added", name, "", f"{name} is new"))
    order = {"breaking": 0, "additive": 1, "cosmetic": 2}
    return tuple(sorted(found, key=lambda change: (order[change.kind], change.tool)))


def _renamed(before: Mapping[str, Any], after: Mapping[str, Any], change: Mapping[str, str]) -> dict[str, str]:
    """Old name → new name, each at most once."""
    same = {old: new for old, new in change.items() if old != new and old in before and new in after}
    free = {
        tool.get("handler"): name for name, tool in after.items() if name not in before and name not in same.values()
    }
    for name, tool in before.items():
        if name not in after and name not in same and tool.get("handler") in free and tool.get("handler"):
            same[name] = free.pop(tool["handler"])
    return same


def _change(code: str, tool: str, argument: str, message: str) -> Change:
    return Change(CHANGES[code], code, tool, argument, message)


def _tool(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    texts = [key for key in ("title", "description") if old.get(key) != new.get(key)]
    if texts:
        yield _change("text-changed", name, "", f"{name}: {' and '.join(texts)} changed")
    yield from _hints(name, old.get("annotations") or {}, new.get("annotations") or {})
    yield from _arguments(name, old.get("inputSchema") or {}, new.get("inputSchema") or {})
    yield from _output(name, old.get("outputSchema"), new.get("outputSchema"))


def _output(name: str, old: Any, new: Any) -> Iterator[Change]:
    """Members that are gone or of another type break those who read them; what is no longer described in full does not."""
    if old == new:
        return
    if new is None:
        yield _change("output-removed", name, "", f"{name} no longer says what its results look like")
    elif old is None or not (lost := list(_lost(old, new, ""))):
        yield _change("output-added", name, "", f"{name} says more about its results")
    else:
        yield _change("output-changed", name, "", f"{name}: its results lost or changed {', '.join(lost[:6])}")


def _lost(old: Any, new: Any, path: str) -> Iterator[str]:
    if not isinstance(old, dict) or not isinstance(new, dict) or not new:
        return
    if old.get("type") != new.get("type") and "type" in old:
        yield path or "their type"
    before, after = old.get("properties", {}), new.get("properties", {})
    for member, one in before.items() if after else ():
        inner = f"{path}.{member}" if path else member
        if member not in after:
            yield inner
        else:
            yield from _lost(one, after[member], inner)
    yield from _lost(old.get("items"), new.get("items"), f"{path}[]")


def _hints(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    weaker = [
        key
        for key in changed
        if key in _PROMISES
        and old.get(key, _ASSUMED[key]) == _PROMISES[key]
        and new.get(key, _ASSUMED[key]) != _PROMISES[key]
    ]
    if weaker:
        yield _change("hints-weakened", name, "", f"{name}: no longer as harmless as it said ({', '.join(weaker)})")
    elif changed:
        yield _change("hints-changed", name, "", f"{name}: {', '.join(changed)} changed")


def _arguments(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    needed, needs = set(old.get("required") or ()), set(new.get("required") or ())
    for argument in before:
        if argument not in after:
            yield _change("argument-removed", name, argument, f"{name}: {argument} is gone")
    for argument in after:
        if argument not in before:
            code, word = (
                ("argument-added-required", "new and required") if argument in needs else ("argument-added", "new")
            )
            yield _change(code, name, argument, f"{name}: {argument} is {word}")
            continue
        if argument in needs - needed:
            yield _change("argument-required", name, argument, f"{name}: {argument} is now required")
        if argument in needed - needs:
            yield _change("argument-optional", name, argument, f"{name}: {argument} is no longer required")
        yield from _default(name, argument, before[argument], after[argument])
        definitions = old.get("$defs") or {}, new.get("$defs") or {}
        for code, path, message in schema_changes(before[argument], after[argument], definitions):
            where = argument + path
            yield _change(code, name, where, f"{name}: {where}: {message}")


def _default(name: str, argument: str, old: Any, new: Any) -> Iterator[Change]:
    before = old.get("default") if isinstance(old, dict) else None
    after = new.get("default") if isinstance(new, dict) else None
    if compact(before) == compact(after):
        return
    if before is None:
        yield _change("default-added", name, argument, f"{name}: {argument} is {compact(after)} when it is left out")
    else:
        change = f"{compact(before)} → {compact(after)}" if after is not None else f"{compact(before)} is gone"
        yield _change("default-changed", name, argument, f"{name}: {argument}: default {change}")


# --- How a schema of values that callers send differs from an older one: what is no longer accepted, what is accepted now ---
#
# Gives `(code, path, message)`; the path is below the schema (`.street`, `[]`), the codes are those of `diff.CHANGES`.


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
    yield from _schema_members(before, after, path, defs, above)
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
    """Return a bound as a number: larger is wider, and a missing bound is the widest."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value * sign if known else float("inf")


def _only(old: _Schema, new: _Schema, path: str) -> Iterator[_Found]:
    """Yield the changes of keywords that are compared as a whole; adding one narrows the schema."""
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


def _schema_members(
    old: _Schema, new: _Schema, path: str, defs: _Defs, above: frozenset[tuple[str, str]]
) -> Iterator[_Found]:
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
    if before == after or (keyword == "oneOf" and _opened(old, new)):
        return
    if keyword == "anyOf" and _opened(old, new):
        yield "constraint-widened", path, "may fit several of its forms"
    elif keyword == "anyOf" and before and before < after:
        yield "type-widened", path, f"{keyword} has more branches"
    elif keyword == "anyOf" and after and (after < before or not before):
        yield "type-narrowed", path, f"{keyword} has fewer branches" if before else f"{keyword} is new"
    else:
        yield "schema-changed", path, f"{keyword} changed"


def _opened(old: _Schema, new: _Schema) -> bool:
    return "oneOf" in old and "oneOf" not in new and "anyOf" in new and "anyOf" not in old


def _plain(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a normalized schema, so that only the accepted values are compared.

    Texts are removed, references inlined and keys sorted.
    """
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
            plain[key] = {name: _plain(member, defs, depth + 1) for name, member in sorted(value.items())}
        elif key == "required" and isinstance(value, list):
            plain[key] = sorted(map(str, value))
        elif key not in _TEXTS and key != "default":
            plain[key] = _plain(value, defs, depth + 1)
    return dict(sorted(plain.items()))
