"""Names in a server of several documents: each document is named by itself, and where two would share a name the label leads.

`list_services` of the documents messaging and verify becomes `messaging_list_services` and `verify_list_services`. The document
without a label, which was there before the others, keeps its names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.modules import name_modules
from mcpfactory_codegen.naming.tools import TOOL_LIMIT, name_tools
from mcpfactory_codegen.text import digest, identifier, shorten, words

__all__ = ["name_labelled_modules", "name_labelled_tools"]

_MODULE_LIMIT: Final = 64


def name_labelled_tools(operations: Sequence[ApiOperation], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return the tool name of every operation, by its key, as `name_tools` for each document; unique over all of them."""
    plain = _each(operations, lambda some: name_tools(some, pinned))
    labels = {operation.key: operation.label for operation in operations}
    if not any(labels.values()):
        return plain
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key in sorted(plain, key=lambda key: (pinned.get(key) != plain[key], bool(labels[key]), key)):
        stays = pinned.get(key) == plain[key] or not labels[key]
        if stays and plain[key].lower() not in taken:
            names[key] = plain[key]
            taken.add(plain[key].lower())
    # A name that two documents have without what was pinned tells nothing, even where one of them got another long ago.
    taken |= _shared(_each(operations, lambda some: name_tools(some, {})).values())
    waiting = [(key, _candidates(key, labels[key], plain[key])) for key in plain if key not in names]
    while waiting:
        proposals = [(key, next(candidates), candidates) for key, candidates in waiting]
        claims = Counter(name.lower() for _, name, _ in proposals)
        free = {name for name, count in claims.items() if count == 1 and name not in taken}
        names |= {key: name for key, name, _ in proposals if name.lower() in free}
        waiting = [(key, candidates) for key, name, candidates in proposals if name.lower() not in free]
        taken |= claims.keys()
    return names


def _fitted(parts: Sequence[str], kept: int) -> str:
    """Join words by `_`. Over the limit, words behind the first `kept` are dropped, the first of them first: the last say most."""
    rest = list(parts)
    while len("_".join(rest)) > TOOL_LIMIT and len(rest) > kept + 1:
        rest.pop(kept)
    return "_".join(rest)[:TOOL_LIMIT].rstrip("_")


def _shared(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(name.lower() for name in names).items() if count > 1}


def _candidates(key: str, label: str, plain: str) -> Iterator[str]:
    """Proposals of one operation: its name, with the label, and with a digest; endless."""
    yield plain
    parts = [*words(label), *plain.split("_")]
    yield _fitted(parts, len(words(label)) + 1)
    length = 8
    while True:
        yield shorten(parts, TOOL_LIMIT - length - 1, key) + "_" + digest(key, length)
        length += 2


def name_labelled_modules(operations: Sequence[ApiOperation]) -> dict[str, str]:
    """Return the module of every operation, by its key, as `name_modules` for each document, with the label in front."""
    labels = {operation.key: operation.label for operation in operations}
    plain = _each(operations, name_modules)
    return {key: _led(labels[key], module) if labels[key] else module for key, module in plain.items()}


def _led(label: str, module: str) -> str:
    lead, parts = words(label), words(module)
    name = identifier(module if parts[: len(lead)] == lead else f"{label} {module}", prefix="group")
    return name if len(name) <= _MODULE_LIMIT else shorten(words(name), _MODULE_LIMIT, name)


def _each(
    operations: Sequence[ApiOperation], name: Callable[[Sequence[ApiOperation]], dict[str, str]]
) -> dict[str, str]:
    """Return what a function gives for the operations of each document by itself."""
    documents: dict[str, list[ApiOperation]] = defaultdict(list)
    for operation in operations:
        documents[operation.label].append(operation)
    return {key: found for some in documents.values() for key, found in name(some).items()}
