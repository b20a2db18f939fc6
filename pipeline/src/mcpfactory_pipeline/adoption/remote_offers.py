"""Offers of servers at a URL (tools, resources, prompts): record and comparison."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionSources, CollectedFiles
from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.base.files import unreadable_json_reason
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.text import printable_line
from mcpfactory_pipeline.build.programs import ToolRejectedInputError

_SCHEMA: Final = 1
_KEYS: Final = {"tools": "name", "resources": "uri", "templates": "uriTemplate", "prompts": "name"}
_PATIENCE: Final = 30.0  # seconds; timeout of one request
# The client name of Claude Desktop and claude.ai, because servers may hide tools from unknown clients.
_CLIENT: Final = {"name": "claude-ai", "version": "0.1.0"}
_ENOUGH: Final = 60.0  # seconds; time limit for all requests
_SHOWN: Final = 5  # maximum number of differences in a message

Offers = Mapping[str, Any]


async def fetch_offers(url: str) -> dict[str, Any]:
    """Return the current offers of the server at a URL.

    Raises:
        ServerError: the server does not respond, or does not speak MCP.
    """
    from mcpfactory_runtime import McpError  # noqa: PLC0415 - heavy, and only servers at a URL need it
    from mcpfactory_runtime.client import ConnectionLostError, HttpError, ProtocolError, connect_http  # noqa: PLC0415 - heavy

    try:
        async with asyncio.timeout(_ENOUGH), connect_http(url, timeout=_PATIENCE, info=_CLIENT) as client:
            able = client.capabilities
            found: dict[str, Any] = {
                "tools": await client.list_tools(keep_invalid=True) if "tools" in able else [],
                "resources": await client.list_resources() if "resources" in able else [],
                "templates": await client.list_resource_templates() if "resources" in able else [],
                "prompts": await client.list_prompts() if "prompts" in able else [],
            }
            return {"server": dict(client.server_info), "instructions": client.instructions, **found}
    except (ConnectionLostError, HttpError, ProtocolError, McpError, TimeoutError, OSError) as error:
        raise ServerError(
            f"{url} does not list its tools, resources and prompts: "
            f"{str(error) or f'the lists take more than {_ENOUGH:g} s'}",
            hint="check that the server speaks MCP over Streamable HTTP, and answers without a login",
        ) from error


def offers_to_text(url: str, offers: Offers) -> str:
    """Return the stored text of offers. Each entry has its own line, so that diffs are readable."""
    lines = [f'"offers": {_SCHEMA}', f'"url": {json.dumps(url)}']
    lines += [f'"{key}": {_line(offers.get(key))}' for key in ("server", "instructions")]
    for kind, key in _KEYS.items():
        rows = ",\n".join(_line(row) for row in sorted(offers.get(kind, ()), key=lambda row: _named(row, key)))
        lines.append(f'"{kind}": [\n{rows}\n]' if rows else f'"{kind}": []')
    return "{" + ",\n".join(lines) + "}\n"


def parse_offers(text: bytes) -> dict[str, Any]:
    """Parse the stored text of offers."""
    try:
        data = json.loads(text)
        if data["offers"] != _SCHEMA or not all(isinstance(data[kind], list) for kind in _KEYS):
            raise ValueError("the format is unknown")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolRejectedInputError(
            f"{LOCKS['url']} cannot be read: {unreadable_json_reason(error)}; write a new file with 'mcpfactory adopt URL'"
        ) from error
    return dict(data)


def hash_offers(offers: Offers) -> str:
    """Return a hash of all offers of a server, without the server's name and version."""
    parts: dict[str, Any] = {
        kind: sorted(json.dumps(row, sort_keys=True) for row in offers.get(kind, ())) for kind in _KEYS
    }
    return hash_bytes(json.dumps({"instructions": offers.get("instructions") or "", **parts}, sort_keys=True).encode())


def describe_offer_changes(before: Offers, after: Offers) -> list[str]:
    """Describe changes to a server's offers. The list is empty if the hashes of the offers are equal."""
    if hash_offers(before) == hash_offers(after):
        return []
    found = []
    if (before.get("instructions") or "") != (after.get("instructions") or ""):
        found.append("its instructions changed")
    for kind, key in _KEYS.items():
        old, new = _rows(before.get(kind, ()), key), _rows(after.get(kind, ()), key)
        word = kind[:-1]
        found += [f"{word} {printable_line(name)} is gone" for name in sorted(old.keys() - new.keys())]
        found += [f"{word} {printable_line(name)} is new" for name in sorted(new.keys() - old.keys())]
        for name in sorted(old.keys() & new.keys()):
            if _line(old[name]) != _line(new[name]):
                found.append(printable_line(f"{word} {name} {_changed_parts(old[name], new[name])}"))
    return found or ["the format of its lists changed"]


def _changed_parts(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str:
    """Describe changes of entries that have the same name."""
    if len(old) != len(new):
        return f"is listed {len(new)} times"
    names = sorted({part for rows in zip(old, new, strict=True) for row in rows for part in row})
    changed = (name for name in names if [_line(row.get(name)) for row in old] != [_line(row.get(name)) for row in new])
    return f"has another {', '.join(changed)}"


def summarize_offer_changes(changes: Iterable[str]) -> str:
    """Join the first changes into one text."""
    listed = list(changes)
    more = f"; and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return "; ".join(listed[:_SHOWN]) + more


def collect(sources: AdoptionSources) -> CollectedFiles:
    """Return the reviewed offers of the server."""
    text = sources.lock("url")
    offers = parse_offers(text)
    if offers.get("url") != sources.adopted.url:
        raise ToolRejectedInputError(
            f"{LOCKS['url']} describes another server, {offers.get('url')}: write a new file with 'mcpfactory adopt {sources.adopted.url}'"
        )
    server = offers.get("server") or {}
    version = printable_line(str(server.get("version") or "0"))[:64]
    return CollectedFiles(printable_line(str(server.get("name") or sources.server)), version, {LOCKS["url"]: text})


def _rows(rows: Iterable[Any], key: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted((row for row in rows if isinstance(row, dict)), key=_line):
        found.setdefault(_named(row, key), []).append(row)
    return found


def _named(row: Any, key: str) -> str:
    return str(row.get(key, "")) if isinstance(row, dict) else ""


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
