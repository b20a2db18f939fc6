"""The table of features: its groups and rows."""

from __future__ import annotations

from typing import Final

from benchmarks.features.authoring import COMPOSITION, CONTEXT, MIDDLEWARE, TOOLS
from benchmarks.features.model import Feature
from benchmarks.features.operating import AUTHORIZATION, CLIENT, COMMANDS, OPERATION, TRANSPORTS

CHECKED: Final = "2026-11-24"
"""When `python -m benchmarks.exam features` last found the claims about the peers to hold."""

GROUPS: Final[dict[str, tuple[Feature, ...]]] = {
    "Tools, resources, prompts": TOOLS,
    "In a handler": CONTEXT,
    "Servers made of others": COMPOSITION,
    "Middleware": MIDDLEWARE,
    "Authorization": AUTHORIZATION,
    "Transports": TRANSPORTS,
    "Operation": OPERATION,
    "Client": CLIENT,
    "Commands": COMMANDS,
}

FEATURES: Final[tuple[Feature, ...]] = tuple(row for rows in GROUPS.values() for row in rows)
