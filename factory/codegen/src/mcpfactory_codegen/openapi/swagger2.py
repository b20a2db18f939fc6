"""Conversion of Swagger 2.0 objects to OpenAPI 3, with unchanged pointers."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.openapi.context import Node
from mcpfactory_runtime.upstream.operation import QueryStyle

_IN_PARAMETER: Final = frozenset(
    {
        "type", "format", "items", "default", "enum", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "x-nullable", "nullable",
        "properties", "additionalProperties", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip
"""Schema keywords of the Parameter Object (Swagger 2.0), and keywords that documents often add to this object."""

_COLLECTION: Final[dict[str, tuple[QueryStyle, bool]]] = {
    # collectionFormat → (style, explode); "csv" is the default, and the only value for path and header parameters
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_FLOWS: Final = {"accessCode": "authorizationCode", "application": "clientCredentials"}


def extract_inline_schema(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema from the keywords of the parameter or header object itself."""
    schema = {key: value for key, value in node.items() if key in _IN_PARAMETER}
    if isinstance(node.get("schema"), dict):
        return {**node["schema"], **schema}
    return schema


def parameter(node: Node) -> Node:
    """Return a query, path or header parameter with `schema`, `style` and `explode`."""
    written = node.value
    shaped = {key: written[key] for key in ("name", "in", "required", "description", "deprecated") if key in written}
    shaped["schema"] = extract_inline_schema(written)
    for key in ("example", "x-example"):
        if key in written:
            shaped["example"] = written[key]
    style, explode = convert_collection_format(node)
    if written.get("type") == "array" and written["in"] == "query":
        shaped["style"], shaped["explode"] = style, explode
    return node.with_value(shaped)


def convert_collection_format(node: Node) -> tuple[QueryStyle, bool]:
    """Return `style` and `explode` of an array parameter, from its `collectionFormat` or the default csv."""
    written, place = node.value.get("collectionFormat"), node.value.get("in", "items")
    if written is None:
        return _COLLECTION["csv"]
    exists = isinstance(written, str) and written in _COLLECTION
    if exists and (written != "multi" or place in ("query", "formData")):
        return _COLLECTION[written]
    message = f"the collectionFormat {str(written)[:40]!r} does not exist in {place}; csv is used"
    node.at("collectionFormat").report("parameter-style", message, f"one of {', '.join(_COLLECTION)}")
    return _COLLECTION["csv"]


def nested_styles(node: Node) -> tuple[QueryStyle, ...]:
    """Return the styles of the arrays in an array parameter, outermost first (Items Object)."""
    items = node.at("items")
    if node.value.get("type") != "array" or items.table.get("type") != "array":
        return ()
    return (convert_collection_format(items)[0], *nested_styles(items))


def server_urls(root: Node, schemes: Any = None) -> list[tuple[str, Node]]:
    """Return base URLs from `schemes`, `host` and `basePath`, or relative URLs without a host."""
    host, base = root.value.get("host"), root.value.get("basePath")
    base = base if isinstance(base, str) else ""
    if isinstance(host, str) and (found := re.match(r"(https?)://([^/]+)(/.*)?", host.strip())):
        message = f"the host {host[:200]!r} has a scheme or a path; read as {found[2]!r}"
        root.at("host").report("server-invalid", message, "write only the host")
        host = found[2] + (found[3] or "").rstrip("/")
        schemes = schemes or [found[1]]
    if not isinstance(host, str) or not host:
        return [(base or "/", root.at("basePath"))]
    listed = schemes if isinstance(schemes, list) else root.value.get("schemes")
    listed = [listed] if isinstance(listed, str) else listed
    usable = [one for one in ("https", "http") if isinstance(listed, list) and one in listed]
    if not usable:
        own = root.context.document.source.partition("://")[0]
        usable = [own if own in {"http", "https"} else "https"]
    path = base if base.startswith("/") or not base else f"/{base}"
    return [(f"{one}://{host}{path}", root.at("host")) for one in usable]


def convert_security_scheme(node: dict[str, Any]) -> dict[str, Any]:
    """Return a security definition in the form of OpenAPI 3."""
    if node.get("type") == "basic":
        return {**node, "type": "http", "scheme": "basic"}
    if node.get("type") == "oauth2":
        flow = node.get("flow")
        flow = _FLOWS.get(flow, flow) if isinstance(flow, str) else "implicit"
        urls = {key: node[key] for key in ("authorizationUrl", "tokenUrl") if key in node}
        flows: dict[str, Any] = {flow: {**urls, "scopes": node.get("scopes", {})}}
        return {"type": "oauth2", "description": node.get("description"), "flows": flows}
    return node
