"""Evaluate the rules on the evidence. The evaluation is pure: the same observations always give the same report.

The score is 100 minus the cost of the findings (`COSTS`). A rule over several subjects, such as tools, costs points in
proportion to the subjects that break it. Rules that could not be checked reduce the score by their share; a closed gate
halves it to below 50. A waived finding costs nothing and closes no gate, but the report lists the finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Final, Literal

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.checks.call_plan import propose_cases
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import CREDENTIALS, NOT_SENT, mask_secrets, trim_message
from mcpfactory_pipeline.checks.measurements import measure
from mcpfactory_pipeline.checks.report import (
    Finding,
    NotChecked,
    ValidationReport,
    WaivedFinding,
    WaiverState,
    describe_first_locations,
)
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, Severity, not_applicable, not_checked
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import Waiver, refused_waivers, unexpired_waivers

COSTS: Final[Mapping[int, int]] = {5: 40, 3: 12, 2: 3, 1: 1}
"""Severity → points that a rule costs if all its subjects break it."""
DESCRIPTIONS: Final = 15
"""Points of the rules `descriptions.*` of severity 2 and 3, because a model reads descriptions before every call."""
_MAX_NOTES: Final = 5  # maximum points that all findings of severity 1 together cost

Found = tuple[Rule, Fault]
Match = Literal["tool", "exchange", "unanswered", "anywhere", "unchecked"]


@dataclass(frozen=True, slots=True)
class RootCause:
    """Root cause: a finding of the rule `cause` explains findings of other rules.

    `effects` has the ids of the other rules, or prefixes of ids such as `legacy.`. `match` selects the findings:

    - `tool`: findings about the same tool
    - `exchange`: findings with the same exchange as evidence
    - `unanswered`: findings about an unanswered request, and rules unchecked for that reason
    - `anywhere`: all findings
    - `unchecked`: no findings, only unchecked rules
    """

    cause: str
    effects: tuple[str, ...]
    match: Match


_ABOUT_TOOLS: Final = (
    "schemas.",
    "descriptions.",
    "tool-calls.",
    "content.",
    "placeholder-answers.",
    "api-failures.",
    "security.",
)

ROOT_CAUSES: Final[tuple[RootCause, ...]] = (
    RootCause("process.starts", ("",), "unchecked"),
    RootCause("process.initializes", ("",), "unchecked"),
    RootCause("process.stdout", ("legacy.", "modern.", "lists.", "features.", *_ABOUT_TOOLS), "unanswered"),
    RootCause("content.schema", ("lists.", "features."), "exchange"),
    RootCause("lists.tools", _ABOUT_TOOLS, "unchecked"),
    RootCause("schemas.tool-shape", ("tool-calls.", "content.", "placeholder-answers."), "unchecked"),
    RootCause("tool-calls.answered", ("tool-calls.", "content.", "placeholder-answers."), "unchecked"),
    RootCause("tool-calls.answered", ("tool-calls.argument-errors", "legacy.unknown-tool"), "exchange"),
    RootCause("tool-calls.some-succeed", ("tool-calls.output-schema", "content.", "placeholder-answers."), "unchecked"),
    RootCause("tool-calls.some-succeed", ("tool-calls.implemented", "tool-calls.cases"), "anywhere"),
    RootCause("tool-calls.api-requests", ("tool-calls.cases",), "tool"),
    RootCause("tool-calls.read-only", ("tool-calls.api-requests",), "tool"),
    RootCause("http.client-data", ("tool-calls.side-effects",), "tool"),
    RootCause("modern.input-required", ("lists.",), "exchange"),
    RootCause("modern.error-codes", ("features.",), "exchange"),
    RootCause("legacy.keeps-running", ("legacy.params", "legacy.not-json-rpc"), "unanswered"),
    RootCause("legacy.keeps-running", ("legacy.",), "unchecked"),
)


def find_root_causes(found: Sequence[Found], tools: Collection[str]) -> dict[int, int]:
    """Return a map from each effect to its root cause, both as indexes of `found`."""
    parents: dict[int, int] = {}
    for row in ROOT_CAUSES:
        if row.match == "unchecked":
            continue
        causes = [at for at, (rule, _) in enumerate(found) if rule.id == row.cause]
        keyed = _keyed(row.match, causes, found, tools)
        for at, (rule, fault) in enumerate(found if keyed else ()):
            cause = keyed.get(_key(row.match, fault, tools)) if _is_one_of(rule.id, row.effects) else None
            if cause is not None and at != cause and _closes(found[cause]) >= _closes(found[at]):
                parents.setdefault(at, cause)
    return {at: _root(at, parents) for at in parents}


def cause_of_unchecked_rule(rule: Rule, reason: str, found: Sequence[Found]) -> int | None:
    """Return the index of the finding that prevented the check of a rule, or None."""
    if reason == NOT_SENT:
        ends = (at for at, (_, fault) in enumerate(found) if fault.exchange and fault.exchange.server_ended)
        return next((at for at in ends if _closes(found[at]) >= rule.gate), None)
    matches = ("unchecked", "unanswered") if reason.startswith("no answer") else ("unchecked",)
    rows = [row for row in ROOT_CAUSES if row.match in matches and _is_one_of(rule.id, row.effects)]
    return next(
        (
            at
            for row in rows
            for at, (cause, fault) in enumerate(found)
            if cause.id == row.cause and cause.id != rule.id and _closes((cause, fault)) >= rule.gate
        ),
        None,
    )


def tool_in_location(where: str, tools: Collection[str]) -> str:
    """Return the longest tool name at the start of a place (`search inputSchema/…`, `search.word`), or ""."""
    lengths = sorted({len(name) for name in tools if 0 < len(name) <= len(where)}, reverse=True)
    ends = (at for at in lengths if where[at : at + 1] in ("", " ", ".", "/"))
    return next((where[:at] for at in ends if where[:at] in tools), "")


def rule_subject_of(where: str, tools: Collection[str]) -> str:
    """Return the subject that a rule counts for a place.

    If the place names a tool (`search`, `search inputSchema/…`), the subject is the tool. For an argument such as
    `search.word`, and for a place without a tool, the subject is the place itself.
    """
    tool = tool_in_location(where, tools)
    return tool if tool and where[len(tool) : len(tool) + 1] in ("", " ") else where


def _keyed(match: Match, causes: Sequence[int], found: Sequence[Found], tools: Collection[str]) -> Mapping[object, int]:
    if match in ("anywhere", "unanswered"):
        return {True: causes[0]} if causes else {}
    return {key: at for at in reversed(causes) if (key := _key(match, found[at][1], tools)) is not None}


def _key(match: Match, fault: Fault, tools: Collection[str]) -> object:
    if match == "tool":
        return rule_subject_of(fault.where, tools)
    if match == "exchange":
        return None if fault.exchange is None else id(fault.exchange)
    return match == "anywhere" or (fault.exchange is not None and fault.exchange.received is None)


def _is_one_of(rule: str, effects: tuple[str, ...]) -> bool:
    return any(rule == one or ((one.endswith(".") or not one) and rule.startswith(one)) for one in effects)


def _closes(found: Found) -> bool:
    rule, fault = found
    return rule.gate and fault.lesser is None


def _root(at: int, parents: Mapping[int, int]) -> int:
    while at in parents:
        at = parents[at]
    return at


_NAMED: Final = 5  # maximum number of unchecked rules that a finding names; further rules are only counted


def evaluate_rules(
    evidence: Evidence,
    rules: Iterable[Rule],
    *,
    target: str = "",
    secrets: Mapping[str, str] | None = None,
    waivers: Sequence[Waiver] = (),
    policy: WaiverPolicy = WaiverPolicy(),  # noqa: B008 - frozen, so safe as a default
    today: date = date.min,
) -> ValidationReport:
    """Apply `rules` to `evidence`. All exchanges in the report mask `secrets` (name → value).

    A waiver counts if it has not expired on the day `today` and the `policy` allows it; other waivers are only listed.
    """
    secrets, table = secrets or {}, tuple(rules)
    refused = refused_waivers(waivers, policy, today, offer=evidence.drift_offer)
    valid = tuple(waiver for waiver in unexpired_waivers(waivers, today) if waiver not in refused)
    tools = frozenset(name for name, _ in evidence.named_tools)
    judged = [_judge(rule, evidence, valid, tools) for rule in table]
    found = [(one.rule, fault) for one in judged for fault in one.kept]
    follows = _FindingEffects(found, tools)
    sums = _add_up(judged, follows, tools)
    waived = tuple(excused for one in judged for excused in one.excused)
    findings = [
        _finding(rule, fault, secrets, follows.of(at))
        for at, (rule, fault) in enumerate(found)
        if at not in follows.causes
    ]
    findings = _told_once(findings, tools)
    findings.sort(key=lambda finding: (not finding.gate, -finding.severity))
    gates_open = not any(finding.gate for finding in findings) and not any(item.gate for item in sums.unchecked)
    return ValidationReport(
        target=target,
        score=_score(sums, refused=any(finding.gate for finding in findings), spoke=bool(evidence.lifecycles)),
        passed=gates_open and sums.applicable > 0,
        findings=tuple(findings),
        not_checked=tuple(sums.unchecked),
        checked=tuple(sums.checked),
        not_applicable=sums.inapplicable,
        waived=waived,
        waivers=tuple(_state(waiver, table, valid, waived, refused) for waiver in waivers),
        server=evidence.server,
        revisions=evidence.revisions,
        tools=len(evidence.tools),
        called=mask_secrets(list(evidence.called), secrets),
        uncalled=evidence.untried,
        listed=evidence.tools,
        proposed_cases=tuple(mask_secrets(propose_cases(evidence), secrets)),
        measured=measure(evidence),
        api_failures=tuple(mask_secrets(row.to_json(), secrets) for row in evidence.failures),
        lost=float(round(sums.lost, 2)),
    )


@dataclass(frozen=True, slots=True)
class _RuleResult:
    """Result of a rule: faults that count, waived faults, or the reason for a missing result.

    `subjects` is 0 if the rule was not checked; a waiver can accept the missing result.
    """

    rule: Rule
    kept: tuple[Fault, ...] = ()
    excused: tuple[WaivedFinding, ...] = ()
    subjects: int = 1
    inapplicable: str = ""
    unknown: str = ""


@dataclass(slots=True)
class _ScoreSums:
    lost: Fraction = Fraction(0)
    notes: Fraction = Fraction(0)  # points that all findings of severity 1 cost
    applicable: int = 0
    unknown: int = 0  # the part of `applicable` from rules that could not be checked
    unchecked: list[NotChecked] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    inapplicable: dict[str, str] = field(default_factory=dict)


def _add_up(judged: Iterable[_RuleResult], follows: _FindingEffects, tools: Collection[str]) -> _ScoreSums:
    sums = _ScoreSums()
    for one in (one for one in judged if one.subjects):
        rule, kept = one.rule, follows.without_effects(one.kept)
        if reason := one.inapplicable or follows.why_not(one, kept):
            sums.inapplicable[rule.id] = reason
            continue
        sums.applicable += rule.severity
        if one.unknown:
            sums.unknown += rule.severity
            sums.unchecked.append(NotChecked(rule.id, one.unknown, rule.gate))
            continue
        sums.checked.append(rule.id)
        notes = [fault for fault in kept if (fault.lesser or rule.severity) == 1]
        others = [fault for fault in kept if (fault.lesser or rule.severity) > 1]
        sums.notes += _cost(rule, notes, one.subjects, tools)
        sums.lost += _cost(rule, others, one.subjects, tools)
    sums.lost += min(sums.notes, Fraction(_MAX_NOTES))
    return sums


def _score(sums: _ScoreSums, *, refused: bool, spoke: bool) -> int:
    if not spoke or not sums.applicable:
        return 0
    checked = Fraction(sums.applicable - sums.unknown, sums.applicable)
    return int(max(100 - sums.lost, Fraction()) * checked / (2 if refused else 1))


def _judge(rule: Rule, evidence: Evidence, valid: Sequence[Waiver], tools: Collection[str]) -> _RuleResult:
    outcome = _apply(rule, evidence)
    if outcome.inapplicable:
        return _RuleResult(rule, inapplicable=outcome.inapplicable)
    if outcome.unknown and (waiver := _waiver(valid, rule, "", tools)):
        excused = WaivedFinding(waiver, rule.id, f"not checked: {outcome.unknown}")
        return _RuleResult(rule, excused=(excused,), subjects=0)
    if outcome.unknown:
        return _RuleResult(rule, unknown=outcome.unknown)
    kept: list[Fault] = []
    waived: list[WaivedFinding] = []
    for fault in outcome.faults:
        if waiver := _waiver(valid, rule, fault.where, tools):
            waived.append(WaivedFinding(waiver, rule.id, fault.message, fault.where))
        else:
            kept.append(fault)
    return _RuleResult(rule, tuple(kept), tuple(waived), outcome.subjects)


class _FindingEffects:
    """Causes and effects among the findings, and the lines that the report shows for each cause."""

    def __init__(self, found: Sequence[tuple[Rule, Fault]], tools: Collection[str]) -> None:
        self.causes = find_root_causes(found, tools)
        self._found = found
        self._effects = {id(found[at][1]) for at in self.causes}
        self._told: dict[int, list[str]] = {}
        self._unjudged: dict[int, list[str]] = {}
        for at, cause in self.causes.items():
            rule, fault = found[at]
            place = f" at {fault.where}" if fault.where else ""
            self._told.setdefault(cause, []).append(f"{rule.id}{place}: {fault.message}")

    def without_effects(self, faults: Sequence[Fault]) -> list[Fault]:
        return [fault for fault in faults if id(fault) not in self._effects]

    def why_not(self, one: _RuleResult, kept: Sequence[Fault]) -> str:
        """Return why a rule cannot be judged; "" if it can be judged, or if no finding is responsible."""
        cause = cause_of_unchecked_rule(one.rule, one.unknown, self._found) if one.unknown else None
        cause = self.causes.get(cause, cause) if cause is not None else None
        if one.kept and not kept:
            cause = self.causes[next(at for at, (_, fault) in enumerate(self._found) if fault is one.kept[0])]
        if cause is None:
            return ""
        if one.unknown:
            self._unjudged.setdefault(cause, []).append(one.rule.id)
        return f"cannot be judged because of {self._found[cause][0].id}"

    def of(self, at: int) -> tuple[str, ...]:
        unjudged = self._unjudged.get(at, [])
        named = f": {', '.join(unjudged)}" if len(unjudged) <= _NAMED else ""
        left = (f"{pluralize(len(unjudged), 'rule')} cannot be judged{named}",) if unjudged else ()
        return (*self._told.get(at, ()), *left)


def _waiver(valid: Iterable[Waiver], rule: Rule, where: str, tools: Collection[str]) -> Waiver | None:
    """Return the waiver that covers a rule at a place. A waiver covers a place, a tool or a whole rule."""
    covered = ("", where, tool_in_location(where, tools))
    covering = [one for one in valid if one.rule == rule.id and one.tool in covered]
    return max(covering, key=lambda waiver: len(waiver.tool), default=None)


def _state(
    waiver: Waiver,
    rules: Sequence[Rule],
    valid: Sequence[Waiver],
    waived: Sequence[WaivedFinding],
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
    # Revisions are ISO dates, so the order of the strings is the order of the dates.
    if evidence.revisions and not any(rule.since <= one <= (rule.until or one) for one in evidence.revisions):
        return not_applicable(
            f"the server speaks no revision from {rule.since or 'the first'} to {rule.until or 'the last'}"
        )
    outcome = rule.check(evidence)
    sent = tuple(one for one in outcome.faults if one.exchange is None or one.exchange.problem != NOT_SENT)
    if len(sent) < len(outcome.faults):
        return replace(outcome, faults=sent) if sent else not_checked(NOT_SENT)
    if evidence.needs_credentials and not outcome.inapplicable and rule.family != "authorization":
        return not_checked(CREDENTIALS)
    return outcome


def _cost(rule: Rule, faults: Iterable[Fault], subjects: int, tools: Collection[str]) -> Fraction:
    """Return the cost of a rule: the sum of each subject's worst fault, divided by the number of subjects."""
    worst: dict[str, int] = {}
    for fault in faults:
        subject = rule_subject_of(fault.where, tools)
        worst[subject] = max(worst.get(subject, 0), _points(rule, fault.lesser or rule.severity))
    return min(Fraction(_points(rule, rule.severity)), Fraction(sum(worst.values()), max(subjects, 1)))


