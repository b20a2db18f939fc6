"""Comparison of two manifests: the changes that affect callers of a server's tools. Pure.

A breaking change means that existing calls can fail or have another meaning. An additive change permits new calls and
keeps existing calls working. A cosmetic change concerns only texts and hints. Differences in keywords that cannot be
compared (`oneOf`, `not`, `if` …) count as breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mcpfactory_runtime.schemas.diff import property_changes, removed_or_retyped_properties
from mcpfactory_runtime.types import Json

Kind = Literal["breaking", "additive", "cosmetic"]

_BREAKING: Final = """
    tool-removed tool-renamed argument-removed argument-added-required argument-required type-changed type-narrowed
    enum-narrowed constraint-narrowed schema-changed output-removed output-changed default-changed hints-weakened
    origin-changed
"""
_ADDITIVE: Final = """
    tool-added argument-added argument-optional type-widened enum-widened constraint-widened output-added default-added
"""
CHANGES: Final[dict[str, Kind]] = {
    **dict.fromkeys(_BREAKING.split(), "breaking"),
    **dict.fromkeys(_ADDITIVE.split(), "additive"),
    "hints-changed": "cosmetic",
    "text-changed": "cosmetic",
}
"""Every code of `diff` and of `report_file.credential_origin_changes`, with its effect on callers."""

_PROMISES: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
_ASSUMED: Final = {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True}  # defaults of MCP


@dataclass(frozen=True, slots=True)
class Change:
    """One difference that affects callers.

    `argument` is a path such as `address.street`, or "" for a difference of the tool itself.
    """

    kind: Kind
    code: str
    tool: str
    argument: str
    message: str


def diff(
    old: Mapping[str, Any], new: Mapping[str, Any], *, renamed: Mapping[str, str] | None = None
) -> tuple[Change, ...]:
    """Return the changes between two manifests, breaking changes first.

    `renamed` maps old tool names to new names. A removed tool and an added tool with the same handler also count as a
    rename.
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
    """Yield the changes of an output schema. Removed members and changed types break callers."""
    if old == new:
        return
    if new is None:
        yield _change("output-removed", name, "", f"{name} no longer has an output schema")
    elif old is None or not (lost := list(removed_or_retyped_properties(old, new))):
        yield _change("output-added", name, "", f"{name} has a more detailed output schema")
    else:
        yield _change("output-changed", name, "", f"{name}: its results lost or changed {', '.join(lost[:6])}")


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
        yield _change(
            "hints-weakened", name, "", f"{name}: hints no longer promise a harmless tool ({', '.join(weaker)})"
        )
    elif changed:
        yield _change("hints-changed", name, "", f"{name}: {', '.join(changed)} changed")


def _arguments(name: str, old: Json, new: Json) -> Iterator[Change]:
    for code, path, message in property_changes(old, new):
        joint = " " if message.startswith("is ") else ": "
        yield _change(code, name, path, f"{name}: {path}{joint}{message}")
