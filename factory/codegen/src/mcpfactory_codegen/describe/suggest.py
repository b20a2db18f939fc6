"""What to do about an API that is too large for a list of tools: its groups, with what each costs and how to select it. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.text import VERSION

__all__ = ["BOUND", "Group", "suggest"]

BOUND: Final = 20_000
"""Tokens of a tool list above which groups are suggested: a tenth of what common models can read at once."""

_MOST: Final = 15
_SHARE: Final = 0.9  # a group of nearly everything divides nothing


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that belong together, what they cost, and what to type to have only them."""

    name: str
    tools: int
    tokens: int
    flag: str


def suggest(api: Api, tools: Sequence[ApiTool], bound: int = BOUND) -> tuple[Group, ...]:
    """Return the largest groups first; none when all tools together stay within the bound, or nothing divides them.

    Groups are the document's tags, where it has some that divide it; otherwise the beginnings of its paths.
    """
    if sum(tool.tokens for tool in tools) <= bound:
        return ()
    cost = {tool.key: tool.tokens for tool in tools}
    operations = [operation for operation in api.operations if operation.key in cost]
    prefixes = _prefixes(operations)
    for names, flag in (
        (lambda operation: operation.tags, lambda tag: f"--include-tag {shlex.quote(tag)}"),
        (lambda operation: prefixes[operation.key], lambda path: f"--include-path {shlex.quote(f'{path}/**')}"),
    ):
        groups = _groups(operations, cost, names, flag)
        if len(groups) > 1 and sum(group.tools for group in groups) >= len(operations) / 2:
            return tuple(groups[:_MOST])
    return ()


def _groups(
    operations: Iterable[ApiOperation],
    cost: Mapping[str, int],
    names: Callable[[ApiOperation], Iterable[str]],
    flag: Callable[[str], str],
) -> list[Group]:
    count: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for operation in operations:
        for name in names(operation):
            count[name] += 1
            tokens[name] += cost[operation.key]
    found = [Group(name, count[name], tokens[name], flag(name)) for name in count if count[name] < _SHARE * len(cost)]
    return sorted(found, key=lambda group: (-group.tokens, group.name))


def _prefixes(operations: Sequence[ApiOperation]) -> dict[str, tuple[str, ...]]:
    """Return the beginning of each path up to the first segment that says something and divides the paths."""
    paths = {operation.key: operation.path.strip("/").split("/") for operation in operations}
    sharing = Counter("/".join(path[:end]) for path in paths.values() for end in range(1, len(path) + 1))
    found: dict[str, tuple[str, ...]] = {}
    for key, path in paths.items():
        beginnings = (
            "/".join(path[:end])
            for end, segment in enumerate(path, 1)
            if not segment.startswith("{") and not VERSION.match(segment)
        )
        dividing = next((one for one in beginnings if sharing[one] < _SHARE * len(paths)), None)
        found[key] = () if dividing is None else (f"/{dividing}",)
    return found
