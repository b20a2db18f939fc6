"""Translation of GraphQL schemas to OpenAPI, from the result of introspection or the schema's text (SDL).

Queries and mutations become operations. Each operation posts a constant document to the endpoint, with the arguments as
variables (`ApiBody.graphql`). The path of an operation is only a label.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.sources.graphql.field_selection import SelectionSet, response_schema, select_fields
from mcpfactory_codegen.sources.graphql.schema import (
    GraphQLField,
    GraphQLSchema,
    GraphQLType,
    InputValue,
    SdlError,
    innermost_type,
    is_list_type,
    is_non_null_type,
    parse_graphql_literal,
    schema_from_introspection,
    schema_from_sdl,
)
from mcpfactory_codegen.sources.translation_helpers import (
    OpenApiDraft,
    Translation,
    make_json_pointer,
    table,
    text,
    without_empty,
)

SDL: Final = "sdl"

SDL_TEXT: Final = re.compile(rb"^(?:extend\s+)?(?:type\s+[A-Za-z_]\w*[^:\n{]*\{|schema\b[^:\n{]*\{)", re.M)
"""Pattern for the text of a schema: a type or schema definition at the start of a line."""
_TOKEN: Final = "Token"  # noqa: S105 - the name of a scheme is not a secret
_PAGE: Final = 20
_QUIET: Final = frozenset({"path-unusual-syntax", "server-relative"})
_SCALARS: Final[dict[str, dict[str, Any]]] = {
    "Int": {"type": "integer"},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": "string"},
    "DateTime": {"type": "string", "format": "date-time"},
    "Date": {"type": "string", "format": "date"},
    "URI": {"type": "string", "format": "uri"},
    "URL": {"type": "string", "format": "uri"},
    "UUID": {"type": "string", "format": "uuid"},
    "Email": {"type": "string"},
}


def is_introspection(data: dict[str, Any]) -> bool:
    """Return True if the data is an introspection query's response."""
    return isinstance(table(data, "__schema").get("types"), list) or isinstance(
        table(table(data, "data"), "__schema").get("types"), list
    )


def is_sdl(data: dict[str, Any]) -> bool:
    """Return True if the data is the text of a schema in the form that `load` stores."""
    return set(data) == {SDL}


def translate_introspection(data: dict[str, Any]) -> Translation:
    """Translate the result of introspection to OpenAPI."""
    return _translated(schema_from_introspection(data))


def translate_sdl(data: dict[str, Any]) -> Translation:
    """Translate the text of a schema to OpenAPI."""
    try:
        schema = schema_from_sdl(text(data, SDL))
    except SdlError as error:
        draft = OpenApiDraft("API")
        message = f"it is not a valid GraphQL schema: {error}"
        draft.problems.add("graphql-invalid", "", message, "correct the schema there")
        return draft.done(_QUIET)
    return _translated(schema)


def _translated(schema: GraphQLSchema) -> Translation:
    title = schema.description.strip().partition("\n")[0].rstrip(".")
    draft = OpenApiDraft(title if len(title) < 60 and title else "GraphQL API", description=schema.description)
    draft.schemes[_TOKEN] = {"type": "http", "scheme": "bearer"}
    roots = {root: schema.types.get(getattr(schema, root)) for root in ("query", "mutation", "subscription")}
    if roots["query"] is None and roots["mutation"] is None:
        message = "the schema has neither queries nor mutations"
        draft.problems.add("graphql-invalid", "", message, "give the whole schema, with `type Query`")
    documents: dict[str, str] = {}
    for root, kind in roots.items():
        for one in kind.fields.values() if kind is not None else ():
            reason = _unusable(schema, root, one)
            if reason:
                draft.skip_operation("POST", f"/#{root}.{one.name}", one.name, one.origin, reason)
            else:
                _add(draft, schema, root, one, documents)
    _add_types(draft, schema)
    return draft.done(_QUIET, documents)


def _unusable(schema: GraphQLSchema, root: str, one: GraphQLField) -> str:
    if root == "subscription":
        return "a subscription is a stream, but a tool returns one result"
    if one.name.startswith("_"):
        return "it is internal to gateways"
    missing = [innermost_type(each.type) for each in one.arguments if each.required and schema.named(each.type) is None]
    if missing or schema.named(one.type) is None:
        return f"the type {(missing or [innermost_type(one.type)])[0]!r} is not defined"
    files = [each.name for each in one.arguments if each.required and innermost_type(each.type) == "Upload"]
    return f"its argument {files[0]!r} is a file, and uploads are not supported" if files else ""


