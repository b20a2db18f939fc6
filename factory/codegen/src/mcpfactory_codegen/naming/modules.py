"""Module names: one module a group of operations, by first tag or else by first word of the path.

A group of more than `MOST_OPERATIONS` operations is divided by the next words of its paths, and where those do not tell enough
apart by digests of method and path, so that a module stays readable and no operation moves because of the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.text import VERSION, digest, identifier, shorten, words

__all__ = ["MOST_OPERATIONS", "name_modules"]


MOST_OPERATIONS: Final = 60
_MODULE_LIMIT: Final = 48
_DEPTH: Final = 6
_RESERVED_MODULES: Final = frozenset(
    {"con", "aux", "nul", "prn", "com1", "lpt1"}
)  # no file of Windows may be called so


def name_modules(operations: Sequence[ApiOperation]) -> dict[str, str]:
    """Return the module of every operation, by its key: ASCII identifiers, no keywords."""
    groups: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        groups[_group(operation)].append(operation)
    modules: dict[str, str] = {}
    for group in sorted(groups):
        _divide(group, groups[group], 0, modules, frozenset(groups))
    return modules


def _group(operation: ApiOperation) -> str:
    text = next(iter(operation.tags), "")
    if not words(text):
        literal = _literal(operation.path)
        text = literal[0] if literal else (text or "default")
    return _module(text)


def _module(text: str) -> str:
    name = identifier(text, prefix="group", reserved=_RESERVED_MODULES)
    return name if len(name) <= _MODULE_LIMIT else shorten(words(name), _MODULE_LIMIT, text)


def _literal(path: str) -> list[str]:
    return [part for part in path.split("/") if words(part) and not part.startswith("{") and not VERSION.match(part)]


def _divide(
    group: str, operations: list[ApiOperation], depth: int, modules: dict[str, str], others: frozenset[str]
) -> None:
    if len(operations) <= MOST_OPERATIONS:
        modules |= {operation.key: group for operation in operations}
        return
    parts: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        literal = _literal(operation.path)
        if depth < _DEPTH:
            word = literal[depth] if depth < len(literal) else ""
        else:
            word = digest(operation.key, depth - _DEPTH + 1)
        parts[word].append(operation)
    for word in sorted(parts):
        redundant = not word or words(word) == () or words(group)[-len(words(word)) :] == words(word)
        name = group if redundant else _module(f"{group} {word}")
        if name != group and name in others:
            name = _module(f"{group} {word} {digest(group + '/' + word, 6)}")
        if len(parts) == 1 or (name == group and len(parts[word]) > MOST_OPERATIONS):
            _divide(group, parts[word], depth + 1, modules, others)
        else:
            _divide(name, parts[word], depth + 1, modules, others)
