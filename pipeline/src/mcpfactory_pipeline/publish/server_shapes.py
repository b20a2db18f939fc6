"""The shapes of a `server.json`: which fields an object may have and of which kind; its objects with their places; what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["KINDS", "LIST", "OBJECT", "SHAPES", "Found", "Place", "Rule", "places"]

TEXT: Final = "a text"
TRUTH: Final = "true or false"
LIST: Final = "a list"
OBJECT: Final = "an object"

# Shape → field → kind. A kind with a colon is a list or a map of another shape; `*` behind a field means that it is needed.
_INPUT: Final = {
    "description": TEXT, "isRequired": TRUTH, "isSecret": TRUTH, "format": TEXT, "default": TEXT, "placeholder": TEXT,
    "choices": LIST, "value": TEXT,
}  # fmt: skip
_TRANSPORT: Final = {"type*": TEXT, "url": TEXT, "headers": "list:setting"}
SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "server": {
        "$schema*": TEXT, "name*": TEXT, "description*": TEXT, "version*": TEXT, "title": TEXT, "websiteUrl": TEXT,
        "repository": "one:repository", "icons": "list:icon", "packages": "list:package", "remotes": "list:remote", "_meta": OBJECT,
    },
    "repository": {"url*": TEXT, "source*": TEXT, "subfolder": TEXT, "id": TEXT},
    "icon": {"src*": TEXT, "mimeType": TEXT, "sizes": LIST, "theme": TEXT},
    "package": {
        "registryType*": TEXT, "identifier*": TEXT, "transport*": "one:transport", "version": TEXT, "registryBaseUrl": TEXT,
        "fileSha256": TEXT, "runtimeHint": TEXT, "runtimeArguments": "list:argument", "packageArguments": "list:argument",
        "environmentVariables": "list:setting",
    },
    "transport": _TRANSPORT,
    "remote": {**_TRANSPORT, "url*": TEXT, "variables": "map:input"},
    "argument": {"type*": TEXT, "name": TEXT, "valueHint": TEXT, "isRepeated": TRUTH, **_INPUT, "variables": "map:input"},
    "setting": {"name*": TEXT, **_INPUT, "variables": "map:input"},
    "input": _INPUT,
}  # fmt: skip
KINDS: Final[Mapping[str, type]] = {TEXT: str, TRUTH: bool, LIST: list, OBJECT: dict}


@dataclass(frozen=True, slots=True)
class Place:
    """An object of the document: its shape, where it is, and the object that it belongs to."""

    shape: str
    path: str
    value: Mapping[str, Any]
    parent: Mapping[str, Any]

    def text(self, field: str) -> str:
        """Return a text field; "" when it is absent or no text."""
        value = self.value.get(field)
        return value if isinstance(value, str) else ""

    def at(self, field: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{field}" if self.path else field


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found: its id, where, and what is wrong."""

    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


Finder = Callable[[Place], Iterator[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `find` gives (path, message) for what is wrong in an object of the rule's shapes (words; "" is every one).

    `source` says who asks for it: `schema`, `registry` (which refuses what the schema allows) or `mcpfactory` (which refuses
    what nobody could use).
    """

    id: str
    shapes: str
    source: str
    words: str
    find: Finder


def places(shape: str, path: str, value: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the object and every object in it, in the order of the shapes."""
    place = Place(shape, path, value, parent)
    yield place
    for field, kind in SHAPES[shape].items():
        name = field.rstrip("*")
        how, _, child = kind.partition(":")
        inside = value.get(name)
        if how == "one" and isinstance(inside, dict):
            yield from places(child, place.at(name), inside, value)
        elif how == "list" and isinstance(inside, list):
            for number, one in enumerate(inside):
                if isinstance(one, dict):
                    yield from places(child, f"{place.at(name)}[{number}]", one, value)
        elif how == "map" and isinstance(inside, dict):
            for key, one in inside.items():
                if isinstance(one, dict):
                    yield from places(child, f"{place.at(name)}.{key}", one, value)
