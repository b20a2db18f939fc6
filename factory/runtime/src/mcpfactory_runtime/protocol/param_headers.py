"""`x-mcp-header`: arguments mirrored in HTTP headers, so that proxies can route without reading bodies.

basic/transports/streamable-http, Custom Headers; it exists where `Revision.method_header` is set.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, McpError

__all__ = [
    "Mirrored",
    "annotation_fault",
    "check_mirrored",
    "decode_header",
    "find_mirrored",
    "mirror_annotations",
    "refuse_invalid",
]

Json = dict[str, Any]
Path = tuple[str, ...]
Mirrored = tuple[tuple[str, Path], ...]
"""(lower-case header name, path of the argument) for each annotated property."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
_TYPES: Final = {"string", "integer", "boolean"}
_SENTINEL: Final = re.compile(r"^=\?base64\?(.*)\?=$")
_ABSENT: Final = object()
# Where JSON Schema keeps other schemas, `properties` apart: one, a list of them, or a map of them.
_ONE: Final = (
    *("items", "contains", "additionalProperties", "additionalItems", "propertyNames", "contentSchema"),
    *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
)
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_MAPS: Final = ("patternProperties", "dependentSchemas", "$defs", "definitions")


def find_mirrored(schema: Any) -> Mirrored:
    """Return the valid annotations of an input schema; the invalid ones mean nothing."""
    found: dict[str, Path] = {}
    doubled: set[str] = set()
    for path, header, kind in mirror_annotations(schema):
        if path and not _fault(path, header, kind):
            key = f"mcp-param-{header.lower()}"
            if key in found:
                doubled.add(key)
            found[key] = path
    return tuple((header, path) for header, path in found.items() if header not in doubled)


def annotation_fault(schema: Any) -> str:
    """Return why a client must leave a tool with this input schema out over HTTP; "" when nothing speaks against it (Custom Headers, Schema Extension)."""
    seen: set[str] = set()
    for path, header, kind in mirror_annotations(schema):
        if fault := _fault(path, header, kind):
            return f"x-mcp-header {header!r} {fault}"
        if header.lower() in seen:
            return f"x-mcp-header {header!r} is there twice"
        seen.add(header.lower())
    return ""


def refuse_invalid(tool: str, schema: Any) -> None:
    """See that every annotation of an input schema is valid: clients drop tools with invalid ones.

    Raises:
        ValueError: one is not; the message names the tool.
    """
    if fault := annotation_fault(schema):
        raise ValueError(
            f"tool {tool}: {fault}\nhint: give each a header name of its own, on strings, "
            "integers and booleans that are reached by properties alone"
        )


def mirror_annotations(schema: Any) -> Iterator[tuple[Path | None, Any, Any]]:
    """Yield (path, header, type) of all annotations; the path is None where other keywords than `properties` lead."""
    waiting: list[tuple[Any, Path | None]] = [(schema, ())]
    for node, here in waiting:  # it grows
        if not isinstance(node, dict):
            continue
        if "x-mcp-header" in node:
            kind = node.get("type")
            yield here, node["x-mcp-header"], kind if isinstance(kind, str) else None
        properties = node.get("properties")
        if isinstance(properties, dict):
            waiting += [(inner, None if here is None else (*here, str(name))) for name, inner in properties.items()]
        waiting += [(node.get(word), None) for word in _ONE]
        waiting += [(inner, None) for word in _LISTS if isinstance(node.get(word), list) for inner in node[word]]
        waiting += [
            (inner, None) for word in _MAPS if isinstance(node.get(word), dict) for inner in node[word].values()
        ]


def _fault(path: Path | None, header: Any, kind: Any) -> str:
    """Return what is wrong with one annotation; "" when nothing is."""
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        return "is no header name"
    if not path:
        return "is not on a property that is reached by `properties` alone"
    return "" if kind in _TYPES else f"is on {'.'.join(path)}, which is no string, integer or boolean"


def check_mirrored(mirrored: Mirrored, arguments: Any, headers: Mapping[str, str]) -> None:
    """Compare arguments with their headers.

    Raises:
        McpError: HEADER_MISMATCH when a header is missing, malformed, or says something else.
    """
    for header, path in mirrored:
        value = _at(arguments, path)
        given = headers.get(header)
        if value is _ABSENT or value is None:
            if given is not None:
                raise McpError(HEADER_MISMATCH, f"Header {header} is set but argument {'.'.join(path)} is not")
            continue
        if given is None:
            raise McpError(HEADER_MISMATCH, f"Header {header} is missing; argument {'.'.join(path)} is set")
        if not _same(decode_header(given, header), value):
            raise McpError(HEADER_MISMATCH, f"Header {header} does not match argument {'.'.join(path)}")


def decode_header(value: str, header: str) -> str:
    """Return a header's text, with the base64 sentinel `=?base64?…?=` undone.

    Raises:
        McpError: HEADER_MISMATCH for a sentinel around something that is not base64 of UTF-8.
    """
    value = value.strip(" \t")
    sentinel = _SENTINEL.match(value)
    if sentinel is None:
        return value
    try:
        return b64decode(sentinel[1], validate=True).decode()
    except ValueError:
        raise McpError(HEADER_MISMATCH, f"Header {header} has malformed base64") from None


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, dict) or name not in arguments:
            return _ABSENT
        arguments = arguments[name]
    return arguments


def _same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        try:
            return float(text) == value if "." in text or "e" in text.lower() else int(text) == value
        except ValueError:
            return False
    return bool(text == value)
