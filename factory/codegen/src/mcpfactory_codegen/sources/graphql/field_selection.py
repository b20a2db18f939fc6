"""Selection of response fields for a type, as GraphQL text and as the JSON Schema of the response.

The selection contains the scalars of the response, some of its objects, and identifying fields of these objects. For a
connection, the selection contains the nodes and the cursor of the next page. The selection excludes fields with
required arguments, deprecated fields, and types that contain themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_codegen.sources.graphql.schema import (
    GraphQLField,
    GraphQLSchema,
    GraphQLType,
    innermost_type,
    is_list_type,
    is_non_null_type,
)

_FIELDS: Final = 90
"""Maximum number of fields in one query, counted over all levels."""
_LEAVES: Final = (24, 8, 4)
_OBJECTS: Final = (8, 2, 0)
_FRAGMENTS: Final = 8
_COMPOSITE: Final = frozenset({"OBJECT", "INTERFACE", "UNION"})
_LEAF: Final = frozenset({"SCALAR", "ENUM"})
_TELLING: Final = (
    "id", "name", "title", "message", "field", "code", "login", "slug", "key", "number", "url", "email", "status", "state",
    "type", "amount", "currency", "currencyCode", "value", "createdAt", "updatedAt",
)  # fmt: skip
_ONWARDS: Final = ("hasNextPage", "endCursor")
_ECHO: Final = "clientMutationId"
"""Field that only returns a value from the caller."""
_SCALARS: Final = {"Int": "integer", "Float": "number", "String": "string", "Boolean": "boolean", "ID": "string"}


@dataclass(slots=True)
class SelectionSet:
    """Selected fields of one type. `fragments` has the selections of the type's possible object types."""

    type: GraphQLType
    leaves: list[GraphQLField] = field(default_factory=list)
    objects: list[tuple[GraphQLField, SelectionSet]] = field(default_factory=list)
    fragments: list[SelectionSet] = field(default_factory=list)
    above: frozenset[str] = frozenset()

    @property
    def abstract(self) -> bool:
        """Return True if a value can have one of several types."""
        return self.type.kind in {"INTERFACE", "UNION"}

    @property
    def names(self) -> set[str]:
        """Return the member names of a response."""
        own = {one.name for one in self.leaves} | {one.name for one, _ in self.objects}
        return own.union(*(fragment.names for fragment in self.fragments))

    @property
    def empty(self) -> bool:
        """Return True if no field is selected."""
        return not (self.leaves or self.objects or self.abstract)

    def text(self) -> str:
        """Return the selection as GraphQL text, such as `{ id author { name } }`."""
        parts = ["__typename"] if self.abstract or self.empty else []
        parts += [one.name for one in self.leaves]
        parts += [f"{one.name} {below.text()}" for one, below in self.objects]
        parts += [f"... on {one.type.name} {one.text()}" for one in self.fragments if not one.empty]
        return "{ " + " ".join(parts) + " }"

    def schema(self, *, nullable: bool) -> dict[str, Any]:
        """Return the JSON Schema of the response."""
        properties: dict[str, Any] = {"__typename": {"type": "string"}} if self.abstract or self.empty else {}
        required = [*properties]
        for one in self.leaves:
            properties[one.name] = response_schema(one.type, _leaf_schema(one.type))
        for one, below in self.objects:
            properties[one.name] = response_schema(one.type, below)
        required += [
            one.name for one in [*self.leaves, *(one for one, _ in self.objects)] if is_non_null_type(one.type)
        ]
        for fragment in self.fragments:
            properties |= fragment.schema(nullable=False)["properties"]
        schema: dict[str, Any] = {"type": ["object", "null"] if nullable else "object", "properties": properties}
        return schema | ({"required": required} if required else {})


