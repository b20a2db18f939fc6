"""GraphQL schemas as records, from introspection or SDL.

Types of fields and arguments stay in GraphQL syntax (`[Book!]!`), because declarations of variables use this syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_codegen.sources.translation_helpers import (
    iterate_objects,
    make_json_pointer,
    parse_json_or_none,
    table,
    text,
)

if TYPE_CHECKING:
    from graphql.language import ast


NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,120}\Z")
_WRAPPERS: Final = 8
_MARKS: Final = str.maketrans("", "", "[]!")
_ROOTS: Final = ("query", "mutation", "subscription")


@dataclass(frozen=True, slots=True)
class InputValue:
    """An argument of a field, or a field of an input type, with a GraphQL literal as default."""

    name: str
    type: str
    description: str = ""
    default: str | None = None
    deprecated: bool = False

    @property
    def required(self) -> bool:
        """Return True if a value is required."""
        return is_non_null_type(self.type) and self.default is None


@dataclass(frozen=True, slots=True)
class GraphQLField:
    """A field of an object or interface, with the reason for its deprecation or ""."""

    name: str
    type: str
    description: str = ""
    arguments: tuple[InputValue, ...] = ()
    deprecated: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class GraphQLType:
    """A named type.

    `possible` has the object types of an interface or union. `members` has the fields of an input type.
    """

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
    """All types by name, and the names of the three root types."""

    types: Mapping[str, GraphQLType]
    query: str = ""
    mutation: str = ""
    subscription: str = ""
    description: str = ""

    def named(self, written: str) -> GraphQLType | None:
        """Return the innermost type of a type in GraphQL syntax, or None for an undefined type."""
        return self.types.get(innermost_type(written))


def innermost_type(written: str) -> str:
    """Return the innermost type, such as `Book` for `[Book!]!`."""
    return written.translate(_MARKS)


def is_non_null_type(written: str) -> bool:
    """Return True if the type is non-null."""
    return written.endswith("!")


def is_list_type(written: str) -> bool:
    """Return True if the outermost type is a list."""
    return written.startswith("[")


def parse_graphql_literal(literal: str) -> Any:
    """Return the value of a GraphQL literal if it is JSON or the name of an enum value, else None."""
    if NAME.match(literal) and literal not in {"true", "false", "null"}:
        return literal
    return parse_json_or_none(literal)


# --- introspection ---


def schema_from_introspection(data: dict[str, Any]) -> GraphQLSchema:
    """Return the schema in an introspection query's response."""
    origin = "/__schema" if isinstance(data.get("__schema"), dict) else "/data/__schema"
    schema = table(data if origin == "/__schema" else table(data, "data"), "__schema")
    types = {}
    for index, node in iterate_objects(schema, "types"):
        if NAME.match(text(node, "name")):
            at = f"{origin}/types/{index}"
            places = [f"{at}/fields/{index}" for index, _ in iterate_objects(node, "fields")]
            types[node["name"]] = _type(node, at, places)
    roots = {key: text(table(schema, f"{key}Type"), "name") for key in _ROOTS}
    return GraphQLSchema(types, **roots, description=text(schema, "description"))


def _type(node: dict[str, Any], origin: str, places: Sequence[str]) -> GraphQLType:
    fields = {}
    for (_, one), at in zip(iterate_objects(node, "fields"), places, strict=True):
        written = _written(one.get("type"))
        if NAME.match(text(one, "name")) and written:
            reason = text(one, "deprecationReason") or "deprecated" if one.get("isDeprecated") is True else ""
            arguments = tuple(_inputs(one, "args"))
            fields[one["name"]] = GraphQLField(one["name"], written, text(one, "description"), arguments, reason, at)
    values = [(text(one, "name"), text(one, "description")) for _, one in iterate_objects(node, "enumValues")]
    return GraphQLType(
        node["name"],
        text(node, "kind"),
        text(node, "description"),
        fields,
        tuple(_inputs(node, "inputFields")),
        tuple(one for one in values if NAME.match(one[0])),
        tuple(text(one, "name") for _, one in iterate_objects(node, "possibleTypes")),
        node.get("isOneOf") is True,
        text(node, "specifiedByURL"),
        origin,
    )


def _inputs(node: dict[str, Any], key: str) -> Iterator[InputValue]:
    for _, one in iterate_objects(node, key):
        written = _written(one.get("type"))
        if NAME.match(text(one, "name")) and written:
            default = one.get("defaultValue")
            default = default if isinstance(default, str) else None
            deprecated = one.get("isDeprecated") is True
            yield InputValue(one["name"], written, text(one, "description"), default, deprecated)


def _written(node: Any, depth: int = 0) -> str:
    """Return a type reference in GraphQL syntax, or "" for an invalid reference."""
    if isinstance(node, str):
        return node
    if not isinstance(node, dict) or depth > _WRAPPERS:
        return ""
    kind = text(node, "kind")
    if kind in {"NON_NULL", "LIST"}:
        inner = _written(node.get("ofType"), depth + 1)
        if not inner or (kind == "NON_NULL" and is_non_null_type(inner)):
            return inner
        return f"{inner}!" if kind == "NON_NULL" else f"[{inner}]"
    name = text(node, "name")
    return name if NAME.match(name) else ""


