"""Evidence and rules in, report out. Pure: the same observations always give the same score.

Score: every rule that applies may earn its severity. A rule over several subjects (tools, say) earns the share of them
that keep it, so that one bad tool of a hundred is not as dear as a hundred. What could not be checked earns nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import mask, trim
from mcpfactory_pipeline.checks.report import Finding, NotChecked, Report
from mcpfactory_pipeline.checks.rule import Fault, Outcome, Rule, not_applicable

__all__ = ["judge"]


def judge(
    evidence: Evidence, rules: Iterable[Rule], *, target: str = "", secrets: Mapping[str, str] | None = None
) -> Report:
    """Apply `rules` to `evidence`. `secrets` (name → value) are masked wherever the report shows an exchange."""
    secrets = secrets or {}
    findings: list[Finding] = []
    unchecked: list[NotChecked] = []
    checked: list[str] = []
    inapplicable: dict[str, str] = {}
    earned, applicable = Fraction(0), 0
    for rule in rules:
        outcome = _apply(rule, evidence)
        if outcome.inapplicable:
            inapplicable[rule.id] = outcome.inapplicable
            continue
        applicable += rule.severity
        if outcome.unknown:
            unchecked.append(NotChecked(rule.id, outcome.unknown, rule.gate))
            continue
        checked.append(rule.id)
        earned += rule.severity - _lost(rule, outcome)
        findings += [_finding(rule, fault, secrets) for fault in outcome.faults]
    findings.sort(key=lambda finding: (not finding.gate, -finding.severity))
    gates_open = not any(finding.gate for finding in findings) and not any(item.gate for item in unchecked)
    return Report(
        target=target,
        score=int(100 * earned / applicable) if applicable else 0,
        passed=gates_open and applicable > 0,
        findings=tuple(findings),
        not_checked=tuple(unchecked),
        checked=tuple(checked),
        not_applicable=inapplicable,
        server=evidence.server,
        revisions=evidence.revisions,
        tools=len(evidence.tools),
        calls=len(evidence.calls),
        earned=float(round(earned, 2)),
        applicable=applicable,
    )


def _apply(rule: Rule, evidence: Evidence) -> Outcome:
    if evidence.revisions and not any(_within(rule, revision) for revision in evidence.revisions):
        return not_applicable(
            f"the server speaks no revision from {rule.since or 'the first'} to {rule.until or 'the last'}"
        )
    return rule.check(evidence)


def _within(rule: Rule, revision: str) -> bool:
    # Revisions are dates, so their order is that of their texts.
    return (not rule.since or rule.since <= revision) and (not rule.until or revision <= rule.until)


def _lost(rule: Rule, outcome: Outcome) -> Fraction:
    """Points lost: each subject's worst fault, over all subjects."""
    worst: dict[str, int] = {}
    for fault in outcome.faults:
        worst[_subject(fault)] = max(worst.get(_subject(fault), 0), fault.lesser or rule.severity)
    return min(Fraction(rule.severity), Fraction(sum(worst.values()), max(outcome.subjects, 1)))


def _subject(fault: Fault) -> str:
    return fault.where.split(" ", 1)[0]  # "search inputSchema/…" and "search description" are both about `search`


def _proof(fault: Fault, secrets: Mapping[str, str]) -> dict[str, str] | None:
    """A fault's other proof, trimmed and masked as exchanges are."""
    return None if fault.proof is None else {key: trim(mask(text, secrets)) for key, text in fault.proof.items()}


def _finding(rule: Rule, fault: Fault, secrets: Mapping[str, str]) -> Finding:
    return Finding(
        rule=rule.id,
        severity=fault.lesser or rule.severity,
        gate=rule.gate and fault.lesser is None,
        message=fault.message,
        where=fault.where,
        hint=fault.hint or rule.hint,
        source=rule.source,
        evidence=fault.exchange.to_json(secrets) if fault.exchange else _proof(fault, secrets),
    )
