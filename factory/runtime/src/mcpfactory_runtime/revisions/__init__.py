"""The released revisions of the protocol as data. No other package of the runtime uses the name of a revision."""

from __future__ import annotations

from typing import Final

from mcpfactory_runtime.revisions.records import (
    APPS,
    R2024_11_05,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
    R2026_07_28,
    RELEASED,
    SKILLS,
    TASKS,
    Revision,
)

__all__ = [
    "APPS",
    "ASSUMED",
    "FIRST_MODERN",
    "LATEST",
    "LATEST_LEGACY",
    "LEGACY",
    "MODERN",
    "R2024_11_05",
    "R2025_03_26",
    "R2025_06_18",
    "R2025_11_25",
    "R2026_07_28",
    "REVISIONS",
    "SKILLS",
    "SUPPORTED",
    "TASKS",
    "Revision",
    "negotiate",
    "wire_names",
]

REVISIONS: Final[dict[str, Revision]] = {revision.name: revision for revision in RELEASED}
LEGACY: Final[dict[str, Revision]] = {name: revision for name, revision in REVISIONS.items() if not revision.modern}
MODERN: Final[dict[str, Revision]] = {name: revision for name, revision in REVISIONS.items() if revision.modern}
LATEST: Final[Revision] = RELEASED[-1]
LATEST_LEGACY: Final[Revision] = LEGACY[max(LEGACY)]
FIRST_MODERN: Final[Revision] = MODERN[min(MODERN)]
ASSUMED: Final[Revision] = R2025_03_26
"""Revision of an HTTP request without `MCP-Protocol-Version` (basic/transports, Protocol Version Header)."""

SUPPORTED: Final[list[str]] = sorted(REVISIONS, reverse=True)
"""Names for `supportedVersions` and for errors, newest first, of both lifecycles."""


def wire_names(row: str) -> frozenset[str]:
    """Return the names of a method in the messages of all revisions."""
    return frozenset(revision.wire(row) for revision in RELEASED)


def negotiate(requested: str) -> Revision:
    """Return the revision for the answer to `initialize`: the requested one, or the newest with a handshake."""
    return LEGACY.get(requested, LATEST_LEGACY)
