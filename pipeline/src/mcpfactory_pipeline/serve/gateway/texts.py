"""What a model is shown of servers behind a gateway: without text that a person does not see, or that gives the model orders. Pure.

The rules are those of `validate` (`security.hidden-text`, `security.orders`). Titles and descriptions are cleaned; what a caller has to
repeat (names, values) cannot be changed, so that what has hidden characters there is not offered. Answers, errors, log messages,
progress and questions lose hidden characters only: whether a value reads like an order is for the client's person to see.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.describe.suspicion import ORDERS
from mcpfactory_pipeline.base.text import UNSEEN
from mcpfactory_pipeline.serve.gateway.listing import ServerListing

__all__ = ["plain_answer", "plain_listing", "plain_text"]

_ORDER: Final = re.compile("|".join(f"(?:{pattern})" for pattern in ORDERS), re.IGNORECASE | re.DOTALL)
_LONGEST: Final = 20_000  # characters of one text that are searched
_LEFT_OUT: Final = "(Left out by the gateway: the text reads like an order to the model.)"
_TEXTS: Final = frozenset({"title", "description"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "const", "enum", "example", "examples"})


def plain_listing(listing: ServerListing) -> tuple[ServerListing, tuple[str, ...]]:
    """Return what is offered of a server, and what was changed or left out of it, one sentence each."""
    notes: list[str] = []
    instructions = plain_text(listing.instructions)
    if _ORDER.search(instructions[:_LONGEST]):
        instructions = ""
    if instructions != listing.instructions:
        notes.append("instructions: hidden characters or orders to the model left out")
    found = replace(
        listing,
        tools=tuple(_plain_items(listing.tools, "name", notes)),
        resources=tuple(_plain_items(listing.resources, "uri", notes)),
        templates=tuple(_plain_items(listing.templates, "uriTemplate", notes)),
        prompts=tuple(_plain_items(listing.prompts, "name", notes)),
        instructions=instructions,
    )
    return found, tuple(notes)


def plain_text(text: str) -> str:
    """Return a text without characters that a person does not see."""
    return UNSEEN.sub("", text)


def plain_answer(value: Any) -> Any:
    """Return what a server said, whatever it is, without characters that a person does not see. What has none is returned itself."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else plain_text(value)
    if isinstance(value, list):
        items = [plain_answer(one) for one in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, dict):
        members = {plain_text(name): plain_answer(one) for name, one in value.items()}
        same = members.keys() == value.keys() and all(members[name] is one for name, one in value.items())
        return value if same else members
    return value


def _plain_items(items: Iterable[Mapping[str, Any]], key: str, notes: list[str]) -> Iterable[dict[str, Any]]:
    for item in items:
        plain = _plain(item)
        name = plain_text(str(item[key]))
        if _has_hidden(plain):
            notes.append(f"{name}: not offered, for it has hidden characters in names or values")
            continue
        if plain != item:
            notes.append(f"{name}: hidden characters or orders to the model left out")
        yield plain


def _plain(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping) and key in _NAMED:  # the names of arguments, whatever they are
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Mapping):
        return {name: one if name in _VALUES else _plain(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, str) or key not in _TEXTS:
        return value
    text = plain_text(value)
    return _LEFT_OUT if _ORDER.search(text[:_LONGEST]) else text


def _has_hidden(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_hidden(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_has_hidden, value))
    return isinstance(value, str) and UNSEEN.search(value) is not None
