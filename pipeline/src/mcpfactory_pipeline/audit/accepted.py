"""What a person accepted of the servers of clients, as a file: how each is started, in which version, and the tools that it offered.

Secrets are in it neither in clear text nor as hashes: an entry is remembered by what a reviewer reads of it, with `…` for values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import shown_url
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_bytes

__all__ = ["AcceptedServer", "OfferedTools", "accept", "lock_text", "read_lock", "tools_digest"]

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What a server said when it was started: its tools and instructions, or why nothing (`problem`)."""

    tools: tuple[Mapping[str, Any], ...] = ()
    instructions: str = ""
    version: str = ""
    problem: str = ""
    leaked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AcceptedServer:
    """One server of a lock. `tools` is None when nobody had started it."""

    command: str
    version: str
    variables: tuple[str, ...]
    tools: tuple[Mapping[str, Any], ...] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        return asdict(self)


def accept(server: ConfiguredServer, listing: OfferedTools | None) -> AcceptedServer:
    """Return what there is to accept of a server."""
    masks = [one.value for one in server.secrets]
    words = [shown_url(server.url)] if server.url else list(server.words)
    if server.origin.version:  # the version is told apart from the command
        words = [word.replace(server.origin.version, "…") for word in words]
    command = " ".join(words)
    for value in sorted(masks, key=len, reverse=True):
        command = command.replace(value, "…")
    tools = (
        None
        if listing is None or listing.problem
        else tuple(sorted(listing.tools, key=lambda tool: str(tool.get("name"))))
    )
    variables = tuple(sorted({*server.environ, *server.passed, *(f"header {name}" for name in server.headers)}))
    return AcceptedServer(command, server.origin.version, variables, tools)


def tools_digest(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return one hash of a tool list, whatever its order."""
    rows = sorted(json.dumps(tool, sort_keys=True, ensure_ascii=False) for tool in tools)
    return hash_bytes("\n".join(rows).encode("utf-8", "surrogatepass"))


def lock_text(servers: Mapping[str, AcceptedServer]) -> str:
    """Return the content of a lock: one server after the other, one tool a line."""
    data = {"audit": _VERSION, "servers": {key: servers[key].to_json() for key in sorted(servers)}}
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def read_lock(text: bytes, source: str) -> dict[str, AcceptedServer]:
    """Return the servers of a lock by their keys.

    Raises:
        StateError: it is none.
    """
    try:
        data = json.loads(text)
        if data["audit"] != _VERSION:
            raise ValueError(f"version {data['audit']!r}, and {_VERSION} is read")
        return {str(key): _read(entry) for key, entry in data["servers"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(
            f"{source} is no lock of an audit: {error!r}", hint="mcpfactory audit --lock FILE --accept writes one"
        ) from error


def _read(entry: Mapping[str, Any]) -> AcceptedServer:
    tools: Iterable[Any] | None = entry["tools"]
    if tools is not None and not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools):
        raise ValueError("it holds something else than tools with names")
    return AcceptedServer(
        str(entry["command"]),
        str(entry["version"]),
        tuple(map(str, entry["variables"])),
        tuple(tools) if tools is not None else None,
    )
