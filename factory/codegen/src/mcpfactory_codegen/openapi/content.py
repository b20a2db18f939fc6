"""Request bodies and responses: media type, schema, and encoding of form fields (OpenAPI 3.1 §4.8.13 to §4.8.17)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import MISLABELED, ApiBody, Encoding, JsonSchema, Response
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.context import Direction, Node, UnusableOperationError
from mcpfactory_codegen.openapi.keywords import ANNOTATIONS
from mcpfactory_codegen.openapi.references import UnresolvedError
from mcpfactory_codegen.openapi.xml import is_object_or_array, with_xml_form, xml_lists
from mcpfactory_codegen.sources.translation_helpers import schema_of_example
from mcpfactory_runtime.schemas.walk import APPLICATORS, types_of
from mcpfactory_runtime.upstream.encoding import JSON_LINES, is_json, is_xml, media_type
from mcpfactory_runtime.upstream.operation import FORM_STYLES

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+(\s*;[\x20-\x7e]*)?\Z")


class Media(NamedTuple):
    """A media type and its object in the document."""

    content_type: str
    node: Node


_RANKS: Final = (
    (r"application/json", 0),
    (r".*/json|.*\+json", 1),
    (r"application/x-www-form-urlencoded", 2),
    (r"multipart/form-data", 3),
    (r"text/plain", 5),
    (r"text/.*", 6),
    (r".*\*.*", 7),
)
"""Media types in order of preference.