def _points(rule: Rule, severity: Severity) -> int:
    return DESCRIPTIONS if rule.family == "descriptions" and severity > 1 else COSTS[severity]


def _told_once(findings: Iterable[Finding], tools: Collection[str]) -> list[Finding]:
    """Merge findings that repeat for several sessions, messages, or failures of one tool's API."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        tool = tool_in_location(one.where, tools)
        row = tool if one.where.startswith(f"{tool}/") else ""
        about = (row,) if row else (one.message, one.where if tool else "")
        alike.setdefault((one.rule, str(one.severity), str(one.gate), *about), []).append(one)
    return [_joined(group) for group in alike.values()]


def _joined(alike: Sequence[Finding]) -> Finding:
    first, *others = alike
    if not others:
        return first
    if first.message == others[0].message:
        return replace(first, where=describe_first_locations([one.where for one in alike]))
    lines = (f"{one.rule} at {one.where}: {one.message}" for one in others)
    return replace(first, follows=(*first.follows, *lines))


def _proof(fault: Fault, secrets: Mapping[str, str]) -> dict[str, str] | None:
    return (
        None
        if fault.proof is None
        else {key: trim_message(mask_secrets(text, secrets)) for key, text in fault.proof.items()}
    )


def _finding(rule: Rule, fault: Fault, secrets: Mapping[str, str], follows: tuple[str, ...]) -> Finding:
    return Finding(
        rule=rule.id,
        severity=fault.lesser or rule.severity,
        gate=rule.gate and fault.lesser is None,
        message=fault.message,
        where=fault.where,
        hint=fault.hint or rule.hint,
        source=rule.source,
        evidence=fault.exchange.to_json(secrets) if fault.exchange else _proof(fault, secrets),
        follows=follows,
    )
