"""XML form of the values of a body, and list items in XML responses.

In XML, a list with one item looks like an object, so that only the API document distinguishes lists and objects.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.ir import ApiBody
from mcpfactory_codegen.openapi.context import Node
from mcpfactory_codegen.openapi.references import Location, UnresolvedError
from mcpfactory_codegen.sources.translation_helpers import text
from mcpfactory_runtime.schemas.walk import unescape
from mcpfactory_runtime.upstream.operation import Xml, is_xml_name

_LEVELS: Final = 8  # maximum levels of `allOf` and references to search for an XML Object
_DEEP: Final = 60  # maximum depth of nested schemas
_KINDS: Final = frozenset({"element", "attribute", "text", "cdata", "none"})
_STRUCTURED: Final = frozenset({"properties", "additionalProperties", "items", "prefixItems"})
_PLAIN: Final = Xml()


def is_object_or_array(schema: Node) -> bool:
    """Return True if values of a schema can be objects or lists."""
    for part in schema.composed("allOf", "oneOf", "anyOf"):
        kind = part.value.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        if "object" in kinds or "array" in kinds or (kind is None and not _STRUCTURED.isdisjoint(part.value)):
            return True
    return False


def with_xml_form(body: ApiBody, schema: Node) -> ApiBody:
    """Return a body with the XML form of its value, or with one text argument for an unnamed root element."""
    reader = _XmlReader()
    root = reader.node(schema, 0)
    name = root.name or _component(schema.follow())
    if name:
        root, shapes = _pruned(replace(root, name=name, kind="element", wrapped=False), reader.shapes())
        return replace(body, xml=root, shapes=shapes)
    message = "the root element of this body has no name, so the body is one text argument with XML"
    schema.report("body-xml", message, "write `xml: {name: …}` in the schema, or give the schema a name")
    return replace(body, schema={"type": "string", "description": "The body as XML."}, example=None)


def _component(schema: Node) -> str:
    """Return the name of a schema in the named schemas section, or "" for other schemas."""
    parent, _, name = schema.location.pointer.rpartition("/")
    name = unescape(name)
    return name if parent == schema.context.spec.schemas and is_xml_name(name) else ""


class _XmlReader:
    """Reader of one body, with one shape for each referenced schema, so that cyclic schemas cause no endless loop."""

    def __init__(self) -> None:
        self._names: dict[Location, str] = {}
        self._waiting: list[Node] = []
        self._shapes: dict[str, Xml] = {}

    def shapes(self) -> dict[str, Xml]:
        """Return the members and items of all referenced schemas."""
        while self._waiting:
            target = self._waiting.pop()
            self._shapes[self._names[target.location]] = self._parts(target, 0)
        return self._shapes

    def node(self, schema: Node, depth: int) -> Xml:
        """Return the XML form of a value of this schema."""
        if not isinstance(schema.value, dict) or depth > _DEEP:
            return _PLAIN
        try:
            target = schema.follow()
        except UnresolvedError:
            return _PLAIN
        declared = _declared(schema, report=True)
        kind = declared.get("nodeType")
        array = target.table.get("type") == "array" or "items" in target.table
        own = Xml(
            name=text(declared, "name"),
            kind=kind if kind in _KINDS else "attribute" if declared.get("attribute") is True else "element",
            namespace=text(declared, "namespace"),
            prefix=text(declared, "prefix"),
            wrapped=array and (kind == "element" or declared.get("wrapped") is True),
        )
        if target.location == schema.location:
            parts = self._parts(target, depth + 1)
            return replace(own, members=parts.members, items=parts.items)
        if not own.name and schema.context.spec.xml_nodes and kind is None and not array:
            own = replace(own, name=_component(target))
        return replace(own, shape=self._shape(target))

    def _shape(self, target: Node) -> str:
        if target.location not in self._names:
            last = unescape(target.location.pointer.rpartition("/")[2]) or "shape"
            taken, name, number = set(self._names.values()), last, 1
            while name in taken:
                number += 1
                name = f"{last}-{number}"
            self._names[target.location] = name
            self._waiting.append(target)
        return self._names[target.location]

    def _parts(self, target: Node, depth: int) -> Xml:
        members = tuple((name, self.node(one, depth)) for name, one in target.properties().items())
        items = target.at("items")
        return Xml(members=members, items=self.node(items, depth) if items.value else None)


def _is_usable(key: str, written: Node) -> bool:
    value = written.value
    if key not in {"name", "prefix"} or value in (None, ""):
        return True
    if isinstance(value, str) and is_xml_name(value) and not (key == "prefix" and ":" in value):
        return True
    written.report("body-xml", f"{str(value)[:80]!r} is not a valid {key} in XML; ignored")
    return False


def _pruned(root: Xml, shapes: dict[str, Xml]) -> tuple[Xml, tuple[tuple[str, Xml], ...]]:
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


_MOST_SCHEMAS: Final = 1_000  # maximum schemas to read for one response
_MOST: Final = 200  # maximum lists in one response


def xml_lists(schema: Node) -> tuple[tuple[str, str], ...]:
    """Return the lists in responses of a schema.

    A list is a pair of element names: the wrapper or "", and the item.
    """
    found: set[tuple[str, str]] = set()
    waiting, seen, known = [schema], set[Location](), schema.context.xml_lists
    while waiting and len(seen) < _MOST_SCHEMAS and len(found) < _MOST:
        one = waiting.pop()
        if one.location in seen:
            continue
        seen.add(one.location)
        if one.location not in known:
            known[one.location] = _within(one)
        pairs, below = known[one.location]
        found |= pairs
        waiting += below
    return tuple(sorted(found))


def _within(schema: Node) -> tuple[frozenset[tuple[str, str]], tuple[Node, ...]]:
    pairs: set[tuple[str, str]] = set()
    below: list[Node] = []
    for part in _layers(schema):
        for name, member in part.at("properties").members():
            below.append(member)
            if (items := _items(member)) is not None:
                pairs |= _pairs(name, member, items)
        if isinstance(part.value.get("items"), dict):
            below.append(part.at("items"))
    return frozenset(pairs), tuple(below)


def _pairs(name: str, member: Node, items: Node) -> set[tuple[str, str]]:
    """Return the pairs of element names that an array property can produce.

    An unwrapped array has no element, and therefore no element name. If an unwrapped array declares a name, APIs use
    the name for the items.
    """
    own, each = _declared(member), _name(_declared(items))
    if own.get("wrapped") is True:
        wrapper = _name(own) or name
        return {(wrapper, each or wrapper)}
    return {("", each or name), ("", each or _name(own) or name)}


def _items(schema: Node) -> Node | None:
    for part in _layers(schema):
        kinds = part.value.get("type", "array")
        if isinstance(part.value.get("items"), dict) and "array" in (kinds if isinstance(kinds, list) else [kinds]):
            return part.at("items")
    return None


def _name(xml: dict[str, Any]) -> str:
    name = xml.get("name")
    return name if isinstance(name, str) and is_xml_name(name) else ""


def _declared(schema: Node, *, report: bool = False) -> dict[str, Any]:
    """Return the XML Object of a schema. Keywords of the schema override inherited keywords.

    `report` means that bad names are reported and omitted.
    """
    declared: dict[str, Any] = {}
    for layer in _layers(schema):
        own = layer.at("xml")
        if report:
            own.is_object("body-xml", "`xml` has to be an object; ignored")
        for key, one in own.members():
            if not report or _is_usable(key, one):
                declared.setdefault(key, one.value)
    return declared


def _layers(schema: Node) -> list[Node]:
    """Return the schema, the referenced schemas, and the parts of `allOf`, without duplicates."""
    found: dict[Location, Node] = {}
    waiting = deque([(schema, _LEVELS)])
    while waiting:
        one, left = waiting.popleft()
        if not isinstance(one.value, dict) or left == 0 or one.location in found:
            continue
        found[one.location] = one
        if "$ref" in one.value:
            with suppress(UnresolvedError):  # the error is reported when the schema is translated
                waiting.append((one.follow(), left - 1))
        waiting += [(part, left - 1) for part in one.at("allOf").elements()]
    return list(found.values())
