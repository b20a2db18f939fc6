"""Evidence and rules in, report out. Pure: the same observations always give the same score.

Score: every rule that applies may earn its severity. A rule over several subjects (tools, say) earns the share of them
that keep it, so that one bad tool of a hundred is not as dear as a hundred. What could not be checked earns nothing.
What a person has waived costs nothing and closes no gate, and the report says so. A rule of which nothing is kept may set a
ceiling: a server that does not start, or whose tools do nothing, has no high score for its descriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fractions import Fraction

from mcpfactory_pipeline.checks.evidence import Evidence, measure
from mcpfactory_pipeline.checks.exchange import mask, trim
from mcpfactory_pipeline.checks.report import Finding, NotChecked, Report, Waived, WaiverState
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable
from mcpfactory_pipeline.workspace.waivers import Waiver, WaiverPolicy, in_force, refused_waivers

__all__ = ["evaluate"]


def evaluate(
    evidence: Evidence,
    rules: Iterable[Rule],
    *,
    target: str = "",
    secrets: Mapping[str, str] | None = None,
    waivers: Sequence[Waiver] = (),
    policy: WaiverPolicy = WaiverPolicy(),  # noqa: B008 - it is frozen
    today: date = date.min,
) -> Report:
    """Apply `rules` to `evidence`. `secrets` (name → value) are masked wherever the report shows an exchange.

    `waivers` that have not expired `today` and that their `policy` allows are taken into account; the others are only listed.
    """
    secrets, table, refused = secrets or {}, tuple(rules), refused_waivers(waivers, policy, today)
    valid = tuple(waiver for waiver in in_force(waivers, today) if waiver not in refused)
    findings, waived, unchecked = list[Finding](), list[Waived](), list[NotChecked]()
    checked, inapplicable = list[str](), dict[str, str]()
    earned, applicable, ceilings = Fraction(0), 0, [100]
    for rule in table:
        outcome = _apply(rule, evidence)
        if outcome.inapplicable:
            inapplicable[rule.id] = outcome.inapplicable
            continue
        if outcome.unknown and (waiver := _waiver(valid, rule, "")):
            waived.append(Waived(waiver, rule.id, f"not checked: {outcome.unknown}"))
            continue
        applicable += rule.severity
        if outcome.unknown:
            unchecked.append(NotChecked(rule.id, outcome.unknown, rule.gate))
            continue
        checked.append(rule.id)
        kept, excused = _split_waived(rule, outcome.faults, valid)
        earned += rule.severity - (lost := _points_lost(rule, kept, outcome.subjects))
        ceilings += [rule.ceiling] if lost == rule.severity else []
        findings += [_finding(rule, fault, secrets) for fault in kept]
        waived += excused
    findings.sort(key=lambda finding: (not finding.gate, -finding.severity))
    gates_open = not any(finding.gate for finding in findings) and not any(item.gate for item in unchecked)
    return Report(
        target=target,
        score=min(int(100 * earned / applicable), *ceilings) if applicable else 0,
        passed=gates_open and applicable > 0,
        findings=tuple(findings),
        not_checked=tuple(unchecked),
        checked=tuple(checked),
        not_applicable=inapplicable,
        waived=tuple(waived),
        waivers=tuple(_state(waiver, table, valid, waived, refused) for waiver in waivers),
        server=evidence.server,
        revisions=evidence.revisions,
        tools=len(evidence.tools),
        calls=len(evidence.calls),
        uncalled=dict(evidence.uncalled),
        listed=evidence.tools,
        measured=measure(evidence),
        matrix=tuple(mask(row.to_json(), secrets) for row in evidence.failures),
        earned=float(round(earned, 2)),
        applicable=applicable,
    )


def _split_waived(rule: Rule, faults: Iterable[Fault], valid: Iterable[Waiver]) -> tuple[list[Fault], list[Waived]]:
    """Return the faults that count, and those that are waived."""
    kept: list[Fault] = []
    excused: list[Waived] = []
    for fault in faults:
        if waiver := _waiver(valid, rule, _subject(fault)):
            excused.append(Waived(waiver, rule.id, fault.message, fault.where))
        else:
            kept.append(fault)
    return kept, excused


def _waiver(valid: Iterable[Waiver], rule: Rule, subject: str) -> Waiver | None:
    """Return the waiver that covers a rule for a subject: one for that tool, or one for the whole rule."""
    covering = [waiver for waiver in valid if waiver.rule == rule.id and waiver.tool in ("", subject)]
    return max(covering, key=lambda waiver: waiver.tool, default=None)


def _state(
    waiver: Waiver,
    rules: Sequence[Rule],
    valid: Sequence[Waiver],
    waived: Sequence[Waived],
    refused: Mapping[Waiver, str],
) -> WaiverState:
    if waiver in refused:
        return WaiverState(waiver, "not allowed", refused[waiver])
    if waiver.rule not in {rule.id for rule in rules}:
        return WaiverState(waiver, "no such rule")
    if waiver not in valid:
        return WaiverState(waiver, "expired")
    return WaiverState(waiver, "in force" if any(one.waiver == waiver for one in waived) else "not needed")


def _apply(rule: Rule, evidence: Evidence) -> RuleOutcome:
    if evidence.revisions and not any(_applies_to(rule, revision) for revision in evidence.revisions):
        return not_applicable(
            f"the server speaks no revision from {rule.since or 'the first'} to {rule.until or 'the last'}"
        )
    return rule.check(evidence)


def _applies_to(rule: Rule, revision: str) -> bool:
    # Revisions are dates, so their order is that of their texts.
    return (not rule.since or rule.since <= revision) and (not rule.until or revision <= rule.until)


def _points_lost(rule: Rule, faults: Iterable[Fault], subjects: int) -> Fraction:
    """Points lost: each subject's worst fault, over all subjects."""
    worst: dict[str, int] = {}
    for fault in faults:
        worst[_subject(fault)] = max(worst.get(_subject(fault), 0), fault.lesser or rule.severity)
    return min(Fraction(rule.severity), Fraction(sum(worst.values()), max(subjects, 1)))


def _subject(fault: Fault) -> str:
    return fault.where.split(" ", 1)[0]  # "search inputSchema/…" and "search description" are both about `search`


def _proof(fault: Fault, secrets: Mapping[str, str]) -> dict[str, str] | None:
    """Return a fault's other proof, trimmed and masked as exchanges are."""
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
