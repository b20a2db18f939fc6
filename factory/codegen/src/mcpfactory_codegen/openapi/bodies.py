"""Request bodies: the media type that is used, its schema, and how form fields travel (OpenAPI 3.1 §4.8.13 to §4.8.15)."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_codegen.ir import Body, Encoding
from mcpfactory_codegen.openapi import lenient, swagger2
from mcpfactory_codegen.openapi.media import Media, choose, essence, file_like, is_json, properties_of, read_media
from mcpfactory_codegen.openapi.reading import BrokenError, Reading
from mcpfactory_codegen.openapi.references import Place, Target, UnresolvedError
from mcpfactory_codegen.openapi.xml import as_xml
from mcpfactory_runtime.upstream.styles import FORM_STYLES

__all__ = ["read_body"]

_CONCRETE: Final = {
    "*/*": "application/json",
    "application/*": "application/json",
    "text/*": "text/plain",
    "multipart/*": "multipart/form-data",
}


def read_body(reading: Reading, operation: Target, parameters: list[Target]) -> Body | None:
    """Return the body of one operation, or None.

    Raises:
        BrokenError: there is a body, but what it is cannot be found out.
    """
    written = operation.node.get("requestBody")
    old = reading.dialect.shape == "2"
    if parameters and (old or written is None):
        if not old:
            message = "the body is described among the parameters, as in Swagger 2.0; read so"
            reading.report("body-shape", parameters[0].place, message, "write `requestBody`")
        return swagger2.body(reading, parameters, swagger2.media_types(reading, operation.node, "consumes"))
    if old and written is not None:
        message = "`requestBody` does not exist in Swagger 2.0; read as in 3.x"
        reading.report("body-shape", operation.place.down("requestBody"), message, "write a parameter `in: body`")
    if written is None:
        return None
    place = operation.place.down("requestBody")
    try:
        node, place = reading.references.follow(written, place)
    except UnresolvedError as error:
        raise BrokenError(error.code, place, f"its request body is missing: {error}", error.hint) from None
    if not isinstance(node, dict):
        raise BrokenError(
            "body-invalid", place, "its request body is not an object", "write `content` with a media type"
        )
    node = lenient.flags(reading, node, place, ("required",))
    media = _shortened(reading, node, place) or choose(reading, node.get("content"), place.down("content"))
    if media is None:
        reading.report(
            "body-empty", place, "the request body names no media type, so nothing can be sent", "add `content`"
        )
        return None
    schema = read_media(reading, media, "request")
    body = Body(
        content_type=_concrete(reading, media),
        schema={} if schema is None else schema,
        required=node.get("required") is True,
        description=reading.text(node.get("description"), place.down("description")),
        encoding=_encoding(reading, media),
        example=reading.example(media.node, media.place),
    )
    return as_xml(reading, body, Target(media.node.get("schema"), media.place.down("schema")))


def _shortened(reading: Reading, node: dict[str, Any], place: Place) -> Media | None:
    """Return a body whose schema stands where its media type should: in itself, or directly below `content`."""
    content = node.get("content")
    inside = isinstance(content, dict) and "schema" in content and not any("/" in key for key in content)
    if not inside and ("schema" not in node or content):
        return None
    where = place.down("content") if inside else place
    message = "the body has a schema but names no media type; read as application/json"
    reading.report("body-shape", where, message, "put it below `content: {application/json: {schema: …}}`")
    return Media("application/json", content if inside and isinstance(content, dict) else node, where)


def _concrete(reading: Reading, media: Media) -> str:
    """Something that can be sent as Content-Type."""
    name = essence(media.content_type)
    if "*" not in name:
        return media.content_type
    concrete = _CONCRETE.get(name, "application/octet-stream")
    if concrete == "application/json" and file_like(reading, media.node.get("schema"), media.place.down("schema")):
        concrete = "application/octet-stream"
    reading.report(
        "body-media", media.place, f"{media.content_type!r} stands for any media type; {concrete} is sent", "name one"
    )
    return concrete


def _encoding(reading: Reading, media: Media) -> dict[str, Encoding]:
    form = essence(media.content_type) == "application/x-www-form-urlencoded"
    if not form and not essence(media.content_type).startswith("multipart/"):
        return {}
    place = media.place.down("encoding")
    written = media.node.get("encoding")
    if written is not None and not isinstance(written, dict):
        reading.report("body-encoding", place, "`encoding` has to be an object of properties; ignored")
        written = None
    written = written or {}
    for keyword in ("prefixEncoding", "itemEncoding"):
        if keyword in media.node:
            reading.report("body-encoding", media.place.down(keyword), f"{keyword} is not supported; ignored")
    known = properties_of(reading, media.node.get("schema"), media.place.down("schema"))
    result: dict[str, Encoding] = {}
    for name in [*known, *(name for name in written if name not in known)]:
        one = written.get(name)
        if one is not None and not isinstance(one, dict):
            reading.report("body-encoding", place.down(name), "an encoding has to be an object; ignored")
            one = None
        encoding = _one(reading, Target(one or {}, place.down(name)), known.get(name), form)
        if encoding != Encoding():
            result[name] = encoding
    return result


def _one(reading: Reading, target: Target, schema: Target | None, form: bool) -> Encoding:
    node = target.node
    content_type = node.get("contentType")
    written, explode = node.get("style"), node.get("explode")
    style = next((one for one in FORM_STYLES if one == written), None)
    if written is not None and style is None:
        message = f"the style {str(written)[:40]!r} does not exist in a form; ignored"
        reading.report("body-encoding", target.place.down("style"), message, f"one of {', '.join(FORM_STYLES)}")
    content_type = content_type if isinstance(content_type, str) else ""
    file = not form and schema is not None and (file_like(reading, *schema) or _untyped_file(schema, content_type))
    return Encoding(
        content_type=content_type,
        style=style or "",
        explode=explode if isinstance(explode, bool) else None,
        allow_reserved=node.get("allowReserved") is True,
        file=file,
    )


def _untyped_file(schema: Target, content_type: str) -> bool:
    """3.1 leaves the type of raw bytes out and names their media type in the encoding."""
    node = schema.node
    untyped = node is True or (
        isinstance(node, dict) and not node.keys() - {"description", "title", "example", "examples", "deprecated"}
    )
    return untyped and content_type != "" and not is_json(content_type) and not content_type.startswith("text/")
