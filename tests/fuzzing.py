"""How many examples property-based tests try: `MCPFACTORY_FUZZ=N` searches for new ones, N times as many."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["FACTOR", "SEARCHING", "examples"]

SEARCHING: Final = bool(os.environ.get("MCPFACTORY_FUZZ"))
FACTOR: Final = max(1, int(os.environ.get("MCPFACTORY_FUZZ") or 1))


def examples(usual: int) -> int:
    """`usual` in the suite, N times as many in a search."""
    return usual * FACTOR
