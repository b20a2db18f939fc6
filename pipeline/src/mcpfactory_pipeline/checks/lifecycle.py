"""Protocol revisions as the checks need them: their names in order, and which revision introduced what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mcpfactory_runtime.revisions import (
    LATEST,
    LATEST_LEGACY,
    LEGACY,
    MODERN,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
    REVISIONS,
)

HANDSHAKES: Final = tuple(sorted(LEGACY))
MODERNS: Final = tuple(sorted(MODERN))
LATEST_HANDSHAKE: Final = LATEST_LEGACY.name
FIRST_MODERN: Final = min(MODERNS)  # first one with the current lifecycle
LATEST_MODERN: Final = max(MODERNS)  # what a server is asked in first
STRUCTURED: Final = R2025_06_18.name  # outputSchema and structuredContent
COMPLETIONS: Final = R2025_03_26.name  # the capability; the method is older
STREAMABLE: Final = R2025_03_26.name  # the HTTP transport of today
DIALECT: Final = R2025_11_25.name  # which JSON Schema it is where nothing says so
_MEMBERS: Final = {"annotations": R2025_03_26.name, "title": R2025_06_18.name, "icons": R2025_11_25.name}  # of entries
BATCHES: Final = frozenset(name for name, revision in REVISIONS.items() if revision.batches)
CACHEABLE: Final = LATEST.cacheable

META: Final = "io.modelcontextprotocol/"
VERSION: Final = META + "protocolVersion"
CAPABILITIES: Final = META + "clientCapabilities"


def has_member(name: str, revisions: Sequence[str]) -> bool:
    """Return True if a list entry's member is defined in the newest of these revisions.

    In other revisions, any value is valid.
    """
    return max(revisions, default=LATEST_MODERN) >= _MEMBERS.get(name, "")


def initialize_params(revision: str = LATEST_HANDSHAKE) -> dict[str, Any]:
    """Return the params of `initialize`."""
    info = {"name": "mcpfactory-validate", "version": "1"}
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}


def modern_meta(version: str = LATEST_MODERN) -> dict[str, Any]:
    """Return the `_meta` of a per-request message (basic/index, Per-request metadata)."""
    return {VERSION: version, CAPABILITIES: {}, META + "clientInfo": {"name": "mcpfactory-validate", "version": "1"}}
