"""The table of all rules of the audit, in the order in which the reference shows them."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.audit.families import (
    accepted,
    approval,
    configuration,
    launch,
    names,
    network,
    reach,
    secrets,
    tools,
)
from mcpfactory_pipeline.audit.rule import AuditRule

__all__ = ["RULES"]

RULES: Final[tuple[AuditRule, ...]] = (
    *configuration.RULES,
    *secrets.RULES,
    *launch.RULES,
    *names.RULES,
    *network.RULES,
    *reach.RULES,
    *approval.RULES,
    *tools.RULES,
    *accepted.RULES,
)
