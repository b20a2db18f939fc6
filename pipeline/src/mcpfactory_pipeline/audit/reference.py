"""The page `docs/reference/audit-rules.md`, generated from the table of rules when the site is built, and the text of `audit --explain`."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from mcpfactory_pipeline.audit.rule import AuditRule
from mcpfactory_pipeline.audit.rules import RULES

__all__ = ["FAMILIES", "audit_rules_reference", "explain_rule", "rule_to_json"]

FAMILIES: Final = {
    "configuration": "Configuration: the files themselves",
    "secrets": "Secrets: what stands in clear text",
    "launch": "Launch: what is started, and where it comes from",
    "names": "Names: of packages and of servers",
    "network": "Network: what goes over the wire, and who listens",
    "container": "Containers: whether they keep their walls",
    "files": "Files: what a server is given",
    "approval": "Approval: calls that nobody is asked about",
    "tools": "Tools: what servers offer, with `--start`",
    "accepted": "Accepted: what has changed since, with `--lock`",
}

_HEAD: Final = f"""# Rules of `mcpfactory audit`

{len(RULES)} rules. How to use them: [audit the servers of clients](../how-to/audit-clients.md).

Severity: 5 somebody else may run code or take a secret as things stand, 3 a risk that one more mistake makes real, 2 a weakness, 1 a remark. A
server that is switched off weighs 1, but for its secrets and for characters that nobody sees.
"""


def audit_rules_reference() -> str:
    """Return the whole page, as Markdown."""
    parts = [_HEAD]
    for family, rules in groupby(RULES, key=lambda rule: rule.family):
        parts.append(f"\n## {FAMILIES[family]}\n")
        parts += [_entry(rule) for rule in rules]
    return "".join(parts)


def rule_to_json(rule: AuditRule) -> dict[str, object]:
    """Return what a rule looks for, as JSON."""
    return {
        "rule": rule.id,
        "statement": rule.statement,
        "severity": rule.severity,
        "reason": rule.reason,
        "hint": rule.hint,
    }


def explain_rule(rule: AuditRule) -> str:
    """Return what a rule looks for, for a person at a terminal."""
    return f"{rule.id}\n  {rule.statement}\n  severity {rule.severity}\n  reason: {rule.reason}\n  hint: {rule.hint}\n"


def _entry(rule: AuditRule) -> str:
    return f"\n### `{rule.id}`\n\n{rule.statement}\n\n- Severity {rule.severity}.\n- Reason: {rule.reason}.\n- Hint: {rule.hint}.\n"
