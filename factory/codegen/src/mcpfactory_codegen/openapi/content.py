"""Request bodies and responses: which media type is used, its schema, and how form fields travel (OpenAPI 3.1 §4.8.13 to §4.8.17)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import MISLABELED, ApiBody, Encoding, JsonSchema, Response, essence, is_json
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.reading import BrokenError, Direction, Reading, flags
from mcpfactory_codegen.openapi.references import LocatedNode, Location, UnresolvedError, file_like, properties_of
from mcpfactory_codegen.openapi.xml import as_xml, has_structure, xml_lists
from mcpfactory_runtime.upstream.encoding import JSON_LINES, is_xml
from mcpfactory_runtime.upstream.operation import FORM_STYLES

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+(\s*;[\x20-\x7e]*)?\Z")


class Media(NamedTuple):
    """The chosen media type, its object and the object's location."""

    content_type: str
    node: dict[str, Any]
    location: Location


_RANKS: Final = (
    (r"application/json", 0),
    (r".*/json|.*\+json", 1),
    (r"application/x-www-form-urlencoded", 2),
    (r"multipart/form-data", 3),
    (r"text/plain", 5),
    (r"text/.*", 6),
    (r".*\*.*", 7),
)
"""Media types in order of preference: JSON, then types with defined field encodings, text, and raw content."""
_LAST: Final = 8
_XML: Final = 4  # where its members are described: as plain text it would be the model's to write
_NO_LIST: Final = re.compile(r"application/([\w.-]*-)?merge-patch\+json")
_LIST: Final = re.compile(r"application/json-patch\+json")


def rank(content_type: str) -> int:
    """Return the place of a media type among several that describe the same."""
    name = essence(content_type)
    return next((place for pattern, place in _RANKS if re.fullmatch(pattern, name)), _LAST)


def _fitting_rank(reading: Reading, content_type: str, schema: Any, location: Location) -> int:
    """Return the preference rank of a media type; types that do not fit their schema come last.

    media type                        fits
    application/json-patch+json       lists (RFC 6902)
    application/merge-patch+json      anything but lists (RFC 7396); Kubernetes also has a strategic one
    XML                               objects, before text
    """
    name = essence(content_type)
    if _LIST.fullmatch(name) or _NO_LIST.fullmatch(name):
        fits = _is_list(reading, schema, location) is (_LIST.fullmatch(name) is not None)
        return rank(content_type) if fits else _LAST + 1
    if name.endswith(("/xml", "+xml")) and properties_of(reading.references, schema, location):
        return _XML
    return rank(content_type)


def _carries_files(reading: Reading, schemas: dict[str, LocatedNode]) -> bool:
    """Return True if `multipart/form-data` has files and no preferred media type omits them."""
    known = {name: properties_of(reading.references, *one) for name, one in schemas.items()}
    parts = known.get("multipart/form-data", {})
    files = {name for name, one in parts.items() if file_like(reading.references, *one)}
    others = [found for name, found in known.items() if rank(name) < rank("multipart/form-data")]
    return bool(files) and all(files <= found.keys() for found in others)


def _is_list(reading: Reading, schema: Any, location: Location) -> bool:
    node = _followed(reading, schema, location)
    return node.get("type") == "array" or "items" in node


def _is_object(reading: Reading, schema: Any, location: Location) -> bool:
    typed = _followed(reading, schema, location).get("type") == "object"
    return typed or bool(properties_of(reading.references, schema, location))


def _followed(reading: Reading, schema: Any, location: Location) -> dict[str, Any]:
    try:
        node, _ = reading.references.follow(schema, location)
    except UnresolvedError:
        return {}
    return node if isinstance(node, dict) else {}


