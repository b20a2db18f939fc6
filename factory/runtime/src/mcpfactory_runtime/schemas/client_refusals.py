"""Checks of a list of tools against the limits of a client (`client_limits`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mcpfactory_runtime.schemas.client_limits import LIMITS, Limit
from mcpfactory_runtime.schemas.walk import Steps, items_schema_of, pointer, properties_of, required_of, types_of, walk
from mcpfactory_runtime.types import Json


class Refusal(NamedTuple):
    """A part of a tool that a client refuses. `place` is a JSON pointer, and `tool` is "" for the whole list."""

    tool: str
    place: str
    found: str
    limit: Limit


_LOOKAROUND: Final = re.compile(r"\(\?<?[=!]")
_POSIX: Final = re.compile(r"\[:\^?[a-z]+:\]")


def find_refusals(tools: Sequence[Json], client: str) -> Iterator[Refusal]:
    """Yield what a client of `client_limits.CLIENTS` would refuse in a list of Tool objects; skip malformed tools."""
    tools = [one for one in tools if isinstance(one.get("name"), str) and isinstance(one.get("inputSchema"), dict)]
    for limit in LIMITS:
        if limit.client != client:
            continue
        if limit.subject == "tools" and len(tools) > limit.value:
            yield Refusal("", "", f"{len(tools)} tools", limit)
        for tool in tools:
            for place, found in _faults(tool, limit.subject, limit.value):
                yield Refusal(tool["name"], place, found, limit)


@lru_cache(maxsize=4096)
def pattern_faults(pattern: str, faulty: frozenset[str]) -> tuple[str, ...]:
    """Return the faults of a pattern that are in `faulty`."""
    found = {
        "lookaround": _LOOKAROUND.search(pattern) is not None,
        "POSIX classes": _POSIX.search(pattern) is not None,
        "missing ^ or $": not (pattern.startswith("^") and pattern.endswith("$")),
        "syntax that Python lacks": not _compiles(pattern),
    }
    return tuple(fault for fault, present in found.items() if present and fault in faulty)


def enum_faults(values: Sequence[Any], faulty: frozenset[str]) -> tuple[str, ...]:
    """Return the faults of the values of `enum` that are in `faulty`."""
    kinds = {type(value) for value in values}
    found = {
        "empty texts": "" in values,
        "numbers": not kinds.isdisjoint({int, float}),
        "other or mixed types": kinds not in ({str}, {int}, {float}),
    }
    return tuple(fault for fault, present in found.items() if present and fault in faulty)


def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warning "possible nested set" is harmless
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _faults(tool: Json, subject: str, value: Any) -> Iterator[tuple[str, str]]:
    name, root = str(tool["name"]), tool["inputSchema"]
    description = str(tool.get("description", ""))
    if subject == "tool_name" and not re.fullmatch(value, name):
        yield "/name", name
    elif subject == "tool_name_length" and len(name) > value:
        yield "/name", f"{len(name)} characters"
    elif subject == "tool_description" and len(description) > value:
        yield "/description", f"{len(description)} characters"
    elif subject == "root":
        yield from (("/inputSchema", keyword) for keyword in sorted(value & root.keys()))
    elif subject == "property_name":
        names = (name for name in properties_of(root) if not re.fullmatch(value, name))
        yield from ((f"/inputSchema{pointer(('properties', name))}", name) for name in names)
    elif subject in _SCHEMA_FAULTS:
        for steps, part in walk(root):
            if found := _SCHEMA_FAULTS[subject](part, value):
                yield f"/inputSchema{pointer(steps)}", found
    elif subject == "levels":
        levels: dict[Steps, int] = {}
        for steps, _ in walk(root):  # the parent is one step above, or two steps if a keyword has several schemas
            levels[steps] = 1 + levels.get(steps[:-1], levels.get(steps[:-2], 0))
            if levels[steps] > value:
                yield f"/inputSchema{pointer(steps)}", f"level {levels[steps]}"


def _enum_fault(part: Mapping[str, Any], faulty: frozenset[str]) -> str:
    values = part.get("enum")
    found = enum_faults(values, faulty) if isinstance(values, list) else ()
    return f"{' and '.join(found)} in {values!r}"[:80] if found else ""


def _pattern_fault(part: Mapping[str, Any], faulty: frozenset[str]) -> str:
    found = [part.get("pattern"), *(part.get("patternProperties") or ())]
    faults = ((one, pattern_faults(one, faulty)) for one in found if isinstance(one, str))
    return "; ".join(f"{' and '.join(fault)} in {one}" for one, fault in faults if fault)


def _required_fault(part: Mapping[str, Any], _: bool) -> str:
    missing = [name for name in required_of(part) if name not in properties_of(part)]
    return f"required, but not declared: {', '.join(missing)}" if missing else ""


_SCHEMA_FAULTS: Final[Mapping[str, Callable[[Mapping[str, Any], Any], str]]] = {
    "combinators": lambda part, _: ", ".join(sorted({"anyOf", "oneOf"} & part.keys()) if "properties" in part else ()),
    "references": lambda part, _: str(part.get("$ref", "")),
    "types": lambda part, _: f"type {part['type']}" if isinstance(part.get("type"), list) else "",
    "items": lambda part, _: (
        "array without items" if "array" in types_of(part) and not isinstance(items_schema_of(part), Mapping) else ""
    ),
    "enum": _enum_fault,
    "pattern": _pattern_fault,
    "required": _required_fault,
}
