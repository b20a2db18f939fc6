"""The protocol revisions as the checks need them: names in order, and which of them brought what."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, MODERN, R2025_06_18, REVISIONS

__all__ = [
    "BATCHES",
    "CACHEABLE",
    "CAPABILITIES",
    "FIRST_MODERN",
    "HANDSHAKES",
    "LATEST_HANDSHAKE",
    "LATEST_MODERN",
    "META",
    "MODERNS",
    "STRUCTURED",
    "VERSION",
    "initialize_params",
    "modern_meta",
]

HANDSHAKES: Final = tuple(sorted(LEGACY))
MODERNS: Final = tuple(sorted(MODERN))
LATEST_HANDSHAKE: Final = LATEST_LEGACY.name
FIRST_MODERN: Final = min(MODERNS)  # what came with the lifecycle of today
LATEST_MODERN: Final = max(MODERNS)  # what a server is asked in first
STRUCTURED: Final = R2025_06_18.name  # outputSchema and structuredContent
BATCHES: Final = frozenset(name for name, revision in REVISIONS.items() if revision.batches)
CACHEABLE: Final = LATEST.cacheable

META: Final = "io.modelcontextprotocol/"
VERSION: Final = META + "protocolVersion"
CAPABILITIES: Final = META + "clientCapabilities"


def initialize_params(revision: str = LATEST_HANDSHAKE) -> dict[str, Any]:
    """Return the params of `initialize`."""
    info = {"name": "mcpfactory-validate", "version": "1"}
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}


def modern_meta(version: str = LATEST_MODERN) -> dict[str, Any]:
    """Return the `_meta` of a per-request message (basic/index, Per-request metadata)."""
    return {VERSION: version, CAPABILITIES: {}, META + "clientInfo": {"name": "mcpfactory-validate", "version": "1"}}