def choose(reading: Reading, content: Any, location: Location) -> Media | None:
    """Return the preferred media type of a `content` map, or None if it has no usable one."""
    content, location = reading.references.mapping(content, location)
    if not isinstance(content, dict):
        if content is not None:
            reading.report("media-invalid", location, "`content` has to be an object of media types; ignored")
        return None
    usable: dict[str, str] = {}  # media type → its key in the document
    for key in content:
        name = key.partition(",")[0].strip()  # a list, as an Accept header has it: its first entry
        name = SHORT_MEDIA.get(name.lower(), name)
        if _MEDIA_TYPE.match(name):
            usable.setdefault(name, key)
        if name != key or name not in usable:
            if key.startswith("x-"):
                continue
            intended = f"read as {name}" if name in usable else "ignored"
            message = f"{key[:80]!r} is no media type; {intended}"
            reading.report("media-invalid", location.down(key), message, "write, say, application/json")
    if not usable:
        return None
    name = next(iter(usable)) if len(usable) == 1 else _best(reading, usable, content, location)
    location = location.down(usable[name])
    target = reading.follow(content[usable[name]], location)
    if target is None or not isinstance(target.node, dict):
        if target is not None and target.node is not None:
            reading.report("media-invalid", location, "a media type has to be an object; anything is accepted")
        return Media(name, {}, location)
    return Media(name, target.node, target.location)


def _best(reading: Reading, usable: dict[str, str], content: dict[str, Any], location: Location) -> str:
    """Return the media type that fits its schema best, the first of equals."""
    schemas = {}
    for name, key in usable.items():
        node, at = reading.references.mapping(content[key], location.down(key))
        schemas[name] = LocatedNode(node.get("schema") if isinstance(node, dict) else None, at.down("schema"))
    if _carries_files(reading, schemas):
        return "multipart/form-data"
    return min(usable, key=lambda name: _fitting_rank(reading, name, *schemas[name]))


def read_media(reading: Reading, media: Media, direction: Direction) -> JsonSchema | None:
    """Return the schema of a media type, None if missing. For streams of items (3.2), return the list schema."""
    for keyword in ("schema", "itemSchema"):
        if keyword in media.node:
            schema = reading.translate(media.node[keyword], media.location.down(keyword), direction)
            return schema if keyword == "schema" else {"type": "array", "items": schema}
    return None


SHORT_MEDIA: Final = {
    "json": "application/json",
    "xml": "application/xml",
    "form": "application/x-www-form-urlencoded",
    "form-data": "multipart/form-data",
    "application/form-data": "multipart/form-data",
    "text": "text/plain",
    "html": "text/html",
    "binary": "application/octet-stream",
}


# --- Request bodies: the media type that is used, its schema, and how form fields travel (OpenAPI 3.1 §4.8.13 to §4.8.15) ---


_FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
_CONCRETE: Final = {
    "*/*": "application/json",
    "application/*": "application/json",
    "text/*": "text/plain",
    "multipart/*": "multipart/form-data",
}


def read_body(reading: Reading, operation: LocatedNode, parameters: list[LocatedNode]) -> ApiBody | None:
    """Return the body of one operation, or None.

    Raises:
        BrokenError: there is a body, but its definition cannot be resolved.
    """
    written = operation.node.get("requestBody")
    old = reading.spec.shape == "2"
    if parameters and (old or written is None):
        if not old:
            message = "the body is described among the parameters, as in Swagger 2.0; read so"
            reading.report("body-shape", parameters[0].location, message, "write `requestBody`")
        return _body_of_2(reading, parameters, _media_types(reading, operation.node, "consumes"))
    if old and written is not None:
        message = "`requestBody` does not exist in Swagger 2.0; read as in 3.x"
        reading.report("body-shape", operation.location.down("requestBody"), message, "write a parameter `in: body`")
    if written is None:
        return None
    location = operation.location.down("requestBody")
    try:
        node, location = reading.references.follow(written, location)
    except UnresolvedError as error:
        raise BrokenError(error.code, location, f"its request body is missing: {error}", error.hint) from None
    if not isinstance(node, dict):
        raise BrokenError(
            "body-invalid", location, "its request body is not an object", "write `content` with a media type"
        )
    node = flags(reading, node, location, ("required",))
    media = _shortened(reading, node, location) or choose(reading, node.get("content"), location.down("content"))
    if media is None:
        reading.report(
            "body-empty", location, "the request body names no media type, so nothing can be sent", "add `content`"
        )
        return None
    schema = read_media(reading, media, "request")
    body = ApiBody(
        content_type=_concrete(reading, media),
        schema={} if schema is None else schema,
        required=node.get("required") is True,
        description=reading.text(node.get("description"), location.down("description")),
        encoding=_encoding(reading, media),
        example=reading.example(media.node, media.location),
    )
    return _sendable(reading, body, LocatedNode(media.node.get("schema"), media.location.down("schema")))


