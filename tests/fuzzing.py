"""Number of examples of property-based tests. `MCPFACTORY_FUZZ=N` tries N times as many, and new ones."""

from __future__ import annotations

import os
import re
from typing import Final

SEARCHING: Final = bool(os.environ.get("MCPFACTORY_FUZZ"))
FACTOR: Final = max(1, int(os.environ.get("MCPFACTORY_FUZZ") or 1))


def examples(usual: int) -> int:
    """Return the number of examples: `usual` in the suite, N times as many in a search."""
    return usual * FACTOR


def tried(statistics: str) -> int:
    """Return the number of passed examples from the statistics of Hypothesis, without discarded ones."""
    return sum(map(int, re.findall(r"(\d+) passing", statistics)))
