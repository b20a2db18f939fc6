"""What a change of a server's tools means for those who call them: pure, on two manifests.

breaking   a call that worked may fail, or mean something else
additive   everything that worked works, and more does
cosmetic   only texts and hints changed

Below an argument, what cannot be compared keyword by keyword (`oneOf`, `not`, `if` …) and differs counts as breaking:
a promise that cannot be checked is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mcpfactory_codegen.servers.schema_diff import schema_changes
from mcpfactory_codegen.text import compact

__all__ = ["CHANGES", "Change", "Kind", "diff"]

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
}
"""Every code that `diff` gives, and what it means for callers."""

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
    """Return what changed between two manifests, the breaking changes first.

    `renamed` maps old tool names to new ones where the caller knows that both are one operation; besides, a tool
    that vanished and one that appeared with the same handler are one.
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
    found += [_change("tool-added", name, "", f"{name} is new") for name in after if name not in known]
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
    """Members that are gone or of another type break those who read them; what is no longer told in full does not."""
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