def _sendable(reading: Reading, body: ApiBody, schema: LocatedNode) -> ApiBody:
    """Return the body; one that cannot carry its object or list becomes JSON if its label is likely wrong, else one text."""
    kind = essence(body.content_type)
    if is_json(kind) or not has_structure(reading, schema):
        return body
    is_list = _is_list(reading, *schema)
    if (is_list and kind in _FORMS) or (MISLABELED.fullmatch(kind) and (is_list or _is_object(reading, *schema))):
        sent = "application/json is sent"
        body = replace(body, content_type="application/json", encoding={})
    elif kind in JSON_LINES if is_list else kind in _FORMS or kind.startswith("multipart/"):
        return body
    elif kind.endswith(("/xml", "+xml")):
        return as_xml(reading, body, schema)
    else:
        sent = "the body is one text argument"
        text: JsonSchema = {"type": "string", "description": f"The body as {kind[:80]}."}
        body = replace(body, schema=text, encoding={}, example=None)
    message = f"{kind[:80]!r} cannot carry {'a list' if is_list else 'an object'}; {sent}"
    reading.report("body-media", schema.location, message, "name the media type that the API reads")
    return body


def _shortened(reading: Reading, node: dict[str, Any], location: Location) -> Media | None:
    """Return a body whose media type is missing: its schema is in the body itself, or directly below `content`."""
    content = node.get("content")
    inside = isinstance(content, dict) and "schema" in content and not any("/" in key for key in content)
    if not inside and ("schema" not in node or content):
        return None
    where = location.down("content") if inside else location
    message = "the body has a schema but names no media type; read as application/json"
    reading.report("body-shape", where, message, "put it below `content: {application/json: {schema: …}}`")
    return Media("application/json", content if inside and isinstance(content, dict) else node, where)


def _concrete(reading: Reading, media: Media) -> str:
    name = essence(media.content_type)
    if "*" not in name:
        return media.content_type
    concrete = _CONCRETE.get(name, "application/octet-stream")
    if concrete == "application/json" and file_like(
        reading.references, media.node.get("schema"), media.location.down("schema")
    ):
        concrete = "application/octet-stream"
    reading.report(
        "body-media",
        media.location,
        f"{media.content_type!r} stands for any media type; {concrete} is sent",
        "name one",
    )
    return concrete


def _encoding(reading: Reading, media: Media) -> dict[str, Encoding]:
    form = essence(media.content_type) == "application/x-www-form-urlencoded"
    if not form and not essence(media.content_type).startswith("multipart/"):
        return {}
    location = media.location.down("encoding")
    written = media.node.get("encoding")
    if written is not None and not isinstance(written, dict):
        reading.report("body-encoding", location, "`encoding` has to be an object of properties; ignored")
        written = None
    written = written or {}
    for keyword in ("prefixEncoding", "itemEncoding"):
        if keyword in media.node:
            reading.report("body-encoding", media.location.down(keyword), f"{keyword} is not supported; ignored")
    known = properties_of(reading.references, media.node.get("schema"), media.location.down("schema"))
    result: dict[str, Encoding] = {}
    for name in [*known, *(name for name in written if name not in known)]:
        one = written.get(name)
        if one is not None and not isinstance(one, dict):
            reading.report("body-encoding", location.down(name), "an encoding has to be an object; ignored")
            one = None
        encoding = _read_encoding(reading, LocatedNode(one or {}, location.down(name)), known.get(name), form)
        if encoding != Encoding():
            result[name] = encoding
    return result


