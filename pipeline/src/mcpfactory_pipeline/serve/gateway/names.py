"""Names and URIs of several servers, kept apart. Pure, and a function of server and name alone: who else is there changes nothing.

A name is `<server>_<name>`. No server's part has a `_`, so the first one ends it, and different pairs cannot become the same
name. Where the server's name had to be changed for that, or the whole is too long, a hash of the pair stands at the end, and
so it does where the end of the whole could be taken for one.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

__all__ = ["LONGEST", "inner_uri", "outer_content", "outer_name", "outer_uri"]

Json = dict[str, Any]

LONGEST: Final = 64  # characters of a name that all clients take
_HASH: Final = 8  # characters
_MARKED: Final = re.compile(r"_[0-9a-f]{8}$")
_SCHEME: Final = "mcp://"


def outer_name(server: str, name: str) -> str:
    """Return the name of a server's tool or prompt behind the gateway."""
    part = re.sub(r"[^A-Za-z0-9-]", "-", server)
    clean = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    whole = f"{part}_{clean}"
    if (part, clean) == (server, name) and len(whole) <= LONGEST and not _MARKED.search(whole):
        return whole
    mark = hashlib.sha256(f"{server}\0{name}".encode()).hexdigest()[:_HASH]
    return f"{whole[: LONGEST - _HASH - 1]}_{mark}"


def outer_uri(server: str, uri: str) -> str:
    """Return the URI, or URI template, of a server's resource behind the gateway."""
    return f"{_SCHEME}{server}/{uri}"


def inner_uri(uri: str) -> tuple[str, str] | None:
    """Return the server that an outer URI is of, and its own URI; None for a URI that is none of the gateway's."""
    if not uri.startswith(_SCHEME):
        return None
    server, slash, inner = uri[len(_SCHEME) :].partition("/")
    return (server, inner) if slash and server and inner else None


def outer_content(server: str, block: Any) -> Any:
    """Return a content block with the URIs of its links and embedded resources as they are behind the gateway."""
    if not isinstance(block, dict):
        return block
    if block.get("type") == "resource_link" and isinstance(block.get("uri"), str):
        return {**block, "uri": outer_uri(server, block["uri"])}
    held = block.get("resource")
    if block.get("type") == "resource" and isinstance(held, dict) and isinstance(held.get("uri"), str):
        return {**block, "resource": {**held, "uri": outer_uri(server, held["uri"])}}
    return block
