"""XML Objects: how values of a body are written as XML, and which elements of a response are list items.

An answer with one item looks like an answer with an object: only the document tells them apart.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.ir import ApiBody, unescape
from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import LocatedNode, Location, UnresolvedError, composed, properties_of
from mcpfactory_runtime.upstream.operation import Xml, is_xml_name

_LEVELS: Final = 8  # levels of `allOf` to look through for an XML Object
_DEEP: Final = 60  # schemas written inside each other
_KINDS: Final = frozenset({"element", "attribute", "text", "cdata", "none"})
_STRUCTURED: Final = frozenset({"properties", "additionalProperties", "items", "prefixItems"})
_PLAIN: Final = Xml()


def has_structure(reading: Reading, schema: LocatedNode) -> bool:
    """Return True if values of a schema are objects or lists, or can be."""
    for node, _ in composed(reading.references, schema, "allOf", "oneOf", "anyOf"):
        kind = node.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        if "object" in kinds or "array" in kinds or (kind is None and not _STRUCTURED.isdisjoint(node)):
            return True
    return False


def as_xml(reading: Reading, body: ApiBody, schema: LocatedNode) -> ApiBody:
    """Return a body with the XML that its object or list becomes, or as one text if its root has no name.

    Args:
        reading: of the document.
        body: as read so far.
        schema: where its schema stands in the document.
    """
    reader = _XmlReader(reading)
    root = reader.node(schema, 0)
    name = root.name or reader.component(reading.references.follow(*schema).location)
    if name:
        root, shapes = _pruned(replace(root, name=name, kind="element", wrapped=False), reader.shapes())
        return replace(body, xml=root, shapes=shapes)
    message = "the document does not name the root element of this body, so its XML has to be given as one text"
    reading.report(
        "body-xml", schema.location, message, "write `xml: {name: …}` in the schema, or give the schema a name"
    )
    return replace(body, schema={"type": "string", "description": "The body as XML."}, example=None)


class _XmlReader:
    """Reads one body. Each referenced schema becomes a shape once, so that cycles end and nothing is multiplied."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._names: dict[Location, str] = {}
        self._waiting: list[LocatedNode] = []
        self._shapes: dict[str, Xml] = {}
        self._known: dict[tuple[Location, int], dict[str, Any]] = {}

    def shapes(self) -> dict[str, Xml]:
        """Return the members and items of everything that was referred to."""
        while self._waiting:
            target = self._waiting.pop()
            self._shapes[self._names[target.location]] = self._parts(target, 0)
        return self._shapes

    def component(self, location: Location) -> str:
        """Return the name of a schema in the named schemas section; "" for other schemas."""
        parent, _, name = location.pointer.rpartition("/")
        name = unescape(name)
        return name if parent == self._reading.spec.schemas and is_xml_name(name) else ""

    def node(self, schema: LocatedNode, depth: int) -> Xml:
        """Return the XML form of a value of this schema."""
        node, location = schema
        if not isinstance(node, dict) or depth > _DEEP:
            return _PLAIN
        try:
            target = self._reading.references.follow(node, location)
        except UnresolvedError:
            return _PLAIN
        declared = self._declared(schema, _LEVELS)
        kind = declared.get("nodeType")
        array = isinstance(target.node, dict) and (target.node.get("type") == "array" or "items" in target.node)
        own = Xml(
            name=_text(declared, "name"),
            kind=kind if kind in _KINDS else "attribute" if declared.get("attribute") is True else "element",
            namespace=_text(declared, "namespace"),
            prefix=_text(declared, "prefix"),
            wrapped=array and (kind == "element" or declared.get("wrapped") is True),
        )
        if target.location == location:
            parts = self._parts(target, depth + 1)
            return replace(own, members=parts.members, items=parts.items)
        if not own.name and self._reading.spec.xml_nodes and kind is None and not array:
            own = replace(own, name=self.component(target.location))
        return replace(own, shape=self._shape(target))

    def _shape(self, target: LocatedNode) -> str:
        if target.location not in self._names:
            last = unescape(target.location.pointer.rpartition("/")[2]) or "shape"
            taken, name, number = set(self._names.values()), last, 1
            while name in taken:
                number += 1
                name = f"{last}-{number}"
            self._names[target.location] = name
            self._waiting.append(target)
        return self._names[target.location]

    def _parts(self, target: LocatedNode, depth: int) -> Xml:
        node, location = target
        members = tuple(
            (name, self.node(one, depth))
            for name, one in properties_of(self._reading.references, node, location).items()
        )
        items = node.get("items") if isinstance(node, dict) else None
        return Xml(
            members=members, items=self.node(LocatedNode(items, location.down("items")), depth) if items else None
        )

    def _declared(self, schema: LocatedNode, levels: int) -> dict[str, Any]:
        """Return the XML Object of a schema; its own keywords override referenced and combined ones."""
        node, location = schema
        if not isinstance(node, dict) or levels == 0:
            return {}
        if (location, levels) in self._known:
            return self._known[location, levels]
        declared = self._known[location, levels] = {}
        for part in schema.parts("allOf"):
            declared |= self._declared(part, levels - 1)
        if "$ref" in node:
            with suppress(UnresolvedError):  # reported where the schema is translated
                declared |= self._declared(self._reading.references.follow(node, location), levels - 1)
        own = node.get("xml")
        if isinstance(own, dict):
            declared |= {
                key: value for key, value in own.items() if self._usable(key, value, location.down("xml", key))
            }
        elif own is not None:
            self._reading.report("body-xml", location.down("xml"), "`xml` has to be an object; ignored")
        return declared

    def _usable(self, key: str, value: Any, location: Location) -> bool:
        """Names and prefixes are those of XML."""
        if key not in {"name", "prefix"} or value in (None, ""):
            return True
        if isinstance(value, str) and is_xml_name(value) and not (key == "prefix" and ":" in value):
            return True
        self._reading.report("body-xml", location, f"{str(value)[:80]!r} is no {key} that XML can have; ignored")
        return False