def _add(draft: OpenApiDraft, schema: GraphQLSchema, root: str, one: GraphQLField, documents: dict[str, str]) -> None:
    kind = schema.named(one.type)
    wrapped = root == "mutation" and kind is not None and "id" not in kind.fields
    selection = select_fields(schema, one.type, deeper=wrapped)
    pages = isinstance(selection, SelectionSet) and "pageInfo" in selection.names
    taken = [
        each for each in one.arguments if innermost_type(each.type) != "Upload" and schema.named(each.type) is not None
    ]
    taken = [each for each in taken if each.required or not each.deprecated]
    path = f"/#{root}.{one.name}"
    documents[path] = _document(root, one, taken, selection, pages=pages)
    properties = {each.name: _argument(each, pages=pages) for each in taken}
    body: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    body |= without_empty(required=[each.name for each in taken if each.required])
    data = {"type": "object", "properties": {one.name: response_schema(one.type, selection)}}
    data |= without_empty(required=[one.name] if is_non_null_type(one.type) else [])
    answer = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    about = f" {kind.name}: {kind.description}" if kind is not None and kind.description else ""
    operation: dict[str, Any] = {
        "operationId": one.name,
        "tags": ["queries" if root == "query" else "mutations"],
        "description": one.description or f"The {root} {one.name}, which gives {one.type}.{about}",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "The answer", "content": {"application/json": {"schema": answer}}}},
        "security": [{_TOKEN: []}, {}],
    }
    if one.deprecated:
        operation |= {"deprecated": True, "description": f"{operation['description']}\n\n{one.deprecated}"}
    draft.add("post", path, operation, one.origin)


def _document(
    root: str, one: GraphQLField, taken: list[InputValue], selection: SelectionSet | dict[str, Any], *, pages: bool
) -> str:
    declared = ", ".join(f"${each.name}: {each.type}{_default(each, pages=pages)}" for each in taken)
    passed = ", ".join(f"{each.name}: ${each.name}" for each in taken)
    called = f"{one.name}({passed})" if taken else one.name
    wanted = f" {selection.text()}" if isinstance(selection, SelectionSet) else ""
    return f"{root} {one.name}{f'({declared})' if taken else ''} {{ {called}{wanted} }}"


def _default(each: InputValue, *, pages: bool) -> str:
    """Return the default of a variable: the argument's default, or a page size, which some APIs require."""
    if each.default not in {None, "null"} and _PLAIN.fullmatch(str(each.default)):
        return f" = {each.default}"
    return f" = {_PAGE}" if pages and each.name == "first" and each.type == "Int" else ""


_PLAIN: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?|[A-Za-z_]\w{0,120}")
"""Default values that can be written into a document unchanged."""


def _argument(each: InputValue, *, pages: bool) -> dict[str, Any]:
    schema = _input_schema(each)
    return schema | ({"default": _PAGE} if _default(each, pages=pages) == f" = {_PAGE}" else {})


def _input_schema(each: InputValue) -> dict[str, Any]:
    default = parse_graphql_literal(each.default) if each.default is not None else None
    schema = _schema_of(each.type) | without_empty(description=each.description, deprecated=each.deprecated or None)
    return schema if default is None else {**schema, "default": default}


def _schema_of(written: str) -> dict[str, Any]:
    """Return the JSON Schema of a type in GraphQL syntax, without null, because nullable arguments can be omitted."""
    plain = written.removesuffix("!")
    if is_list_type(plain):
        return {"type": "array", "items": _schema_of(plain[1:-1])}
    if plain in _SCALARS:
        return dict(_SCALARS[plain])
    return {"$ref": f"#{make_json_pointer('components', 'schemas', plain)}"}


def _add_types(draft: OpenApiDraft, schema: GraphQLSchema) -> None:
    for name, kind in schema.types.items():
        if name in _SCALARS:
            continue
        if kind.kind == "ENUM" and kind.values:
            draft.schemas[name] = _enum(kind)
        elif kind.kind == "SCALAR":
            about = kind.description or (f"{name}, as described at {kind.url}" if kind.url else name)
            draft.schemas[name] = {"description": about}
        elif kind.kind == "INPUT_OBJECT":
            draft.schemas[name] = _input_object(kind, schema)
        else:
            continue
        draft.origins[make_json_pointer("components", "schemas", name)] = kind.origin


def _enum(kind: GraphQLType) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "enum": list(dict.fromkeys(name for name, _ in kind.values))}
    schema |= without_empty(description=kind.description)
    if any(about for _, about in kind.values):
        schema["x-enum-descriptions"] = [about for _, about in kind.values]
    return schema


def _input_object(kind: GraphQLType, schema: GraphQLSchema) -> dict[str, Any]:
    members = [
        each for each in kind.members if schema.named(each.type) is not None and innermost_type(each.type) != "Upload"
    ]
    built: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: _input_schema(each) for each in members if each.required or not each.deprecated},
        "additionalProperties": False,
    }
    built |= without_empty(required=[each.name for each in members if each.required], description=kind.description)
    return built | ({"minProperties": 1, "maxProperties": 1} if kind.one_of else {})
