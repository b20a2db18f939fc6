"""What a model is shown of servers behind a gateway: without text that a person does not see. Pure.

The rule is that of `validate` (`security.hidden-text`). Texts for readers, answers, errors, log messages, progress and questions are cleaned.
Names and values that a caller has to repeat cannot be changed, so that items with hidden characters there are not offered.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcpfactory_pipeline.base.text import UNSEEN
from mcpfactory_pipeline.serve.gateway.listing import ServerListing
from mcpfactory_runtime.protocol.jsonrpc import encode

__all__ = ["is_plain_json", "plain_answer", "plain_listing", "plain_text"]

_LONGEST: Final = 20_000  # characters of one text that is shown to models before any call
_LOST: Final = f"hidden characters, or what is beyond {_LONGEST:,} characters left out"
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_EXAMPLES: Final = frozenset({"default", "example", "examples"})  # values that nobody has to repeat
_VALUES: Final = frozenset({"const", "enum", "required", "dependentRequired"})
_WORDS: Final = _VALUES | {
    *("name", "uri", "uriTemplate", "mimeType", "type", "format", "pattern"),
    *("$ref", "$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "contentEncoding", "contentMediaType"),
}
"""Members whose texts programs read: what cannot be changed. All others are for readers."""
_SIGNS: Final = re.compile(rb"\\[ubf]|\x7f")  # how JSON writes what ASCII has of hidden characters


def plain_listing(listing: ServerListing) -> tuple[ServerListing, tuple[str, ...]]:
    """Return what is offered of a server, and what was changed or left out of it, one sentence each."""
    notes: list[str] = []
    instructions = plain_text(listing.instructions)[:_LONGEST]
    if instructions != listing.instructions:
        notes.append(f"instructions: {_LOST}")
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


def is_plain_json(data: bytes) -> bool:
    """Whether JSON has nothing but visible ASCII and white space in it: one look at all of it, and no walk through its parts."""
    return data.isascii() and not _SIGNS.search(data)


def plain_answer(value: Any) -> Any:
    """Return what a server said, whatever it is, without characters that a person does not see. What has none is returned itself."""
    return value if is_plain_json(encode(value)) else _plain_value(value)


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else plain_text(value)
    if isinstance(value, list):
        items = [_plain_value(one) for one in value]
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, dict):
        members = {plain_text(name): _plain_value(one) for name, one in value.items()}
        same = members.keys() == value.keys() and all(members[name] is one for name, one in value.items())
        return value if same else members
    return value


def _plain_items(items: Iterable[Mapping[str, Any]], key: str, notes: list[str]) -> Iterable[dict[str, Any]]:
    for item in items:
        plain = _plain(item)
        name = plain_text(str(item[key]))
        if _is_foul(plain):
            notes.append(f"{name}: not offered, for it has hidden characters in names or values")
            continue
        if plain != item:
            notes.append(f"{name}: {_LOST}")
        yield plain


def _plain(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping) and key in _NAMED:  # the names of arguments, whatever they are
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Mapping):
        kept = {name: one for name, one in value.items() if not (name in _EXAMPLES and _is_foul(one))}
        return {name: one if name in _VALUES | _EXAMPLES else _plain(one, name) for name, one in kept.items()}
    if isinstance(value, list):
        return [_plain(one, key) for one in value]
    if not isinstance(value, str) or key in _WORDS:
        return value
    return plain_text(value)[:_LONGEST]


def _is_foul(value: Any) -> bool:
    """Return True if a value has hidden characters anywhere in it."""
    if isinstance(value, Mapping):
        return any(_is_foul(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_is_foul, value))
    return isinstance(value, str) and UNSEEN.search(value) is not None
