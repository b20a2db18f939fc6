"""Validation report of one server: findings with evidence, unchecked rules, and a score."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from mcpfactory_pipeline.base.errors import JsonRecord
from mcpfactory_pipeline.base.text import pluralize, printable_line
from mcpfactory_pipeline.checks.exchange import CREDENTIALS
from mcpfactory_pipeline.checks.rule import Severity
from mcpfactory_pipeline.workspace.waivers import Waiver

_EVIDENCE_LINES: Final = 12
_FOLLOWS: Final = 5  # maximum number of effects that the report lists for a finding
# Maximum number of inapplicable rules that the report names; the report only counts further rules.
_NAMED: Final = 12
_LINE: Final = 400  # maximum characters of one line of evidence
_SHOWN_BY: Final = (
    "calls with arguments that work (--write-cases FILE, edit it, then --cases FILE), the settings of its API (--env NAME=VALUE), "
    "calls of tools without readOnlyHint (--allow-calls)"
)
PLACES_SHOWN: Final = 3  # maximum number of places that the report lists for a finding
# Increase this version if a rule is added or removed, or its weight, gate or applicability changes (tested).
RULES_VERSION: Final = 21

Verdict = Literal["passed", "not shown", "refused"]


@dataclass(frozen=True, slots=True)
class Finding(JsonRecord):
    """One deviation: its rule, a description, the place, the exchange that shows it, and a hint.

    `follows` lists the effects: the findings that this deviation caused, and the number of rules that it left
    unchecked.
    """

    rule: str
    severity: Severity
    gate: bool
    message: str
    where: str
    hint: str
    source: str
    evidence: Mapping[str, Any] | None = None
    follows: tuple[str, ...] = ()

    @property
    def grade(self) -> str:
        """Return the grade as text: `gate` or `severity N`."""
        return "gate" if self.gate else f"severity {self.severity}"


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule that applies but could not be checked; it counts as not passed."""

    rule: str
    reason: str
    gate: bool


