"""GraphQL schemas as records, from introspection or SDL.

Types of fields and arguments are kept as GraphQL writes them (`[Book!]!`), as variables are declared with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_codegen.sources.translation import entries, json_value, pointer_of, table, text

if TYPE_CHECKING:
    from graphql.language import ast


NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,120}\Z")
_WRAPPERS: Final = 8
_MARKS: Final = str.maketrans("", "", "[]!")


@dataclass(frozen=True, slots=True)
class InputValue:
    """An argument of a field, or a field of an input type. `default` is a GraphQL literal, None if missing."""

    name: str
    type: str
    description: str = ""
    default: str | None = None
    deprecated: bool = False

    @property
    def required(self) -> bool:
        """Return True if a value is required."""
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
    """Return True if the type is non-null."""
    return written.endswith("!")


def is_list(written: str) -> bool:
    """Return True if the outermost type is a list."""
    return written.startswith("[")


def value_of(literal: str) -> Any:
    """Return the value of a GraphQL literal if it is also JSON or an enum value's name; None otherwise."""
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
    """Return a type reference in GraphQL syntax; "" if it is invalid."""
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


_MOST_TOKENS: Final = 3_000_000
_KINDS: Final = {
    "ObjectType": "OBJECT",
    "InterfaceType": "INTERFACE",
    "UnionType": "UNION",
    "EnumType": "ENUM",
    "InputObjectType": "INPUT_OBJECT",
    "ScalarType": "SCALAR",
}
_ROOTS: Final = ("query", "mutation", "subscription")


class SdlError(ValueError):
    """Error for text that is not a GraphQL schema. `args[0]` has the reason and the line."""


def parsed(text: str) -> GraphQLSchema:
    """Return the schema that a text writes down; extensions of a type count as its own.

    Raises:
        SdlError: it has no valid syntax, or is nested too deeply.
    """
    from graphql import GraphQLError, parse  # noqa: PLC0415 - heavy, and only needed for such a text

    try:
        document = parse(text, no_location=True, max_tokens=_MOST_TOKENS)
    except GraphQLError as error:
        line = error.locations[0].line if error.locations else 0
        raise SdlError(f"{error.message} (line {line})") from None
    except RecursionError:
        raise SdlError("it is nested too deeply") from None
    gathered: dict[str, list[Any]] = {}
    roots: dict[str, str] = {}
    description = ""
    for node in document.definitions:
        if node.kind in {"schema_definition", "schema_extension"}:
            roots |= {one.operation.value: one.type.name.value for one in getattr(node, "operation_types", ()) or ()}
            description = description or _description(node)
        elif (name := getattr(node, "name", None)) is not None and _kind(node):
            gathered.setdefault(name.value, []).append(node)
    types = {name: _parsed_type(name, nodes) for name, nodes in gathered.items()}
    for name in ("Int", "Float", "String", "Boolean", "ID"):
        types.setdefault(name, Type(name, "SCALAR"))
    implemented = _implementations(gathered)
    for name, objects in implemented.items():
        if name in types and types[name].kind == "INTERFACE":
            types[name] = replace(types[name], possible=objects)
    defaults = {} if roots else {root: root.capitalize() for root in _ROOTS if root.capitalize() in types}
    roots = {root: roots.get(root, "") or defaults.get(root, "") for root in _ROOTS}
    return GraphQLSchema(types, **roots, description=description)


def _kind(node: Any) -> str:
    stem = "".join(part.capitalize() for part in node.kind.split("_"))
    return _KINDS.get(stem.removesuffix("Definition").removesuffix("Extension"), "")


def _description(node: Any) -> str:
    return node.description.value if getattr(node, "description", None) is not None else ""


def _parsed_type(name: str, nodes: list[Any]) -> Type:
    kind = _kind(nodes[0])
    fields: dict[str, GraphQLField] = {}
    members: list[InputValue] = []
    values: list[tuple[str, str]] = []
    possible: list[str] = []
    for node in nodes:
        for one in getattr(node, "fields", ()) or ():
            if kind == "INPUT_OBJECT":
                members.append(_input(one))
            else:
                fields[one.name.value] = _field(name, one)
        values += [(one.name.value, _description(one)) for one in getattr(node, "values", ()) or ()]
        possible += [one.name.value for one in getattr(node, "types", ()) or ()]
    directives = {one.name.value: one for node in nodes for one in node.directives or ()}
    return Type(
        name,
        kind,
        next(filter(None, map(_description, nodes)), ""),
        fields,
        tuple(members),
        tuple(values),
        tuple(possible),
        "oneOf" in directives,
        _argument(directives.get("specifiedBy"), "url"),
        pointer_of(name),
    )


def _field(owner: str, node: Any) -> GraphQLField:
    arguments = tuple(_input(one) for one in node.arguments or ())
    name = node.name.value
    return GraphQLField(
        name, _type_text(node.type), _description(node), arguments, _deprecated(node), pointer_of(owner, name)
    )


def _input(node: Any) -> InputValue:
    from graphql import print_ast  # noqa: PLC0415 - as above

    default = print_ast(node.default_value) if node.default_value is not None else None
    return InputValue(node.name.value, _type_text(node.type), _description(node), default, bool(_deprecated(node)))


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


def _deprecated(node: Any) -> str:
    found = next((one for one in node.directives or () if one.name.value == "deprecated"), None)
    return "" if found is None else _argument(found, "reason") or "deprecated"


def _argument(directive: Any, name: str) -> str:
    for one in directive.arguments or () if directive is not None else ():
        if one.name.value == name and isinstance(getattr(one.value, "value", None), str):
            return str(one.value.value)
    return ""


def _implementations(gathered: dict[str, list[Any]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for name, nodes in gathered.items():
        for one in (
            one for node in nodes if _kind(nodes[0]) == "OBJECT" for one in getattr(node, "interfaces", ()) or ()
        ):
            found.setdefault(one.name.value, {})[name] = None
    return {name: tuple(objects) for name, objects in found.items()}
