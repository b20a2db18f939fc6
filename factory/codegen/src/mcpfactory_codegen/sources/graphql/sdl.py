"""The text of a GraphQL schema (SDL) → its records. The one module here that imports the GraphQL library, and only when asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_codegen.sources.graphql.schema import GraphQLField, GraphQLSchema, InputValue, Type
from mcpfactory_codegen.sources.translation import pointer_of

if TYPE_CHECKING:
    from graphql.language import ast

__all__ = ["SdlError", "parsed"]

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
    """The text is no GraphQL schema. `args[0]` says what is wrong and in which line."""


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
    types = {name: _type(name, nodes) for name, nodes in gathered.items()}
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


def _type(name: str, nodes: list[Any]) -> Type:
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
        name, _written(node.type), _description(node), arguments, _deprecated(node), pointer_of(owner, name)
    )


def _input(node: Any) -> InputValue:
    from graphql import print_ast  # noqa: PLC0415 - as above

    default = print_ast(node.default_value) if node.default_value is not None else None
    return InputValue(node.name.value, _written(node.type), _description(node), default, bool(_deprecated(node)))


def _written(node: ast.TypeNode) -> str:
    """Return a type as it is written."""
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
    """Return the reason for which something is deprecated; "" when it is not."""
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
