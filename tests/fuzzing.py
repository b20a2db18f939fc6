"""How many examples property-based tests try: `MCPFACTORY_FUZZ=N` searches for new ones, N times as many."""

from __future__ import annotations

import os
import re
from typing import Final

SEARCHING: Final = bool(os.environ.get("MCPFACTORY_FUZZ"))
FACTOR: Final = max(1, int(os.environ.get("MCPFACTORY_FUZZ") or 1))


def examples(usual: int) -> int:
    """`usual` in the suite, N times as many in a search."""
    return usual * FACTOR


def tried(statistics: str) -> int:
    """How many examples a property came through, from what hypothesis tells about it; those that it threw away do not count."""
    return sum(map(int, re.findall(r"(\d+) passing", statistics)))
