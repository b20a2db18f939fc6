"""The table of rules, in the order in which reports and docs/reference/rules.md show them."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.checks.families import (
    batches,
    behaviour,
    conduct,
    content,
    descriptions,
    features,
    http,
    http_modern,
    legacy,
    listening,
    lists,
    modern,
    packaging,
    performance,
    robustness,
    schemas,
    security,
    startup,
    substance,
)
from mcpfactory_pipeline.checks.rule import Rule

__all__ = ["RULES"]

RULES: Final[tuple[Rule, ...]] = (
    *startup.RULES,
    *legacy.RULES,
    *batches.RULES,
    *modern.RULES,
    *listening.RULES,
    *http.RULES,
    *http_modern.RULES,
    *lists.RULES,
    *features.RULES,
    *conduct.RULES,
    *schemas.RULES,
    *descriptions.RULES,
    *behaviour.RULES,
    *content.RULES,
    *substance.RULES,
    *robustness.RULES,
    *security.RULES,
    *packaging.RULES,
    *performance.RULES,
)