def _read_encoding(reading: Reading, target: LocatedNode, schema: LocatedNode | None, form: bool) -> Encoding:
    node = target.node
    content_type = node.get("contentType")
    written, explode = node.get("style"), node.get("explode")
    style = next((one for one in FORM_STYLES if one == written), None)
    if written is not None and style is None:
        message = f"the style {str(written)[:40]!r} does not exist in a form; ignored"
        reading.report("body-encoding", target.location.down("style"), message, f"one of {', '.join(FORM_STYLES)}")
    content_type = content_type if isinstance(content_type, str) else ""
    file = (
        not form
        and schema is not None
        and (file_like(reading.references, *schema) or _untyped_file(schema, content_type))
    )
    return Encoding(
        content_type=content_type,
        style=style or "",
        explode=explode if isinstance(explode, bool) else None,
        allow_reserved=node.get("allowReserved") is True,
        file=file,
    )


def _untyped_file(schema: LocatedNode, content_type: str) -> bool:
    """3.1 leaves the type of raw bytes out and names their media type in the encoding."""
    node = schema.node
    untyped = node is True or (
        isinstance(node, dict) and not node.keys() - {"description", "title", "example", "examples", "deprecated"}
    )
    return untyped and content_type != "" and not is_json(content_type) and not content_type.startswith("text/")


# --- Responses: each status with one media type; those of success first ---


_STATUS: Final = re.compile(r"[1-5](?:[0-9][0-9]|XX)\Z")


def read_responses(reading: Reading, operation: LocatedNode) -> tuple[Response, ...]:
    """All documented responses: 2xx by number, 2XX, default, then the others."""
    node, location = reading.references.mapping(operation.node.get("responses"), operation.location.down("responses"))
    if node is None:
        return ()
    if not isinstance(node, dict):
        reading.report("response-invalid", location, "`responses` has to be an object; ignored")
        return ()
    produces = _media_types(reading, operation.node, "produces") if reading.spec.shape == "2" else []
    found: dict[str, Response] = {}
    for key, one in node.items():
        status = key if key == "default" else key.upper()
        if status.startswith("X-"):
            continue
        if status != "default" and not _STATUS.match(status):
            message = f"{key[:40]!r} is no status; ignored"
            reading.report("response-invalid", location.down(key), message, "write 200, 2XX or default")
            continue
        found.setdefault(status, _read_response(reading, status, one, location.down(key), produces))
    return tuple(sorted(found.values(), key=_order))


def _order(response: Response) -> tuple[int, str]:
    status = response.status
    if status == "default":
        return 1, status
    return (0 if status.startswith("2") else 2), status  # "X" sorts after the digits


def _read_response(reading: Reading, status: str, written: Any, location: Location, produces: list[str]) -> Response:
    target = reading.follow(written, location)
    if target is None:
        return Response(status)
    node, location = target
    if not isinstance(node, dict):
        reading.report("response-invalid", location, "a response has to be an object; nothing is known of it")
        return Response(status)
    known = reading.responses.get(location)
    if known is None or known.status != status:
        known = reading.responses[location] = _described_response(reading, status, node, location, produces)
    return known


def _described_response(
    reading: Reading, status: str, node: dict[str, Any], location: Location, produces: list[str]
) -> Response:
    description = reading.text(node.get("description"), location.down("description"))
    if reading.spec.shape == "2":
        content = _content_of_2(node, produces)
        name = next(iter(content), "")
        schema = reading.translate(node["schema"], location.down("schema"), "response") if "schema" in node else None
        example = content[name].get("example") if name else None
        lists = _lists(reading, name, node, location)
        return Response(status, description, name, schema, example, _headers(node), lists)
    media = choose(reading, node.get("content"), location.down("content"))
    if media is None:
        return Response(status, description, headers=_headers(node))
    schema = read_media(reading, media, "response")
    example = reading.example(media.node, media.location)
    lists = _lists(reading, media.content_type, media.node, media.location)
    return Response(status, description, media.content_type, schema, example, _headers(node), lists)


