"""What a message of the per-request lifecycle repeats as HTTP headers (basic/transports/streamable-http, Request Headers)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.protocol.methods import CALL_TOOL, METHODS
from mcpfactory_runtime.protocol.param_headers import mirror_annotations
from mcpfactory_runtime.revisions import Revision

__all__ = ["encode_value", "header_parameters", "modern_headers"]

Json = dict[str, Any]
Path = tuple[str, ...]

_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


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
    found = mirror_annotations(tool.get("inputSchema"))
    return {path: header for path, header, _ in found if path and isinstance(header, str) and header}


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows no difference, and an integer is written without a point
    return value if isinstance(value, str | int) else None