def _text(declared: dict[str, Any], key: str) -> str:
    value = declared.get(key)
    return value if isinstance(value, str) else ""


def _pruned(root: Xml, shapes: dict[str, Xml]) -> tuple[Xml, tuple[tuple[str, Xml], ...]]:
    """Return the root and shapes without empty shapes, plain members and unused shapes."""
    while True:
        empty = {name for name, one in shapes.items() if not one.members and one.items in (None, _PLAIN)}
        done = {name: _without(one, empty) for name, one in shapes.items() if name not in empty}
        root = _without(root, empty)
        if done == shapes:
            break
        shapes = done
    used: dict[str, None] = {}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.shape and one.shape not in used:
            used[one.shape] = None
            waiting.append(shapes[one.shape])
        waiting += [member for _, member in one.members] + ([one.items] if one.items else [])
    return root, tuple((name, shapes[name]) for name in sorted(used))


def _without(xml: Xml, empty: set[str]) -> Xml:
    kept = ((name, _without(one, empty)) for name, one in xml.members)
    members = tuple((name, one) for name, one in kept if one not in (_PLAIN, Xml(name=name)))
    items = _without(xml.items, empty) if xml.items is not None else None
    return replace(
        xml, members=members, items=None if items == _PLAIN else items, shape="" if xml.shape in empty else xml.shape
    )


_MOST_SCHEMAS: Final = 1_000
_MOST: Final = 200  # lists of one answer


def xml_lists(reading: Reading, schema: LocatedNode) -> tuple[tuple[str, str], ...]:
    """Return pairs of element names, sorted: the wrapper of a list ("" if absent), and its items.

    Args:
        reading: of the document.
        schema: the response schema, with its location in the document.
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
    """Return the pairs of element names that an array property can produce.

    An unwrapped array has no element and thus no name. If it declares a name anyway, APIs use it for the items.
    """
    own, each = _xml(reading, member), _name(_xml(reading, items))
    if own.get("wrapped") is True:
        wrapper = _name(own) or name
        return {(wrapper, each or wrapper)}
    return {("", each or name), ("", each or _name(own) or name)}


def _items(reading: Reading, schema: LocatedNode) -> LocatedNode | None:
    for node, location in _layers(reading, schema):
        kinds = node.get("type", "array")
        if isinstance(node.get("items"), dict) and "array" in (kinds if isinstance(kinds, list) else [kinds]):
            return LocatedNode(node["items"], location.down("items"))
    return None


def _xml(reading: Reading, schema: LocatedNode) -> dict[str, Any]:
    """Return the XML Object of a schema; the schema's own keywords override inherited ones."""
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
