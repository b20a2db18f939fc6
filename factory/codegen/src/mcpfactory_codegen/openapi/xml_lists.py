"""Which elements of an XML answer are items of a list, by its schema and the XML Objects there (OpenAPI 3.1 §4.8.26).

An answer with one item looks like an answer with an object: only the document tells them apart.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import LocatedNode, Location, UnresolvedError
from mcpfactory_runtime.upstream.names import is_xml_name

__all__ = ["xml_lists"]

_LEVELS: Final = 8  # of `allOf` and `$ref` through which an array is looked for
_MOST_SCHEMAS: Final = 1_000
_MOST: Final = 200  # lists of one answer


def xml_lists(reading: Reading, schema: LocatedNode) -> tuple[tuple[str, str], ...]:
    """Return pairs of element names, sorted: the one around the items of a list, "" where there is none, and the items' own.

    Args:
        reading: of the document.
        schema: of the answer, where it stands in the document.
    """
    found: set[tuple[str, str]] = set()
    waiting, seen = [schema], set[Location]()
    while waiting and len(seen) < _MOST_SCHEMAS and len(found) < _MOST:
        one = waiting.pop()
        if one.location in seen:
            continue
        seen.add(one.location)
        if one.location not in reading.xml_lists:
            reading.xml_lists[one.location] = _within(reading, one)
        pairs, below = reading.xml_lists[one.location]
        found |= pairs
        waiting += below
    return tuple(sorted(found))


def _within(reading: Reading, schema: LocatedNode) -> tuple[frozenset[tuple[str, str]], tuple[LocatedNode, ...]]:
    """Return the lists among the properties of a schema, and the schemas below it."""
    pairs: set[tuple[str, str]] = set()
    below: list[LocatedNode] = []
    for part in _layers(reading, schema):
        properties = part.node.get("properties")
        for name, node in properties.items() if isinstance(properties, dict) else ():
            member = LocatedNode(node, part.location.down("properties", name))
            below.append(member)
            if (items := _items(reading, member)) is not None:
                pairs |= _pairs(reading, name, member, items)
        if isinstance(part.node.get("items"), dict):
            below.append(LocatedNode(part.node["items"], part.location.down("items")))
    return frozenset(pairs), tuple(below)


def _pairs(reading: Reading, name: str, member: LocatedNode, items: LocatedNode) -> set[tuple[str, str]]:
    """Return what a property that is an array writes.

    An unwrapped array has no element, and so no name; where it has one all the same, APIs write the items so.
    """
    own, each = _xml(reading, member), _name(_xml(reading, items))
    if own.get("wrapped") is True:
        wrapper = _name(own) or name
        return {(wrapper, each or wrapper)}
    return {("", each or name), ("", each or _name(own) or name)}


def _items(reading: Reading, schema: LocatedNode) -> LocatedNode | None:
    """Return the schema of the items of an array; None of anything else."""
    for node, location in _layers(reading, schema):
        kinds = node.get("type", "array")
        if isinstance(node.get("items"), dict) and "array" in (kinds if isinstance(kinds, list) else [kinds]):
            return LocatedNode(node["items"], location.down("items"))
    return None


def _xml(reading: Reading, schema: LocatedNode) -> dict[str, Any]:
    """Return the XML Object of a schema; what stands nearer goes first."""
    declared: dict[str, Any] = {}
    for node, _ in _layers(reading, schema):
        if isinstance(node.get("xml"), dict):
            declared = {**node["xml"], **declared}
    return declared


def _name(xml: dict[str, Any]) -> str:
    name = xml.get("name")
    return name if isinstance(name, str) and is_xml_name(name) else ""


def _layers(reading: Reading, schema: LocatedNode) -> list[LocatedNode]:
    """Return a schema, what it refers to, and the parts of its `allOf`, those among them that are objects, each once."""
    found: dict[Location, LocatedNode] = {}
    waiting = [(schema, _LEVELS)]
    while waiting:
        one, left = waiting.pop(0)
        if not isinstance(one.node, dict) or left == 0 or one.location in found:
            continue
        found[one.location] = one
        if "$ref" in one.node:
            with suppress(UnresolvedError):  # reported where the schema is translated
                waiting.append((reading.references.follow(*one), left - 1))
        waiting += [(part, left - 1) for part in one.parts("allOf")]
    return list(found.values())
