"""Versions of the table of rules: what changed with each. Scores of two versions are not to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["RULES_VERSION", "VERSIONS"]

# A new one whenever a rule is added or removed, or weighs, closes or applies differently (a test compares the table with
# what stands here).
VERSIONS: Final[Mapping[int, str]] = {
    1: "startup, lifecycles, lists, schemas, descriptions, behaviour, security",
    2: "packaging is new; slow tools without a case are no finding, of several starts the fastest counts",
    3: "robustness: what the tools do while the API fails",
    4: "performance: start, calls and memory, where policy sets limits",
}

RULES_VERSION: Final = max(VERSIONS)
