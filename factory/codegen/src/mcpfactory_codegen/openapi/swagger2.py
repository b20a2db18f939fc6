"""Swagger 2.0 → the shapes of OpenAPI 3, object by object as they are read. Pointers stay those of the document."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.ir import Body, Encoding, JsonSchema
from mcpfactory_codegen.openapi.media import essence, rank
from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Place, Target
from mcpfactory_codegen.openapi.xml import as_xml
from mcpfactory_runtime.upstream.styles import QueryStyle

__all__ = [
    "body",
    "media_types",
    "parameter",
    "parameter_in_itself",
    "response_content",
    "schema_in",
    "security_scheme",
    "server_urls",
]

_IN_PARAMETER: Final = frozenset(
    {
        "type", "format", "items", "default", "enum", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "x-nullable", "nullable",
        "properties", "additionalProperties", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip
"""Keywords of a schema that stand in the parameter itself (Swagger 2.0, Parameter Object), and what is often added to them."""

_COLLECTION: Final[dict[str, tuple[QueryStyle, bool]]] = {
    # collectionFormat → style, explode. In path and header only csv exists, and that is the default there.
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
_FLOWS: Final = {"accessCode": "authorizationCode", "application": "clientCredentials"}


def schema_in(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema whose keywords stand in a parameter or header object."""
    schema = {key: value for key, value in node.items() if key in _IN_PARAMETER}
    if isinstance(node.get("schema"), dict):
        return {**node["schema"], **schema}
    return schema


def parameter(reading: Reading, node: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a query, path or header parameter with `schema`, `style` and `explode`."""
    shaped: dict[str, Any] = {
        key: node[key] for key in ("name", "in", "required", "description", "deprecated") if key in node
    }
    shaped["schema"] = schema_in(node)
    for key in ("example", "x-example"):
        if key in node:
            shaped["example"] = node[key]
    style, explode = _collection(reading, node, place)
    if node.get("type") == "array" and node["in"] == "query":
        shaped["style"], shaped["explode"] = style, explode
    return shaped


def parameter_in_itself(reading: Reading, node: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a parameter of 3.x that says how its items travel in the words of Swagger 2.0."""
    if node.get("in") == "query" and "collectionFormat" in node and "style" not in node:
        style, explode = _collection(reading, node, place)
        return {**node, "style": style, "explode": explode}
    return node


def _collection(reading: Reading, node: dict[str, Any], place: Place) -> tuple[QueryStyle, bool]:
    """Return style and explode of an array; csv when it says none."""
    written = node.get("collectionFormat")
    if written is None:
        return _COLLECTION["csv"]
    exists = isinstance(written, str) and written in _COLLECTION
    if exists and (written != "multi" or node["in"] in ("query", "formData")):
        return _COLLECTION[written]
    message = f"the collectionFormat {str(written)[:40]!r} does not exist in {node['in']}; csv is used"
    reading.report("parameter-style", place.down("collectionFormat"), message, f"one of {', '.join(_COLLECTION)}")
    return _COLLECTION["csv"]


def media_types(reading: Reading, operation: dict[str, Any], key: str) -> list[str]:
    """`consumes` or `produces`: the operation's, else the document's."""
    for owner in (operation, reading.document.data):
        listed = owner.get(key)
        listed = [listed] if isinstance(listed, str) else listed
        if isinstance(listed, list):
            return [one for one in listed if isinstance(one, str) and "/" in one]
    return []


def body(reading: Reading, parameters: list[Target], consumes: list[str]) -> Body | None:
    """Return the body that the `body` parameter or the `formData` parameters describe."""
    whole = next((target for target in parameters if target.node["in"] == "body"), None)
    if whole is not None:
        node, place = whole
        for other in parameters:
            if other.node["in"] == "formData":
                message = (
                    f"the operation has a body, so the form field {other.node['name'][:80]!r} cannot be sent; left out"
                )
                reading.report("parameter-ignored", other.place, message, "describe one or the other")
        made = Body(
            content_type=min(consumes, key=rank, default="application/json"),
            schema=reading.schemas.translate(node.get("schema", {}), place.down("schema"), "request"),
            required=node.get("required") is True,
            description=reading.text(node.get("description"), place.down("description")),
            example=node.get("x-example"),
        )
        return as_xml(reading, made, Target(node.get("schema"), place.down("schema")))
    fields = [target for target in parameters if target.node["in"] == "formData"]
    return _form(reading, fields, consumes) if fields else None


def _form(reading: Reading, fields: list[Target], consumes: list[str]) -> Body:
    properties: dict[str, JsonSchema] = {}
    encoding: dict[str, Encoding] = {}
    for node, place in fields:
        name = node["name"]
        schema = reading.schemas.translate(schema_in(node), place, "request")
        description = reading.text(node.get("description"), place.down("description"))
        properties[name] = (
            {**schema, "description": description} if description and isinstance(schema, dict) else schema
        )
        if node.get("type") == "file":
            encoding[name] = Encoding(file=True)
        elif node.get("type") == "array":
            style, explode = _collection(reading, node, place)
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
    return Body(content_type, schema_, bool(required), encoding=encoding)


def response_content(node: dict[str, Any], produces: list[str]) -> dict[str, Any]:
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


def server_urls(reading: Reading, schemes: Any = None) -> list[tuple[str, Place]]:
    """Return base URLs from `schemes`, `host` and `basePath`; relative when the host is not given (it is the document's own)."""
    data = reading.document.data
    host, base = data.get("host"), data.get("basePath")
    base = base if isinstance(base, str) else ""
    if isinstance(host, str) and (found := re.match(r"(https?)://([^/]+)(/.*)?", host.strip())):
        message = f"the host {host[:200]!r} has a scheme or a path; read as {found[2]!r}"
        reading.report("server-invalid", Place("", "/host"), message, "write the host alone")
        host = found[2] + (found[3] or "").rstrip("/")
        schemes = schemes or [found[1]]
    if not isinstance(host, str) or not host:
        return [(base or "/", Place("", "/basePath"))]
    listed = schemes if isinstance(schemes, list) else data.get("schemes")
    listed = [listed] if isinstance(listed, str) else listed
    usable = [one for one in ("https", "http") if isinstance(listed, list) and one in listed]
    if not usable:
        own = reading.document.source.partition("://")[0]
        usable = [own if own in {"http", "https"} else "https"]
    return [
        (f"{one}://{host}{base if base.startswith('/') or not base else '/' + base}", Place("", "/host"))
        for one in usable
    ]


def security_scheme(node: dict[str, Any]) -> dict[str, Any]:
    """Return a security definition in the shape of 3.x."""
    if node.get("type") == "basic":
        return {**node, "type": "http", "scheme": "basic"}
    if node.get("type") == "oauth2":
        flow = node.get("flow")
        flow = _FLOWS.get(flow, flow) if isinstance(flow, str) else "implicit"
        urls = {key: node[key] for key in ("authorizationUrl", "tokenUrl") if key in node}
        return {
            "type": "oauth2",
            "description": node.get("description"),
            "flows": {flow: {**urls, "scopes": node.get("scopes", {})}},
        }
    return node
