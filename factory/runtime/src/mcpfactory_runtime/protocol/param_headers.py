"""`x-mcp-header`: arguments mirrored in HTTP headers, so that proxies can route without reading bodies.

basic/transports/streamable-http, Custom Headers; it exists where `Revision.method_header` is set.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, McpError

__all__ = ["Mirrored", "check_mirrored", "decode_header", "find_mirrored", "refuse_invalid"]

Json = dict[str, Any]
Mirrored = tuple[tuple[str, tuple[str, ...]], ...]
"""(lower-case header name, path of the argument) for each annotated property."""

_TOKEN: Final = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")  # RFC 9110 §5.6.2
_TYPES: Final = {"string", "integer", "boolean"}
_SENTINEL: Final = re.compile(r"^=\?base64\?(.*)\?=$")
_ABSENT: Final = object()


def find_mirrored(schema: Any) -> Mirrored:
    """Return the valid annotations of an input schema; the invalid ones mean nothing.

    Only properties that are reached through `properties` count, of type string, integer or boolean, with a header name
    that is a token and unique regardless of case.
    """
    found: dict[str, tuple[str, ...]] = {}
    doubled: set[str] = set()

    def walk(node: Any, path: tuple[str, ...]) -> None:
        properties = node.get("properties") if isinstance(node, dict) else None
        if not isinstance(properties, dict):
            return
        for name, inner in properties.items():
            if not isinstance(inner, dict):
                continue
            header = inner.get("x-mcp-header")
            if isinstance(header, str) and _TOKEN.match(header) and inner.get("type") in _TYPES:
                key = f"mcp-param-{header.lower()}"
                if key in found:
                    doubled.add(key)
                found[key] = (*path, name)
            walk(inner, (*path, name))

    walk(schema, ())
    return tuple((header, path) for header, path in found.items() if header not in doubled)


def refuse_invalid(tool: str, schema: Any) -> None:
    """See that every annotation of an input schema is valid: clients drop tools with invalid ones.

    Raises:
        ValueError: one is not; the message names the tool.
    """

    def count(node: Any) -> int:
        if isinstance(node, list):
            return sum(map(count, node))
        if not isinstance(node, dict):
            return 0
        own = "x-mcp-header" in node and not isinstance(node["x-mcp-header"], dict)  # else it is a property's name
        return own + sum(map(count, node.values()))

    if count(schema) != len(find_mirrored(schema)):
        raise ValueError(
            f"tool {tool}: an x-mcp-header annotation is invalid\nhint: give each a header name of its own, on strings, "
            "integers and booleans that are reached by properties alone"
        )


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