def response_schema(written: str, inner: SelectionSet | dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a response with the GraphQL type `written` and the innermost type `inner`."""
    required = is_non_null_type(written)
    plain = written.removesuffix("!")
    if is_list_type(plain):
        items = response_schema(plain[1:-1], inner)
        return {"type": "array" if required else ["array", "null"], "items": items}
    if isinstance(inner, SelectionSet):
        return inner.schema(nullable=not required)
    if required or "type" not in inner:
        return dict(inner)
    return {**inner, "type": [inner["type"], "null"]}


def _leaf_schema(written: str) -> dict[str, Any]:
    name = innermost_type(written)
    return {"type": _SCALARS[name]} if name in _SCALARS else {}


def select_fields(schema: GraphQLSchema, written: str, *, deeper: bool = False) -> SelectionSet | dict[str, Any]:
    """Return the fields to select for a type in GraphQL syntax, or the JSON Schema of a scalar.

    `deeper` selects one more level, for a type that only wraps the result of a mutation.
    """
    kind = schema.named(written)
    if kind is None or kind.kind not in _COMPOSITE:
        return {} if kind is not None and kind.kind == "ENUM" else _leaf_schema(written)
    return _Choosing(schema, wrapped=deeper).all(kind, -1 if deeper else 0)


class _Choosing:
    """Breadth-first field selection for one query, so that outer fields have priority within the limits."""

    def __init__(self, schema: GraphQLSchema, *, wrapped: bool) -> None:
        self._schema = schema
        self._wrapped = wrapped
        self._left = _FIELDS
        self._waiting: deque[tuple[SelectionSet, int]] = deque()

    def all(self, kind: GraphQLType, level: int) -> SelectionSet:
        root = SelectionSet(kind, above=frozenset({kind.name}))
        self._waiting.append((root, level))
        while self._waiting:
            self._fill(*self._waiting.popleft())
        _prune(root)
        return root

    def _fill(self, chosen: SelectionSet, level: int) -> None:
        at = min(max(level, 0), len(_LEAVES) - 1)
        connection = self._connection(chosen.type)
        if connection:
            for name, one in connection:
                self._object(chosen, one, level if name != "pageInfo" else len(_LEAVES) - 1)
            wanted = ("totalCount", "cursor")
            chosen.leaves += [one for name, one in chosen.type.fields.items() if name in wanted and self._is_leaf(one)]
            return
        leaves = [one for one in chosen.type.fields.values() if self._is_leaf(one) and one.name != _ECHO]
        # omit fields about previous pages, because callers only request next pages
        if "hasNextPage" in chosen.type.fields:
            leaves = [one for one in leaves if one.name in _ONWARDS]
        if len(leaves) > _LEAVES[at]:
            rank = {name: index for index, name in enumerate(_TELLING)}
            leaves.sort(key=lambda one: rank.get(one.name, len(rank)))
        taken = min(_LEAVES[at] if not self._wrapped or level < 0 else _LEAVES[1], max(self._left, 0))
        chosen.leaves += leaves[:taken]
        self._left -= len(chosen.leaves)
        for one in [*self._objects(chosen, level)][: _OBJECTS[at]]:
            self._object(chosen, one, level + 1)
        if chosen.abstract and len(chosen.type.possible) <= _FRAGMENTS:
            for name in chosen.type.possible:
                self._fragment(chosen, name, level)

    def _object(self, chosen: SelectionSet, one: GraphQLField, level: int) -> None:
        kind = self._schema.named(one.type)
        if kind is None or self._left <= 0:
            return
        below = SelectionSet(kind, above=chosen.above | {kind.name})
        chosen.objects.append((one, below))
        self._waiting.append((below, level))

    def _objects(self, chosen: SelectionSet, level: int) -> Iterator[GraphQLField]:
        """Yield the fields with objects to select.

        Below the top level, fields with lists come last. Connections are selected only in a wrapper.
        """
        for one in sorted(
            chosen.type.fields.values(), key=lambda one: level > 0 and is_list_type(one.type.removesuffix("!"))
        ):
            kind = self._schema.named(one.type)
            if kind is None or kind.kind not in _COMPOSITE or kind.name in chosen.above or not _callable(one):
                continue
            if level >= 0 and self._connection(kind):
                continue
            yield one

    def _fragment(self, chosen: SelectionSet, name: str, level: int) -> None:
        kind = self._schema.types.get(name)
        if kind is None or kind.kind != "OBJECT":
            return
        taken = chosen.names
        fields = {key: one for key, one in kind.fields.items() if key not in taken}
        own = GraphQLType(kind.name, kind.kind, fields=fields)
        below = SelectionSet(own, above=chosen.above | {kind.name})
        at = min(max(level, 0) + 1, len(_LEAVES) - 1)
        below.leaves = [one for one in fields.values() if self._is_leaf(one)][: min(_LEAVES[at], max(self._left, 0))]
        self._left -= len(below.leaves)
        chosen.fragments.append(below)
        for one in [*self._objects(below, level)][: _OBJECTS[at] if level <= 0 else 0]:
            self._object(below, one, level + 1)

    def _is_leaf(self, one: GraphQLField) -> bool:
        kind = self._schema.named(one.type)
        return kind is not None and kind.kind in _LEAF and _callable(one)

    def _connection(self, kind: GraphQLType) -> list[tuple[str, GraphQLField]]:
        """Return the fields of a connection or edge that contain the nodes (GraphQL Cursor Connections)."""
        fields = kind.fields
        if "pageInfo" in fields and ("nodes" in fields or "edges" in fields):
            nodes = "nodes" if "nodes" in fields else "edges"
            return [(name, fields[name]) for name in (nodes, "pageInfo") if _callable(fields[name])]
        if set(fields) >= {"cursor", "node"} and _callable(fields["node"]):
            return [("node", fields["node"])]
        return []


def _callable(one: GraphQLField) -> bool:
    return not one.deprecated and not any(argument.required for argument in one.arguments)


def _prune(chosen: SelectionSet) -> None:
    for below in [*(below for _, below in chosen.objects), *chosen.fragments]:
        _prune(below)
    chosen.objects = [(one, below) for one, below in chosen.objects if not below.empty]
    chosen.fragments = [one for one in chosen.fragments if not one.empty]
