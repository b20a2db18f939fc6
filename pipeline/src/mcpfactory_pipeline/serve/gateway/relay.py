"""Relay tools, resources and prompts of several servers under distinct names.

A name is `<server>_<name>`. The server part never contains `_`, so the first one ends it, and different pairs cannot
get the same name. A hash of the pair is appended if a character had to be replaced, if the whole is too long, or if
its end looks like such a hash.

The rule for hidden characters is that of `validate` (`security.hidden-text`). Texts for readers, answers, errors, log
messages, progress and questions are cleaned. Names and values that a caller has to repeat cannot be changed, so items
with hidden characters in them are not offered.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mcpfactory_pipeline.base.text import UNSEEN
from mcpfactory_pipeline.serve.gateway.listing import ServerListing
from mcpfactory_runtime import Context
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool
from mcpfactory_runtime.server.remote import relay
from mcpfactory_runtime.types import Json

LONGEST: Final = 64  # characters of a name that all clients take
_HASH: Final = 8  # characters
_MARKED: Final = re.compile(r"_[0-9a-f]{8}$")
_SCHEME: Final = "mcp://"


def outer_name(server: str, name: str) -> str:
    """Return the name of a server's tool or prompt behind the gateway."""
    part = re.sub(r"[^A-Za-z0-9-]", "-", server)
    clean = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    whole = f"{part}_{clean}"
    if (part, clean) == (server, name) and len(whole) <= LONGEST and not _MARKED.search(whole):
        return whole
    mark = hashlib.sha256(f"{server}\0{name}".encode()).hexdigest()[:_HASH]
    return f"{whole[: LONGEST - _HASH - 1]}_{mark}"


def outer_uri(server: str, uri: str) -> str:
    """Return the URI, or URI template, of a server's resource behind the gateway."""
    return f"{_SCHEME}{server}/{uri}"


def inner_uri(uri: str) -> tuple[str, str] | None:
    """Return the server of an outer URI, and its inner URI; None if the URI is not the gateway's."""
    if not uri.startswith(_SCHEME):
        return None
    server, slash, inner = uri[len(_SCHEME) :].partition("/")
    return (server, inner) if slash and server and inner else None


def outer_content(server: str, block: Any) -> Any:
    """Return a content block with the URIs of its links and embedded resources rewritten for the gateway."""
    if not isinstance(block, dict):
        return block
    if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
        return {**block, "uri": outer_uri(server, block["uri"])}
    held = block.get("resource")
    if block.get("type") == "resource" and isinstance(held, dict) and isinstance(held.get("uri"), str):
        return {**block, "resource": {**held, "uri": outer_uri(server, held["uri"])}}
    return block


Call = Callable[[str, str, Json, Context], Awaitable[Json]]
"""(server, method, params, who asks) → result."""


def relayed_tool(server: str, wire: Mapping[str, Any], call: Call) -> Tool:
    """Return a server's tool. Arguments are the server's to check; tasks are not passed on."""
    return relay.relayed_tool(wire, partial(call, server), _OuterNames(server))


def relayed_prompt(server: str, wire: Mapping[str, Any], call: Call) -> Prompt:
    """Return a server's prompt."""
    return relay.relayed_prompt(wire, partial(call, server), _OuterNames(server))


def relayed_resource(server: str, wire: Mapping[str, Any], call: Call) -> Resource:
    """Return a server's resource."""
    return relay.relayed_resource(wire, partial(call, server), _OuterNames(server))


def relayed_template(server: str, wire: Mapping[str, Any], call: Call) -> Template:
    """Return a server's resource template. It takes every URI of the server: which of them there are, the server knows."""

    def matches(uri: str) -> bool:
        found = inner_uri(uri)
        return found is not None and found[0] == server

    return relay.relayed_template(wire, partial(call, server), matches, _OuterNames(server))


class _OuterNames:
    """Names and URIs of a server as seen behind the gateway."""

    def __init__(self, server: str) -> None:
        self._server = server

    def name(self, inner: str) -> str:
        return outer_name(self._server, inner)

    def uri(self, inner: str) -> str:
        return outer_uri(self._server, inner)

    def inner_uri(self, uri: str) -> str:
        found = inner_uri(uri)
        assert found is not None, "only URIs of the gateway come here"
        return found[1]

    def content(self, block: Any) -> Any:
        return outer_content(self._server, block)


_LONGEST: Final = 20_000  # characters of one text that is shown to models before any call
_LOST: Final = f"hidden characters, or what is beyond {_LONGEST:,} characters left out"
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_EXAMPLES: Final = frozenset({"default", "example", "examples"})  # for readers only, so they can be dropped
_VALUES: Final = frozenset({"const", "enum", "required", "dependentRequired"})
_WORDS: Final = _VALUES | {
    *("name", "uri", "uriTemplate", "mimeType", "type", "format", "pattern"),
    *("$ref", "$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "contentEncoding", "contentMediaType"),
}
"""Members whose texts programs read: what cannot be changed. All others are for readers."""
_SIGNS: Final = re.compile(rb"\\[ubf]|\x7f")  # how JSON writes what ASCII has of hidden characters


def plain_listing(listing: ServerListing) -> tuple[ServerListing, tuple[str, ...]]:
    """Return a server's sanitized listing, and its changes and omissions, one sentence each."""
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
    """Return True if JSON has only visible ASCII and white space: a single scan instead of a walk."""
    return data.isascii() and not _SIGNS.search(data)


def plain_answer(value: Any) -> Any:
    """Return a server's value without invisible characters; return the same object if unchanged."""
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
    if isinstance(value, Mapping) and key in _NAMED:  # keys are argument names and can be any string
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