@dataclass(frozen=True, slots=True)
class WaivedFinding:
    """Accepted finding, with its waiver."""

    waiver: Waiver
    rule: str
    message: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class WaiverState:
    """A waiver of the server, and its state.

    `reason` explains why the workspace's policy forbids the waiver; "" for an allowed waiver.
    """

    waiver: Waiver
    state: Literal["in force", "not needed", "expired", "no such rule", "not allowed"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Result of `validate`.

    `score` is from 0 to 100, rounded down. `passed` means promotable: every gate was checked and passed. `checked` has
    the ids of the applied rules; `not_applicable` maps the id of every other rule to the reason. `called` has the calls
    that were made; `uncalled` has the tools that were not called. `measured` has the resources used
    (`checks.measurements.measure`); `api_failures` has the behavior while the API failed. `listed` has the tools as
    received, for callers that store the tools. `proposed_cases` has one call per tool, in the format for `--cases`.

    `locations` maps the subjects of findings, such as tools, to the file and line of their definition; the key "" means
    the server. Paths of files are relative to the root of the repository. `to_json` omits `measured`, `listed`,
    `proposed_cases` and `locations`, so that equal servers give equal reports; the written JSON adds `measured`.
    """

    target: str
    score: int
    passed: bool
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    checked: tuple[str, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    revisions: tuple[str, ...] = ()
    tools: int = 0
    lost: float = 0.0
    rules_version: int = RULES_VERSION
    waived: tuple[WaivedFinding, ...] = ()
    waivers: tuple[WaiverState, ...] = ()
    called: Sequence[Mapping[str, Any]] = ()
    uncalled: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, int] = field(default_factory=dict)
    listed: tuple[Any, ...] = field(default=(), repr=False)
    proposed_cases: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    api_failures: tuple[Mapping[str, Any], ...] = ()
    locations: Mapping[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    @property
    def failed_gates(self) -> tuple[str, ...]:
        """The ids of the closed gates, in table order."""
        closed = [finding.rule for finding in self.findings if finding.gate]
        closed += [unchecked.rule for unchecked in self.not_checked if unchecked.gate]
        return tuple(dict.fromkeys(closed))

    @property
    def verdict(self) -> Verdict:
        """Return `passed` if all gates are open, `refused` if a finding closes a gate, else `not shown`."""
        if self.passed:
            return "passed"
        return "refused" if any(finding.gate for finding in self.findings) or not self.not_checked else "not shown"

    @property
    def verdict_words(self) -> str:
        """Return the verdict as text: `promotable`, `not shown to work` or `not promotable`."""
        return {"passed": "promotable", "not shown": "not shown to work", "refused": "not promotable"}[self.verdict]

    @property
    def waived_words(self) -> str:
        """Return the suffix of a score that waivers raised (`, 2 findings waived by 1 waiver`), or ""."""
        used = len({entry.waiver for entry in self.waived})
        return f", {pluralize(len(self.waived), 'finding')} waived by {pluralize(used, 'waiver')}" if used else ""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON, without times and machine names, so that equal servers give equal reports."""
        return {
            "report": 1,
            "rules_version": self.rules_version,
            "target": self.target,
            "server": dict(self.server),
            "revisions": list(self.revisions),
            "passed": self.passed,
            "verdict": self.verdict,
            "score": self.score,
            "lost": self.lost,
            "failed_gates": list(self.failed_gates),
            "tools": self.tools,
            "calls": len(self.called),
            "findings": [finding.to_json() for finding in self.findings],
            "not_checked": [asdict(unchecked) for unchecked in self.not_checked],
            "checked": list(self.checked),
            "api_failures": [dict(row) for row in self.api_failures],
            "not_applicable": dict(self.not_applicable),
            "called": [dict(call) for call in self.called],
            "not_called": dict(self.uncalled),
            "waived": [
                {"rule": w.rule, "message": w.message, "where": w.where, "waiver": w.waiver.to_json()}
                for w in self.waived
            ],
            "waivers": [
                {**one.waiver.to_json(), "state": one.state, **({"refused": one.reason} if one.reason else {})}
                for one in self.waivers
            ],
        }

    def to_text(self) -> str:
        """Return the report for a terminal: verdict, findings with evidence (worst first), notes, unchecked rules."""
        halved = ", halved by a closed gate" if self.score and any(one.gate for one in self.findings) else ""
        lines = [
            self._headline(),
            f"score {self.score}/100 ({self.lost:g} points lost{halved}, rules version {self.rules_version}){self.waived_words}",
        ]
        spoken = ", ".join(self.revisions) or "none"
        counts = f"{pluralize(self.tools, 'tool')}, {pluralize(len(self.called), 'call')} made"
        lines.append(f"{counts}; protocol revisions: {spoken}")
        if self.measured:
            lines.append(f"measured: {format_measurements(self.measured)}")
        notes = {one.rule: one.message for one in self.findings if one.severity == 1}
        for alike in group_findings(one for one in self.findings if one.severity > 1):
            lines += ["", *finding_lines(alike)]
        if notes:
            lines += ["", "notes, severity 1 (--json has the messages):", *_by_reason(notes)]
        if self.not_checked:
            gates = {one.rule: f"[gate]: {one.reason}" for one in self.not_checked if one.gate}
            others = {one.rule: one.reason for one in self.not_checked if not one.gate}
            lines += ["", "not checked:", *_by_reason(gates, " "), *_by_reason(others)]
        if self.called:
            tools = Counter(call["tool"] or "(no name)" for call in self.called)
            named = ", ".join(f"{tool} ({count})" if count > 1 else tool for tool, count in tools.items())
            lines += ["", "calls made (--json has the arguments):", _cut(printable_line(f"  {named}"))]
        if self.uncalled:
            lines += ["", "tools not called, or given up:", *_by_reason(self.uncalled)]
        if self.waivers:
            lines += ["", "waivers:", *(_waiver_line(one) for one in self.waivers)]
        if self.not_applicable:
            named = ", ".join(self.not_applicable)
            count = len(self.not_applicable)
            lines += ["", f"not applicable: {named if count <= _NAMED else f'{count} rules, which --json names'}"]
        return "\n".join(lines) + "\n"

    def _headline(self) -> str:
        if self.passed:
            return f"PASSED  {self.target}"
        gates = ", ".join(self.failed_gates)
        if self.verdict == "not shown" and {one.reason for one in self.not_checked} == {CREDENTIALS}:
            return f"NOT SHOWN  {self.target}\nno gate failed, but most could not be checked: {CREDENTIALS}"
        if self.verdict == "not shown":
            return f"NOT SHOWN  {self.target}\nno gate failed, but some could not be checked: {gates}\nto check them: {_SHOWN_BY}"
        return f"NOT PROMOTABLE  {self.target}\nclosed gates: {gates}"


def group_findings(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings that differ only in location, such as 100 tools without a description."""
    alike: dict[tuple[str, str, int], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.rule, finding.message, finding.severity), []).append(finding)
    return list(alike.values())


def format_measurements(measured: Mapping[str, int]) -> str:
    """Return the measurements as text, such as `first answer 120 ms, memory 41 MB`."""
    named = (
        ("start_ms", "first answer", "ms"),
        ("list_ms", "tool list", "ms"),
        ("call_ms", "a call", "ms"),
        ("memory_mb", "memory", "MB"),
    )
    return ", ".join(f"{words} {measured[key]} {unit}" for key, words, unit in named if key in measured)


def _by_reason(reasons: Mapping[str, str], separator: str = ": ") -> list[str]:
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [_cut(printable_line(f"  {', '.join(named)}{separator}{reason}")) for reason, named in names.items()]


def _waiver_line(one: WaiverState) -> str:
    waiver = one.waiver
    about = f" for {waiver.tool}" if waiver.tool else ""
    state = f"{one.state}: {one.reason}" if one.reason else one.state
    covers = f"; it {waiver.covers}" if waiver.covers else ""
    return f"  {waiver.rule}{about} [{state}] by {waiver.person} until {waiver.until}: {waiver.reason}{covers}"


def finding_lines(alike: list[Finding]) -> list[str]:
    """Return the terminal lines for a group of findings, with at most 12 lines per part of the evidence."""
    finding = alike[0]
    lines = [
        f"{finding.rule} [{finding.grade}]{f' at {printable_line(where)}' if (where := describe_first_locations([one.where for one in alike])) else ''}",
        f"  {printable_line(finding.message)}",
    ]
    lines += [f"  source: {finding.source}", f"  hint: {finding.hint}"]
    for key, value in (finding.evidence or {}).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = [_cut(line) for line in text.splitlines()[:_EVIDENCE_LINES]] or [""]
        lines += [f"  {key}: {shown[0]}", *(f"    {line}" for line in shown[1:])]
    return lines + [f"  follows: {line}" for line in effect_lines(alike)]


def effect_lines(alike: Iterable[Finding]) -> list[str]:
    """Return the effects of a group of findings, in at most six lines."""
    lines = list(dict.fromkeys(line for finding in alike for line in finding.follows))
    more = [f"and {len(lines) - _FOLLOWS} more"] if len(lines) > _FOLLOWS else []
    return [_cut(line) for line in lines[:_FOLLOWS]] + more


def describe_first_locations(found: list[str]) -> str:
    """Return the first three places and the number of further places as text; "" if no place has a name."""
    named = [place for place in found if place]
    more = f" and {len(named) - PLACES_SHOWN} more" if len(named) > PLACES_SHOWN else ""
    return ", ".join(named[:PLACES_SHOWN]) + more


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"
