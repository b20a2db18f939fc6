"""The tool list of a generated server as the official client gets it over stdio, and what is wrong with it."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

PATIENCE = 120  # seconds for the start and the whole list
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_METASCHEMA = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
_DATA = frozenset({"const", "default", "enum", "examples"})
_SHOWN = 3  # faults of one document


async def listed(server: Path) -> list[Any]:
    """All tools of a server that was made in a folder, page by page, as they travel.

    Args:
        server: the folder; its package is `exam_mcp`.
    """
    environ = {
        "PYTHONPATH": str(server / "src"),
        "MCPFACTORY_BASE_URL": "http://127.0.0.1:9",
        "MCPFACTORY_ALLOW_PRIVATE": "1",
    }
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "exam_mcp"], env=environ)
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE), Client(stdio_client(parameters), mode="legacy", cache=None) as client:
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                return found


def faults(tools: list[Any]) -> list[str]:
    """What a client could not take: names, and schemas of arguments and results; a few of them, and how many more."""
    names = Counter(tool["name"] for tool in tools)
    found = [f"{name} is there {count} times" for name, count in names.items() if count > 1]
    found += [f"{name} is no name" for name in names if not _NAME.fullmatch(name)]
    for tool in tools:
        schemas = {key: tool[key] for key in ("inputSchema", "outputSchema") if key in tool}
        wrong = [f"{key}: {fault}" for key, schema in schemas.items() for fault in _wrong(schema)]
        found += [f"{tool['name']}: {fault}" for fault in wrong[:1]]
    more = len(found) - _SHOWN
    return found[:_SHOWN] + ([f"{more} more"] if more > 0 else [])


def _wrong(schema: Any) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "it is not of type object"
    own = {key: value for key, value in schema.items() if key != "$defs"}
    for part in (own, *schema.get("$defs", {}).values()):
        yield from _invalid(json.dumps(part, sort_keys=True))
    targets = {"#"} | {f"#/$defs/{name.replace('~', '~0').replace('/', '~1')}" for name in schema.get("$defs", {})}
    yield from (f"{reference} leads nowhere" for reference in _references(schema) if reference not in targets)


@functools.cache
def _invalid(schema: str) -> tuple[str, ...]:
    """Why a schema is none; tools of a large API share most of their parts, and each part is looked at once."""
    return tuple(error.message[:100] for error in _METASCHEMA.iter_errors(json.loads(schema)))


def _references(schema: Any) -> Iterator[str]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            stack += [value for key, value in node.items() if key not in _DATA]