# --- SDL, converted to introspection data ---


_MOST_TOKENS: Final = 3_000_000
_DEFINITION: Final = re.compile(r"(\w+)_type_(?:definition|extension)")


class SdlError(ValueError):
    """Error for text that is not a GraphQL schema, with the reason and the line."""


def schema_from_sdl(text: str) -> GraphQLSchema:
    """Return the schema of an SDL text, with extensions merged into their types.

    Raise an SdlError for invalid or too deeply nested syntax.
    """
    from graphql import GraphQLError, parse  # noqa: PLC0415 - the import is slow, and only needed for SDL

    try:
        document = parse(text, no_location=True, max_tokens=_MOST_TOKENS)
    except GraphQLError as error:
        line = error.locations[0].line if error.locations else 0
        raise SdlError(f"{error.message} (line {line})") from None
    except RecursionError:
        raise SdlError("the schema is nested too deeply") from None
    gathered: dict[str, list[Any]] = {}
    roots: dict[str, str] = {}
    description = ""
    for node in document.definitions:
        if node.kind in {"schema_definition", "schema_extension"}:
            roots |= {one.operation.value: one.type.name.value for one in getattr(node, "operation_types", ()) or ()}
            description = description or _description(node)
        elif (name := getattr(node, "name", None)) is not None and _kind(node):
            gathered.setdefault(name.value, []).append(node)
    types = {}
    for name, nodes in gathered.items():
        found = _described(name, nodes)
        if found["kind"] == "INTERFACE":
            found["possibleTypes"] = [{"name": one} for one in _implementations(name, gathered)]
        places = [make_json_pointer(name, one["name"]) for one in found.get("fields", ())]
        types[name] = _type(found, make_json_pointer(name), places)
    for name in ("Int", "Float", "String", "Boolean", "ID"):
        types.setdefault(name, GraphQLType(name, "SCALAR"))
    defaults = {} if roots else {root: root.capitalize() for root in _ROOTS if root.capitalize() in types}
    roots = {root: roots.get(root, "") or defaults.get(root, "") for root in _ROOTS}
    return GraphQLSchema(types, **roots, description=description)


def _kind(node: Any) -> str:
    found = _DEFINITION.fullmatch(node.kind)
    return found[1].upper() if found else ""


def _implementations(interface: str, gathered: dict[str, list[Any]]) -> list[str]:
    objects = {name: _all(nodes, "interfaces") for name, nodes in gathered.items() if _kind(nodes[0]) == "OBJECT"}
    return [name for name, listed in objects.items() if any(one.name.value == interface for one in listed)]


def _all(nodes: Iterable[Any], key: str) -> list[Any]:
    return [one for node in nodes for one in getattr(node, key, ()) or ()]


def _description(node: Any) -> str:
    return node.description.value if getattr(node, "description", None) is not None else ""


def _described(name: str, nodes: list[Any]) -> dict[str, Any]:
    kind = _kind(nodes[0])
    directives = {one.name.value: one for one in _all(nodes, "directives")}
    return {
        "name": name,
        "kind": kind,
        "description": next(filter(None, map(_description, nodes)), ""),
        "inputFields" if kind == "INPUT_OBJECT" else "fields": list(map(_member, _all(nodes, "fields"))),
        "enumValues": [{"name": one.name.value, "description": _description(one)} for one in _all(nodes, "values")],
        "possibleTypes": [{"name": one.name.value} for one in _all(nodes, "types")],
        "isOneOf": "oneOf" in directives,
        "specifiedByURL": _argument(directives.get("specifiedBy"), "url"),
    }


def _member(node: Any) -> dict[str, Any]:
    from graphql import print_ast  # noqa: PLC0415 - the import is slow, and only needed for SDL

    default = getattr(node, "default_value", None)
    deprecated = next((one for one in node.directives or () if one.name.value == "deprecated"), None)
    return {
        "name": node.name.value,
        "description": _description(node),
        "type": _type_text(node.type),
        "args": list(map(_member, _all([node], "arguments"))),
        "defaultValue": None if default is None else print_ast(default),
        "isDeprecated": deprecated is not None,
        "deprecationReason": _argument(deprecated, "reason"),
    }


def _type_text(node: ast.TypeNode) -> str:
    suffix = ""
    prefix = ""
    inner: Any = node
    while inner.kind != "named_type":
        if inner.kind == "list_type":
            prefix, suffix = f"{prefix}[", f"]{suffix}"
        else:
            suffix = f"!{suffix}"
        inner = inner.type
    return f"{prefix}{inner.name.value}{suffix}"


def _argument(directive: Any, name: str) -> str:
    for one in directive.arguments or () if directive is not None else ():
        if one.name.value == name and isinstance(getattr(one.value, "value", None), str):
            return str(one.value.value)
    return ""
