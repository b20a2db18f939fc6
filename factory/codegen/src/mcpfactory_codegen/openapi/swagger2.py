"""Conversion of Swagger 2.0 to the shapes of OpenAPI 3, one object at a time during reading.

Pointers remain those of the document.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Location
from mcpfactory_runtime.upstream.operation import QueryStyle

_IN_PARAMETER: Final = frozenset(
    {
        "type", "format", "items", "default", "enum", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "x-nullable", "nullable",
        "properties", "additionalProperties", "allOf", "anyOf", "oneOf",
    }
)  # fmt: skip
"""Schema keywords in the parameter itself (Swagger 2.0, Parameter Object), and common additions to them."""

_COLLECTION: Final[dict[str, tuple[QueryStyle, bool]]] = {
    # collectionFormat → style, explode. In path and header only csv exists, and that is the default there.
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_FLOWS: Final = {"accessCode": "authorizationCode", "application": "clientCredentials"}


def schema_in(node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema whose keywords stand in a parameter or header object."""
    schema = {key: value for key, value in node.items() if key in _IN_PARAMETER}
    if isinstance(node.get("schema"), dict):
        return {**node["schema"], **schema}
    return schema


def parameter(reading: Reading, node: dict[str, Any], location: Location) -> dict[str, Any]:
    """Return a query, path or header parameter with `schema`, `style` and `explode`."""
    shaped: dict[str, Any] = {
        key: node[key] for key in ("name", "in", "required", "description", "deprecated") if key in node
    }
    shaped["schema"] = schema_in(node)
    for key in ("example", "x-example"):
        if key in node:
            shaped["example"] = node[key]
    style, explode = collection_style(reading, node, location)
    if node.get("type") == "array" and node["in"] == "query":
        shaped["style"], shaped["explode"] = style, explode
    return shaped


def parameter_in_itself(reading: Reading, node: dict[str, Any], location: Location) -> dict[str, Any]:
    """Return a parameter of 3.x that says how its items travel in the words of Swagger 2.0."""
    if node.get("in") == "query" and "collectionFormat" in node and "style" not in node:
        style, explode = collection_style(reading, node, location)
        return {**node, "style": style, "explode": explode}
    return node


def collection_style(reading: Reading, node: dict[str, Any], location: Location) -> tuple[QueryStyle, bool]:
    """Return style and explode of an array parameter; `collectionFormat` defaults to csv."""
    written = node.get("collectionFormat")
    if written is None:
        return _COLLECTION["csv"]
    exists = isinstance(written, str) and written in _COLLECTION
    if exists and (written != "multi" or node["in"] in ("query", "formData")):
        return _COLLECTION[written]
    message = f"the collectionFormat {str(written)[:40]!r} does not exist in {node['in']}; csv is used"
    reading.report("parameter-style", location.down("collectionFormat"), message, f"one of {', '.join(_COLLECTION)}")
    return _COLLECTION["csv"]


def server_urls(reading: Reading, schemes: Any = None) -> list[tuple[str, Location]]:
    """Return base URLs from `schemes`, `host` and `basePath`; relative when the host is not given (it is the document's own)."""
    data = reading.document.data
    host, base = data.get("host"), data.get("basePath")
    base = base if isinstance(base, str) else ""
    if isinstance(host, str) and (found := re.match(r"(https?)://([^/]+)(/.*)?", host.strip())):
        message = f"the host {host[:200]!r} has a scheme or a path; read as {found[2]!r}"
        reading.report("server-invalid", Location("", "/host"), message, "write the host alone")
        host = found[2] + (found[3] or "").rstrip("/")
        schemes = schemes or [found[1]]
    if not isinstance(host, str) or not host:
        return [(base or "/", Location("", "/basePath"))]
    listed = schemes if isinstance(schemes, list) else data.get("schemes")
    listed = [listed] if isinstance(listed, str) else listed
    usable = [one for one in ("https", "http") if isinstance(listed, list) and one in listed]
    if not usable:
        own = reading.document.source.partition("://")[0]
        usable = [own if own in {"http", "https"} else "https"]
    return [
        (f"{one}://{host}{base if base.startswith('/') or not base else '/' + base}", Location("", "/host"))
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
