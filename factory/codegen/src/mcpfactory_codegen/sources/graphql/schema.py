"""A GraphQL schema as records, from the result of introspection or from its text (SDL); what is no schema in it is left out.

Types of fields and arguments are kept as GraphQL writes them (`[Book!]!`), as variables are declared with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_codegen.sources.translation import entries, json_value, pointer_of, table, text

__all__ = [
    "GraphQLField",
    "GraphQLSchema",
    "InputValue",
    "Type",
    "bare",
    "introspected",
    "is_list",
    "is_required",
    "value_of",
]

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,120}\Z")
_WRAPPERS: Final = 8
_MARKS: Final = str.maketrans("", "", "[]!")


@dataclass(frozen=True, slots=True)
class InputValue:
    """An argument of a field, or a field of an input type. `default` is a GraphQL literal, None where there is none."""

    name: str
    type: str
    description: str = ""
    default: str | None = None
    deprecated: bool = False

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return is_required(self.type) and self.default is None


@dataclass(frozen=True, slots=True)
class GraphQLField:
    """A field of an object or interface. `deprecated` is the reason, "" for a field that is not."""

    name: str
    type: str
    description: str = ""
    arguments: tuple[InputValue, ...] = ()
    deprecated: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Type:
    """A named type. `possible` are the objects that an interface or union can be, `members` the fields of an input type."""

    name: str
    kind: str
    description: str = ""
    fields: Mapping[str, GraphQLField] = field(default_factory=dict)
    members: tuple[InputValue, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    possible: tuple[str, ...] = ()
    one_of: bool = False
    url: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class GraphQLSchema:
    """All types by name, and the names of the three root types ("" for one that there is not)."""

    types: Mapping[str, Type]
    query: str = ""
    mutation: str = ""
    subscription: str = ""
    description: str = ""

    def named(self, written: str) -> Type | None:
        """Return the type that a written type is made of; None when it is not defined."""
        return self.types.get(bare(written))


def bare(written: str) -> str:
    """`Book` of `[Book!]!`."""
    return written.translate(_MARKS)


def is_required(written: str) -> bool:
    """Whether it is never null."""
    return written.endswith("!")


def is_list(written: str) -> bool:
    """Whether it is a list, outermost."""
    return written.startswith("[")


def value_of(literal: str) -> Any:
    """Return what a literal of GraphQL means, as far as it is also JSON or the name of an enum's value; None otherwise."""
    if NAME.match(literal) and literal not in {"true", "false", "null"}:
        return literal
    return json_value(literal)


# --- the result of introspection ---


def introspected(data: dict[str, Any]) -> GraphQLSchema:
    """Return the schema that the introspection query answered."""
    origin = "/__schema" if isinstance(data.get("__schema"), dict) else "/data/__schema"
    schema = table(data if origin == "/__schema" else table(data, "data"), "__schema")
    types = {}
    for index, node in entries(schema, "types"):
        if NAME.match(text(node, "name")):
            types[node["name"]] = _type(node, f"{origin}/types/{index}")
    roots = {key: text(table(schema, f"{key}Type"), "name") for key in ("query", "mutation", "subscription")}
    return GraphQLSchema(types, **roots, description=text(schema, "description"))


def _type(node: dict[str, Any], origin: str) -> Type:
    fields = {}
    for index, one in entries(node, "fields"):
        written = _written(one.get("type"))
        if NAME.match(text(one, "name")) and written:
            reason = text(one, "deprecationReason") or "deprecated" if one.get("isDeprecated") is True else ""
            arguments = tuple(_inputs(one, "args"))
            at = origin + pointer_of("fields", index)
            fields[one["name"]] = GraphQLField(one["name"], written, text(one, "description"), arguments, reason, at)
    values = [(text(one, "name"), text(one, "description")) for _, one in entries(node, "enumValues")]
    return Type(
        node["name"],
        text(node, "kind"),
        text(node, "description"),
        fields,
        tuple(_inputs(node, "inputFields")),
        tuple(one for one in values if NAME.match(one[0])),
        tuple(text(one, "name") for _, one in entries(node, "possibleTypes")),
        node.get("isOneOf") is True,
        text(node, "specifiedByURL"),
        origin,
    )


def _inputs(node: dict[str, Any], key: str) -> Iterator[InputValue]:
    for _, one in entries(node, key):
        written = _written(one.get("type"))
        if NAME.match(text(one, "name")) and written:
            default = one.get("defaultValue")
            yield InputValue(
                one["name"],
                written,
                text(one, "description"),
                default if isinstance(default, str) else None,
                one.get("isDeprecated") is True,
            )


def _written(node: Any, depth: int = 0) -> str:
    """Return a type reference as GraphQL writes it; "" when it is none."""
    if not isinstance(node, dict) or depth > _WRAPPERS:
        return ""
    kind = text(node, "kind")
    if kind in {"NON_NULL", "LIST"}:
        inner = _written(node.get("ofType"), depth + 1)
        if not inner or (kind == "NON_NULL" and is_required(inner)):
            return inner
        return f"{inner}!" if kind == "NON_NULL" else f"[{inner}]"
    name = text(node, "name")
    return name if NAME.match(name) else ""
