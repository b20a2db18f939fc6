"""Views of a server's candidates and of validation findings."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.facts import ShownStatus, outcome_status, shorten
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.state import Candidate, ServerState
from mcpfactory_pipeline.state.timeline import actor_of, approvers_since_rollback, last_rollbacks

_SHOWN: Final = 12  # number of hexadecimal digits in a shortened hash


@dataclass(frozen=True, slots=True)
class DisplayedFact:
    """A named value as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class StageResultView:
    """Result of a stage for a candidate."""

    stage: str
    status: ShownStatus
    facts: tuple[DisplayedFact, ...]


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision about a candidate for a channel: `approved`, `rejected` or `rolled back`.

    `at` is "" if the history does not contain the decision. `counts` is False if a later rollback revoked the approval.
    """

    what: str
    channel: str
    who: str
    why: str
    at: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True)
class CandidateView:
    """A candidate. `made_from` describes the sources. `at`, `actor` and `run` describe the first build."""

    id: str
    version: str
    number: int
    current: bool
    at: str
    actor: str
    run: str
    files: tuple[DisplayedFact, ...]
    made_from: tuple[DisplayedFact, ...]
    facts: tuple[DisplayedFact, ...]
    checks: tuple[StageResultView, ...]
    channels: tuple[str, ...]
    decisions: tuple[DecisionView, ...]


def candidate_views(state: ServerState, history: Sequence[Event]) -> tuple[CandidateView, ...]:
    """Return the candidates, newest first."""
    decided = {
        (event["event"], event.get("channel"), event.get("candidate"), event["actor"]): event for event in history
    }
    back = last_rollbacks(history)
    # The first build event counts, because a repeated build of the same bytes creates no candidate.
    built = {str(event["candidate"]): event for event in reversed(history) if event.get("built")}
    known = sorted(state.candidates.items(), key=lambda item: item[1].number, reverse=True)
    return tuple(
        CandidateView(
            id=name,
            version=candidate.version,
            number=candidate.number,
            current=name == state.candidate,
            at=str(made.get("at", "")),
            actor=str(made.get("actor", "")),
            run=str(made.get("run", "")),
            files=tuple(DisplayedFact(file, digest) for file, digest in sorted(candidate.files.items())),
            made_from=tuple(
                DisplayedFact(part, _short(str(value)))
                for part, value in sorted({**build_sources(made), **candidate.inputs}.items())
            ),
            facts=format_summary_facts(candidate.facts),
            checks=tuple(
                StageResultView(
                    stage, outcome_status(check.get("outcome")), format_summary_facts(check.get("summary", {}))
                )
                for stage, check in candidate.checks.items()
            ),
            channels=tuple(channel for channel in state.channels if state.offered(channel) == name),
            decisions=tuple(
                view for _, view in sorted(_decisions(name, candidate, decided, history, back), key=lambda one: one[0])
            ),
        )
        for name, candidate in known
        for made in [built.get(name, {})]
    )


def build_sources(built: Event) -> Mapping[str, str]:
    """Return the inputs of a build, or only the commit if the manifest is missing."""
    known: Mapping[str, str] = built.get("made_from") or ({"commit": built["commit"]} if "commit" in built else {})
    return known


def format_summary_facts(summary: Mapping[str, Any]) -> tuple[DisplayedFact, ...]:
    """Return the scalars and lists of a summary as text."""
    return tuple(
        DisplayedFact(
            str(key).replace("_", " "),
            ", ".join(map(str, value)) or "none" if isinstance(value, list) else format_value(value),
        )
        for key, value in summary.items()
        if not isinstance(value, dict)
    )


def format_value(value: object) -> str:
    """Return a value as text: yes or no, a number with thousands separators, or a shortened hash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else _short(str(value))


def _short(value: str) -> str:
    return value[: len("sha256:") + _SHOWN] + "…" if value.startswith("sha256:") else value


def _decisions(
    name: str,
    candidate: Candidate,
    decided: Mapping[tuple[Any, ...], Event],
    history: Sequence[Event],
    back: Mapping[tuple[str, str], Event],
) -> Iterator[tuple[str, DecisionView]]:
    for what, said in (("approved", candidate.approvals), ("rejected", candidate.rejections)):
        for channel, people in said.items():
            rolled_back = what == "approved" and (channel, name) in back
            since = approvers_since_rollback(history, channel, name) if rolled_back else None
            for who, why in people.items():
                event = decided.get((what, channel, name, who), {})
                counts = since is None or who in since
                yield str(event.get("id", "")), DecisionView(what, channel, who, why, str(event.get("at", "")), counts)
    for (channel, about), event in back.items():
        if about == name:
            why = str(event.get("reason") or "")
            yield str(event["id"]), DecisionView("rolled back", channel, actor_of(event), why, str(event["at"]))


_MAX_FINDINGS: Final = 20  # maximum number of findings per page; the report has all findings
_ROOM: Final = 16_000  # maximum number of bytes of evidence per page
_PLACES: Final = 12
_TEXT: Final = 300  # maximum number of characters of each text


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """A part of the evidence, such as the request or the response."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FindingView:
    """Findings that differ only in location."""

    rule: str
    severity: int
    gate: bool
    number: int
    places: tuple[str, ...]
    message: str
    hint: str
    source: str
    evidence: tuple[EvidenceView, ...]


def finding_views(findings: Iterable[Mapping[str, Any]]) -> tuple[FindingView, ...]:
    """Return the findings of a report. Gates come first, then the findings with the highest severity."""
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        alike.setdefault((str(finding.get("rule")), str(finding.get("message"))), []).append(finding)
    groups = sorted(alike.values(), key=lambda some: (not some[0].get("gate"), -int(some[0].get("severity", 0))))
    room, shown = _ROOM, []
    for some in groups[:_MAX_FINDINGS]:
        evidence = tuple(
            EvidenceView(str(key), _fit(format_evidence(value), room // 3))
            for key, value in (some[0].get("evidence") or {}).items()
        )
        room -= sum(_bytes(one.text) for one in evidence)
        shown.append(_finding(some, evidence))
    return tuple(shown)


def format_evidence(value: object) -> str:
    """Return a value as readable text."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _finding(alike: Sequence[Mapping[str, Any]], evidence: tuple[EvidenceView, ...]) -> FindingView:
    finding = alike[0]
    places = [str(one["where"]) for one in alike if one.get("where")]
    return FindingView(
        rule=str(finding.get("rule", "")),
        severity=int(finding.get("severity", 0)),
        gate=bool(finding.get("gate")),
        number=len(alike),
        places=tuple(places[:_PLACES]),
        message=shorten(str(finding.get("message", "")), _TEXT),
        hint=shorten(str(finding.get("hint", "")), _TEXT),
        source=shorten(str(finding.get("source", "")), _TEXT),
        evidence=evidence,
    )


def _fit(text: str, room: int) -> str:
    size = _bytes(text)
    if size <= room:
        return text
    return f"{text[: len(text) * max(room, 0) // size]}… the report has all of it"


def _bytes(text: str) -> int:
    return len(html.escape(text).encode())
