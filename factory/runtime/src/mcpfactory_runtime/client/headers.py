"""What a message of the per-request lifecycle repeats as HTTP headers (basic/transports/streamable-http, Request Headers)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["encode_value", "header_parameters", "modern_headers"]

Json = dict[str, Any]
Path = tuple[str, ...]

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def modern_headers(message: Json, version: str, parameters: Mapping[str, Mapping[Path, str]]) -> dict[str, str]:
    """The headers for a message.

    Args:
        message: a request or notification.
        version: the protocol revision's name.
        parameters: tool → path of an argument → header name, from `header_parameters`.
    """
    method, params = message.get("method", ""), message.get("params") or {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": str(method)}
    name = params.get(_NAMED.get(str(method), ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    if method == "tools/call":
        for path, header in parameters.get(str(name), {}).items():
            value = _at(params.get("arguments"), path)
            if value is not None:
                headers[f"Mcp-Param-{header}"] = encode_value(value)
    return headers


def encode_value(value: Any) -> str:
    """A string, integer or boolean as a header value; base64 between markers where plain text would not survive."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    looks_encoded = text.startswith("=?base64?") and text.endswith("?=")
    if _PLAIN.fullmatch(text) and not looks_encoded:
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def header_parameters(tool: Json) -> dict[Path, str]:
    """The arguments of a tool that travel as headers too: those with `x-mcp-header`, reached by `properties` alone."""
    return dict(_annotated(tool.get("inputSchema"), ()))


def _annotated(schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(inner, dict):
            continue
        header = inner.get("x-mcp-header")
        if isinstance(header, str) and header:
            yield (*path, str(name)), header
        yield from _annotated(inner, (*path, str(name)))


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str | int) else None
