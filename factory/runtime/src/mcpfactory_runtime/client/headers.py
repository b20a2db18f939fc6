"""What a message of the per-request lifecycle repeats as HTTP headers (basic/transports/streamable-http, Request Headers)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_runtime.protocol.methods import CALL_TOOL, METHODS
from mcpfactory_runtime.revisions import Revision

__all__ = ["annotation_fault", "encode_value", "header_parameters", "modern_headers"]

Json = dict[str, Any]
Path = tuple[str, ...]

_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
_TYPES: Final = frozenset({"string", "integer", "boolean"})
# Where JSON Schema keeps other schemas, `properties` apart: one, a list of them, or a map of them.
_ONE: Final = (
    *("items", "contains", "additionalProperties", "additionalItems", "propertyNames", "contentSchema"),
    *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
)
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPS: Final = ("patternProperties", "dependentSchemas", "$defs", "definitions")


def modern_headers(
    message: Json, version: str, revision: Revision, parameters: Mapping[str, Mapping[Path, str]]
) -> dict[str, str]:
    """Return the headers for a message.

    Args:
        message: a request or notification.
        version: the protocol revision's name, as it is sent.
        revision: the record by which methods are known.
        parameters: tool → path of an argument → header name, from `header_parameters`.
    """
    method, params = message.get("method", ""), message.get("params") or {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": str(method)}
    row = revision.rows["methods"].get(str(method), "")
    name = params.get(METHODS[row].named) if row else None
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    if row == CALL_TOOL:
        for path, header in parameters.get(str(name), {}).items():
            value = _at(params.get("arguments"), path)
            if value is not None:
                headers[f"Mcp-Param-{header}"] = encode_value(value)
    return headers


def encode_value(value: Any) -> str:
    """Return a string, integer or boolean as a header value; base64 between markers where plain text would not survive."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if _PLAIN.fullmatch(text) and not looks_encoded:
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def header_parameters(tool: Json) -> dict[Path, str]:
    """Return the arguments of a tool that travel as headers too: those with a valid `x-mcp-header`."""
    found = _annotated(tool.get("inputSchema"), ())
    return {path: header for path, header, _ in found if path is not None and isinstance(header, str) and header}


def annotation_fault(tool: Json) -> str:
    """Return why a client must leave this tool out over HTTP; "" when nothing speaks against it (Custom Headers, Schema Extension)."""
    seen: set[str] = set()
    for path, header, kind in _annotated(tool.get("inputSchema"), ()):
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            return f"x-mcp-header {header!r} is no header name"
        if path is None or path == ():
            return f"x-mcp-header {header!r} is not on a property that is reached by `properties` alone"
        if kind not in _TYPES:
            return f"x-mcp-header {header!r} is on {'.'.join(path)}, which is no string, integer or boolean"
        if header.lower() in seen:
            return f"x-mcp-header {header!r} is there twice"
        seen.add(header.lower())
    return ""


def _annotated(schema: Any, path: Path | None) -> Iterator[tuple[Path | None, Any, Any]]:
    """(path, header, type) of all annotations; the path is None where other keywords than `properties` lead."""
    stack = [(schema, path)]
    while stack:
        node, here = stack.pop()
        if not isinstance(node, dict):
            continue
        if "x-mcp-header" in node:
            kind = node.get("type")
            yield here, node["x-mcp-header"], kind if isinstance(kind, str) else None
        properties = node.get("properties")
        if isinstance(properties, dict):
            stack += [(inner, None if here is None else (*here, str(name))) for name, inner in properties.items()]
        stack += [(node.get(word), None) for word in _ONE]
        stack += [(inner, None) for word in _LISTS if isinstance(node.get(word), list) for inner in node[word]]
        stack += [(inner, None) for word in _MAPS if isinstance(node.get(word), dict) for inner in node[word].values()]


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows no difference, and an integer is written without a point
    return value if isinstance(value, str | int) else None