The order is JSON, types with defined field encodings, text, and raw content.
"""
_LAST: Final = 8
_XML: Final = 4  # rank of XML for a schema with properties
_NO_LIST: Final = re.compile(r"application/([\w.-]*-)?merge-patch\+json")
_LIST: Final = re.compile(r"application/json-patch\+json")
_SHORT: Final = {
    "json": "application/json",
    "xml": "application/xml",
    "form": "application/x-www-form-urlencoded",
    "form-data": "multipart/form-data",
    "application/form-data": "multipart/form-data",
    "text": "text/plain",
    "html": "text/html",
    "binary": "application/octet-stream",
}


def media_type_rank(content_type: str) -> int:
    """Return the preference rank of a media type; lower is better."""
    name = media_type(content_type)
    return next((place for pattern, place in _RANKS if re.fullmatch(pattern, name)), _LAST)


def _fitting_rank(content_type: str, schema: Node) -> int:
    """Return the preference rank of a media type. A media type that does not fit its schema comes last.

    JSON Patch (RFC 6902) fits only lists. Merge patches (RFC 7396), including the `strategic-merge-patch` of
    Kubernetes, fit everything except lists. The media type XML fits only objects. For objects, XML ranks before text.
    """
    name = media_type(content_type)
    if _LIST.fullmatch(name) or _NO_LIST.fullmatch(name):
        return media_type_rank(content_type) if _is_list(schema) is (_LIST.fullmatch(name) is not None) else _LAST + 1
    return _XML if _is_xml(name) and schema.properties() else media_type_rank(content_type)


def _is_xml(name: str) -> bool:
    return name.endswith(("/xml", "+xml"))


def _carries_files(schemas: dict[str, Node]) -> bool:
    """Return True if `multipart/form-data` and each higher-ranked media type have the same file properties."""
    known = {name: one.properties() for name, one in schemas.items()}
    files = {name for name, one in known.get("multipart/form-data", {}).items() if one.is_file()}
    others = [found for name, found in known.items() if media_type_rank(name) < media_type_rank("multipart/form-data")]
    return bool(files) and all(files <= found.keys() for found in others)


def _is_list(schema: Node) -> bool:
    node = schema.resolved_object()
    return node.get("type") == "array" or "items" in node


def choose_media_type(content: Node) -> Media | None:
    """Return the preferred media type of a `content` map, or None if no media type is usable."""
    content = content.mapping()
    content.is_object("media-invalid", "`content` has to be an object of media types; ignored")
    usable: dict[str, Node] = {}
    for key, one in content.members():
        name = key.partition(",")[0].strip()  # if the key is a list of media types, use the first media type
        name = _SHORT.get(name.lower(), name)
        if _MEDIA_TYPE.match(name):
            usable.setdefault(name, one)
        if (name != key or name not in usable) and not key.startswith("x-"):
            intended = f"read as {name}" if name in usable else "ignored"
            one.report("media-invalid", f"{key[:80]!r} is not a media type; {intended}", "example: application/json")
    if not usable:
        return None
    name = next(iter(usable)) if len(usable) == 1 else _best(usable)
    written = usable[name]
    target = written.target()
    if target is not None and isinstance(target.value, dict):
        return Media(name, _with_moved_keywords(target))
    if target is not None and target.value is not None:
        written.report("media-invalid", "a media type has to be an object; anything is accepted")
    return Media(name, written.with_value({}))


_SCHEMA_KEYWORDS: Final = frozenset({"type", "required", *APPLICATORS})


def _with_moved_keywords(media: Node) -> Node:
    """Move JSON Schema keywords that are beside `schema` into it."""
    beside = {key: value for key, value in media.value.items() if key in _SCHEMA_KEYWORDS}
    schema = media.value.get("schema", {})
    if not beside or not isinstance(schema, dict):
        return media
    message = f"{', '.join(beside)[:200]} must not be in a media type; read as part of its schema"
    media.report("media-invalid", message, "move it below `schema`")
    return media.with_value({**media.value, "schema": {**beside, **schema}})


def _best(usable: dict[str, Node]) -> str:
    """Return the first of the media types that fit their schemas best."""
    schemas = {name: one.mapping().at("schema") for name, one in usable.items()}
    if _carries_files(schemas):
        return "multipart/form-data"
    return min(usable, key=lambda name: _fitting_rank(name, schemas[name]))


def read_media_schema(media: Media, direction: Direction) -> JsonSchema | None:
    """Return the schema of a media type, or the list schema of a stream of items (3.2)."""
    if "schema" in media.node.value:
        return media.node.at("schema").schema(direction)
    if "itemSchema" in media.node.value:
        return {"type": "array", "items": media.node.at("itemSchema").schema(direction)}
    return None


_FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
_STRUCTURED: Final = frozenset({*JSON_LINES, *_FORMS})  # media types that can carry a list or an object
_CONCRETE: Final = {
    "*/*": "application/json",
    "application/*": "application/json",
    "text/*": "text/plain",
    "multipart/*": "multipart/form-data",
}


def read_request_body(operation: Node, parameters: list[Node]) -> ApiBody | None:
    """Return the body of one operation, or None.

    Raise an UnusableOperationError if the definition of the body cannot be resolved.
    """
    written = operation.at("requestBody")
    old = operation.context.spec.shape == "2"
    if parameters and (old or written.value is None):
        if not old:
            message = "the body is described as a parameter; read as in Swagger 2.0"
            parameters[0].report("body-shape", message, "write `requestBody`")
        return _body_of_2(parameters, _media_types(operation, "consumes"))
    if written.value is None:
        return None
    if old:
        message = "`requestBody` does not exist in Swagger 2.0; read as in 3.x"
        written.report("body-shape", message, "write a parameter `in: body`")
    try:
        body = written.follow()
    except UnresolvedError as error:
        message = f"its request body is missing: {error}"
        raise UnusableOperationError(error.code, written.location.down("$ref"), message, error.hint) from None
    if not isinstance(body.value, dict):
        message = "its request body is not an object"
        raise UnusableOperationError("body-invalid", body.location, message, "write `content` with a media type")
    body = body.convert_booleans("required")
    media = _shortened(body) or choose_media_type(body.at("content"))
    if media is None:
        body.report("body-empty", "the request body has no media type, so nothing can be sent", "add `content`")
        return None
    schema = read_media_schema(media, "request")
    found = ApiBody(
        content_type=_concrete(media),
        schema={} if schema is None else schema,
        required=body.value.get("required") is True,
        description=body.at("description").text(),
        alternatives=_alternatives(media.content_type, body.at("content").mapping().table),
        encoding=_encodings(media),
        example=media.node.example(),
    )
    return _sendable(found, media.node.at("schema"))


def _inferred(body: ApiBody, schema: Node) -> ApiBody:
    """Return the body with the schema of its example if only the example describes it."""
    known: JsonSchema = {} if body.schema is True else body.schema
    if not isinstance(known, dict) or known.keys() - ANNOTATIONS:
        return body
    example = next(iter(known.get("examples", ())), body.example)
    if not isinstance(example, (dict, list)):
        return body
    message = "the body has an example but no schema; the schema is inferred from the example"
    schema.report("body-shape", message, "write the schema of the body")
    return replace(body, schema={**known, **schema_of_example(example)})


def _sendable(body: ApiBody, schema: Node) -> ApiBody | None:
    """Return a body whose media type can encode its value, or None for an optional body that no value fits.

    A mislabeled body becomes JSON, and any other unsuitable body becomes text.
    """
    kind = media_type(body.content_type)
    if is_json(kind) or kind in _FORMS:
        body = _inferred(body, schema)
    kinds = types_of(schema.resolved_object())
    if kind.startswith("multipart/") and kinds and not {"object", "array"} & {*kinds}:
        hint = "write an object with a property for each part"
        if body.required:
            message = f"its {kind[:80]!r} body is not an object, so that its parts have no names"
            raise UnusableOperationError("body-invalid", schema.location, message, hint)
        schema.report("body-media-type", f"{kind[:80]!r} needs an object of parts; the body is left out", hint)
        return None
    if body.schema in ({}, True) and not (is_json(kind) or kind in _STRUCTURED or kind.startswith("multipart/")):
        return replace(body, schema={"type": "string"})
    if is_json(kind) or not is_object_or_array(schema):
        return body
    is_list = _is_list(schema)
    is_object = schema.resolved_object().get("type") == "object" or bool(schema.properties())
    if (is_list and kind in _FORMS) or (MISLABELED.fullmatch(kind) and (is_list or is_object)):
        sent = "application/json is sent"
        body = replace(body, content_type="application/json", encoding={})
    elif kind in JSON_LINES if is_list else kind in _FORMS or kind.startswith("multipart/"):
        return body
    elif _is_xml(kind):
        return with_xml_form(body, schema)
    else:
        sent = "the body is one text argument"
        text: JsonSchema = {"type": "string", "description": f"The body as {kind[:80]}."}
        body = replace(body, schema=text, encoding={}, example=None)
    message = f"{kind[:80]!r} cannot carry {'a list' if is_list else 'an object'}; {sent}"
    schema.report("body-media-type", message, "write the media type that the API accepts")
    return body


def _alternatives(content_type: str, content: Iterable[str]) -> tuple[str, ...]:
    """Return the other raw media types of a body whose media type is raw."""
    raw = [name for name in content if _MEDIA_TYPE.match(name) and media_type_rank(name) == _LAST]
    return tuple(name for name in raw if name != content_type) if content_type in raw else ()


def _shortened(body: Node) -> Media | None:
    """Read a body without media type as JSON, or return None if no schema is present."""
    content = body.at("content")
    inside = "schema" in content.table and not any("/" in key for key in content.table)
    if not inside and ("schema" not in body.value or content.value):
        return None
    where = content if inside else body
    message = "the body has a schema but no media type; read as application/json"
    where.report("body-shape", message, "put it below `content: {application/json: {schema: …}}`")
    return Media("application/json", where)


def _concrete(media: Media) -> str:
    name = media_type(media.content_type)
    if "*" not in name:
        return media.content_type
    concrete = _CONCRETE.get(name, "application/octet-stream")
    if concrete == "application/json" and media.node.at("schema").is_file():
        concrete = "application/octet-stream"
    message = f"{media.content_type!r} matches several media types; {concrete} is sent"
    media.node.report("body-media-type", message, "write one media type")
    return concrete


def _encodings(media: Media) -> dict[str, Encoding]:
    form = media_type(media.content_type) == "application/x-www-form-urlencoded"
    if not form and not media_type(media.content_type).startswith("multipart/"):
        return {}
    written = media.node.at("encoding")
    written.is_object("body-encoding", "`encoding` has to be an object of properties; ignored")
    for keyword in ("prefixEncoding", "itemEncoding"):
        if keyword in media.node.value:
            media.node.at(keyword).report("body-encoding", f"{keyword} is not supported; ignored")
    known = media.node.at("schema").properties()
    result: dict[str, Encoding] = {}
    for name in [*known, *(name for name in written.table if name not in known)]:
        one = written.at(name)
        one.is_object("body-encoding", "an encoding has to be an object; ignored")
        encoding = _encoding(one, known.get(name), form)
        if encoding != Encoding():
            result[name] = encoding
    return result


def _encoding(written: Node, schema: Node | None, form: bool) -> Encoding:
    node = written.table
    content_type, explode = node.get("contentType"), node.get("explode")
    content_type = content_type if isinstance(content_type, str) else ""
    style = next((one for one in FORM_STYLES if one == node.get("style")), None)
    if node.get("style") is not None and style is None:
        message = f"the style {str(node['style'])[:40]!r} does not exist in a form; ignored"
        written.at("style").report("body-encoding", message, f"one of {', '.join(FORM_STYLES)}")
    return Encoding(
        content_type=content_type,
        style=style or "",
        explode=explode if isinstance(explode, bool) else None,
        allow_reserved=node.get("allowReserved") is True,
        file=not form and schema is not None and (schema.is_file() or _is_untyped_file(schema.value, content_type)),
    )


def _is_untyped_file(schema: Any, content_type: str) -> bool:
    """Return True for raw bytes: a schema without a type (3.1) and a binary media type."""
    described = {"description", "title", "example", "examples", "deprecated"}
    untyped = schema is True or (isinstance(schema, dict) and schema.keys() <= described)
    return untyped and content_type != "" and not is_json(content_type) and not content_type.startswith("text/")


_STATUS: Final = re.compile(r"[1-5](?:[0-9][0-9]|XX)\Z")


def read_responses(operation: Node) -> tuple[Response, ...]:
    """Return all documented responses: first 2xx by number, then 2XX, default, and all others."""
    responses = operation.at("responses").mapping()
    responses.is_object("response-invalid", "`responses` has to be an object; ignored")
    produces = _media_types(operation, "produces") if operation.context.spec.shape == "2" else []
    found: dict[str, Response] = {}
    for key, one in responses.members():
        status = key if key == "default" else key.upper()
        if status == "default" or _STATUS.match(status):
            found.setdefault(status, _read_response(status, one, produces))
        elif not status.startswith("X-"):
            one.report("response-invalid", f"{key[:40]!r} is not a status; ignored", "write 200, 2XX or default")
    return tuple(sorted(found.values(), key=_order))


def _order(response: Response) -> tuple[int, str]:
    status = response.status
    if status == "default":
        return 1, status
    return (0 if status.startswith("2") else 2), status  # the range "2XX" sorts after exact codes such as "200"


def _read_response(status: str, written: Node, produces: list[str]) -> Response:
    node = written.target()
    message = "a response has to be an object; ignored"
    if node is None or not node.is_object("response-invalid", message, null=True):
        return Response(status)
    cache = node.context.responses
    known = cache.get(node.location)
    if known is None or known.status != status:
        known = cache[node.location] = _described_response(status, node, produces)
    return known


def _described_response(status: str, node: Node, produces: list[str]) -> Response:
    headers = tuple(sorted(name.lower() for name in node.at("headers").table))
    plain = Response(status, node.at("description").text(), headers=headers)
    if node.context.spec.shape == "2":
        examples = node.at("examples").table
        if "schema" not in node.value and not examples:
            return plain
        name = min(produces or list(examples), key=media_type_rank, default="application/json")
        schema = node.at("schema").schema("response") if "schema" in node.value else None
        return replace(plain, content_type=name, schema=schema, example=examples.get(name), lists=_lists(name, node))
    media = choose_media_type(node.at("content"))
    if media is None:
        return plain
    return replace(
        plain,
        content_type=media.content_type,
        schema=read_media_schema(media, "response"),
        example=media.node.example(),
        lists=_lists(*media),
    )


def _lists(content_type: str, node: Node) -> tuple[tuple[str, str], ...]:
    if is_json(content_type) or not is_xml(content_type):
        return ()
    schema = node.at("schema")
    return xml_lists(schema) if isinstance(schema.value, dict) else ()


# --- Swagger 2.0 ---


def _body_of_2(parameters: list[Node], consumes: list[str]) -> ApiBody | None:
    fields = [one for one in parameters if one.value["in"] == "formData"]
    bodies = [one for one in parameters if one.value["in"] == "body"]
    whole = next(iter(bodies), None)
    if whole is None:
        return _form(fields, consumes) if fields else None
    for other in (*fields, *bodies[1:]):
        name = other.value["name"][:80]
        message = f"the operation has the body {whole.value['name'][:80]!r}, so {name!r} cannot be sent; left out"
        other.report("parameter-ignored", message, "describe one or the other")
    schema = whole.at("schema")
    content_type = min(consumes, key=lambda one: _fitting_rank(one, schema), default="application/json")
    body = ApiBody(
        content_type=content_type,
        alternatives=_alternatives(content_type, consumes),
        schema=(schema if "schema" in whole.value else schema.with_value({})).schema("request"),
        required=whole.value.get("required") is True,
        description=whole.at("description").text(),
        example=whole.value.get("x-example"),
    )
    return _sendable(body, schema)


def _form(fields: list[Node], consumes: list[str]) -> ApiBody:
    properties: dict[str, JsonSchema] = {}
    encoding: dict[str, Encoding] = {}
    for one in fields:
        name, kind = one.value["name"], one.value.get("type")
        schema = one.with_value(swagger2.extract_inline_schema(one.value)).schema("request")
        description = one.at("description").text()
        if description and isinstance(schema, dict):
            schema = {**schema, "description": description}
        properties[name] = schema
        if kind == "file":
            encoding[name] = Encoding(file=True)
        elif kind == "array":
            style, explode = swagger2.convert_collection_format(one)
            encoding[name] = Encoding(style=style, explode=explode, nested=swagger2.nested_styles(one))
    required = [one.value["name"] for one in fields if one.value.get("required") is True]
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    whole |= {"required": required} if required else {}
    offered = [one for one in consumes if media_type(one) in _FORMS]
    if any(one.file for one in encoding.values()):
        content_type = next((one for one in offered if media_type(one) == _FORMS[0]), _FORMS[0])
    else:
        content_type = min(offered, key=media_type_rank, default=_FORMS[1])
    return ApiBody(content_type, whole, bool(required), encoding=encoding)


def _media_types(operation: Node, key: str) -> list[str]:
    for owner in (operation, operation.context.root):
        listed = owner.value.get(key)
        listed = [listed] if isinstance(listed, str) else listed
        if isinstance(listed, list):
            return [one for one in listed if isinstance(one, str) and "/" in one]
    return []