def _lists(reading: Reading, content_type: str, node: Any, location: Location) -> tuple[tuple[str, str], ...]:
    """Return the lists of an answer in XML; `node` has its `schema`."""
    if is_json(content_type) or not is_xml(content_type):  # most answers are JSON
        return ()
    if not isinstance(node, dict) or not isinstance(node.get("schema"), dict):
        return ()
    return xml_lists(reading, LocatedNode(node["schema"], location.down("schema")))


def _headers(node: dict[str, Any]) -> tuple[str, ...]:
    headers = node.get("headers")
    return tuple(sorted(name.lower() for name in headers)) if isinstance(headers, dict) else ()


# --- Swagger 2.0 ---


def _body_of_2(reading: Reading, parameters: list[LocatedNode], consumes: list[str]) -> ApiBody | None:
    """Return the body that the `body` parameter or the `formData` parameters describe."""
    whole = next((target for target in parameters if target.node["in"] == "body"), None)
    if whole is not None:
        node, location = whole
        for other in parameters:
            if other.node["in"] == "formData":
                message = (
                    f"the operation has a body, so the form field {other.node['name'][:80]!r} cannot be sent; left out"
                )
                reading.report("parameter-ignored", other.location, message, "describe one or the other")
        body = ApiBody(
            content_type=min(
                consumes,
                key=lambda one: _fitting_rank(reading, one, node.get("schema"), location.down("schema")),
                default="application/json",
            ),
            schema=reading.translate(node.get("schema", {}), location.down("schema"), "request"),
            required=node.get("required") is True,
            description=reading.text(node.get("description"), location.down("description")),
            example=node.get("x-example"),
        )
        return _sendable(reading, body, LocatedNode(node.get("schema"), location.down("schema")))
    fields = [target for target in parameters if target.node["in"] == "formData"]
    return _form(reading, fields, consumes) if fields else None


def _form(reading: Reading, fields: list[LocatedNode], consumes: list[str]) -> ApiBody:
    properties: dict[str, JsonSchema] = {}
    encoding: dict[str, Encoding] = {}
    for node, location in fields:
        name = node["name"]
        schema = reading.translate(swagger2.schema_in(node), location, "request")
        description = reading.text(node.get("description"), location.down("description"))
        properties[name] = (
            {**schema, "description": description} if description and isinstance(schema, dict) else schema
        )
        if node.get("type") == "file":
            encoding[name] = Encoding(file=True)
        elif node.get("type") == "array":
            style, explode = swagger2.collection_style(reading, node, location)
            encoding[name] = Encoding(style=style, explode=explode)
    required = [target.node["name"] for target in fields if target.node.get("required") is True]
    schema_: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema_["required"] = required
    offered = [one for one in consumes if essence(one) in _FORMS]
    if any(one.file for one in encoding.values()):
        content_type = next((one for one in offered if essence(one) == _FORMS[0]), _FORMS[0])
    else:
        content_type = min(offered, key=rank, default=_FORMS[1])
    return ApiBody(content_type, schema_, bool(required), encoding=encoding)


def _content_of_2(node: dict[str, Any], produces: list[str]) -> dict[str, Any]:
    """Return the `content` of a response; `schema` and `examples` stand in the response itself."""
    examples = node.get("examples") if isinstance(node.get("examples"), dict) else {}
    assert isinstance(examples, dict)
    if "schema" not in node and not examples:
        return {}
    chosen = min(produces or list(examples), key=rank, default="application/json")
    media = {"schema": node["schema"]} if "schema" in node else {}
    if chosen in examples:
        media["example"] = examples[chosen]
    return {chosen: media}


def _media_types(reading: Reading, operation: dict[str, Any], key: str) -> list[str]:
    """`consumes` or `produces`: the operation's, else the document's."""
    for owner in (operation, reading.document.data):
        listed = owner.get(key)
        listed = [listed] if isinstance(listed, str) else listed
        if isinstance(listed, list):
            return [one for one in listed if isinstance(one, str) and "/" in one]
    return []
