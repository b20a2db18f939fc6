"""The page of one server: stages, candidate, channels, findings, tools, history. Pure: facts in, view out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mcpfactory_pipeline.dashboard.board import Cell, cells_of
from mcpfactory_pipeline.dashboard.facts import ServerFacts
from mcpfactory_pipeline.dashboard.words import STATUSES, Status, headline

__all__ = ["CandidateView", "Event", "FindingView", "ServerPage", "ToolView", "server_page"]

_HISTORY = 200  # events shown; the file has all
_EVENTS = {
    "stage.started": "started",
    "stage.finished": "finished",
    "stage.interrupted": "interrupted",
    "promoted": "promoted",
}


@dataclass(frozen=True)
class StageView:
    """One stage with what it found."""

    cell: Cell
    message: str
    verdict: str  # up-to-date, run or blocked
    reasons: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CandidateView:
    """One candidate: its files with their hashes, its checks, and the channels that offer it."""

    id: str
    version: str
    number: int
    current: bool
    files: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, Status], ...]
    channels: tuple[str, ...]


@dataclass(frozen=True)
class FindingView:
    """Findings of the last validation that differ only in where they are.

    `evidence` is that of the first: (request, response, …) as text.
    """

    rule: str
    severity: int
    gate: bool
    places: tuple[str, ...]
    message: str
    hint: str
    source: str
    evidence: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ToolView:
    """One tool; `share` is its part of the dearest tool's tokens, 0 to 100."""

    name: str
    operation: str
    arguments: tuple[str, ...]
    tokens: int
    share: int


@dataclass(frozen=True)
class Event:
    """One line of the history."""

    at: str
    actor: str
    what: str
    status: Status | None
    detail: str


@dataclass(frozen=True)
class ServerPage:
    """The page."""

    workspace: str
    name: str
    status: Status
    version: str
    template: str
    source: str
    problem: Mapping[str, str]
    stages: tuple[StageView, ...]
    candidates: tuple[CandidateView, ...]
    channels: tuple[tuple[str, str, str], ...]  # channel, version, candidate
    validation: Mapping[str, Any]  # score, passed, rules_version, revisions; empty when there is no report here
    findings: tuple[FindingView, ...]
    not_checked: tuple[tuple[str, str], ...]
    tools: tuple[ToolView, ...]
    tokens: int
    skipped: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str, str], ...]
    history: tuple[Event, ...]
    older: int  # events beyond those shown

    def to_json(self) -> dict[str, Any]:
        """Plain data: what `?format=json` answers."""
        plain: dict[str, Any] = asdict(self)
        return {**plain, "status": self.status.key}


def server_page(facts: ServerFacts) -> ServerPage:
    """The page of one server."""
    cells = cells_of(facts.row)
    tools = _tools(facts.report)
    problem = facts.row.get("problem") or {}
    return ServerPage(
        workspace=facts.workspace,
        name=facts.name,
        status=STATUSES["broken"] if problem else headline([cell.status for cell in cells]),
        version=str(facts.row.get("version") or ""),
        template=facts.template,
        source=facts.source,
        problem={key: str(problem[key]) for key in ("message", "hint") if problem.get(key)},
        stages=tuple(_stage(cell, facts.row["stages"][cell.stage]) for cell in cells),
        candidates=_candidates(facts.state),
        channels=tuple(
            (name, str(release["version"]), str(release["candidate"]))
            for name, release in facts.row.get("channels", {}).items()
        ),
        validation={
            key: facts.validation[key]
            for key in ("score", "passed", "rules_version", "revisions")
            if key in facts.validation
        },
        findings=_findings(facts.validation.get("findings", ())),
        not_checked=tuple(
            (str(item.get("rule")), str(item.get("reason"))) for item in facts.validation.get("not_checked", ())
        ),
        tools=tools,
        tokens=sum(tool.tokens for tool in tools),
        skipped=tuple(
            (f"{one.get('method')} {one.get('path')}", str(one.get("reason", "")))
            for one in facts.report.get("skipped", ())
        ),
        environment=tuple(_variable(one) for one in facts.report.get("environment", ())),
        history=tuple(_event(event) for event in reversed(facts.history[-_HISTORY:])),
        older=max(len(facts.history) - _HISTORY, 0),
    )


def _stage(cell: Cell, stage: Mapping[str, Any]) -> StageView:
    facts = tuple((str(key).replace("_", " "), _short(value)) for key, value in stage.get("summary", {}).items())
    reasons = tuple(map(str, stage.get("reasons", ())))
    return StageView(cell, str(stage.get("message", "")), str(stage.get("verdict", "")), reasons, facts)


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def _candidates(state: Mapping[str, Any]) -> tuple[CandidateView, ...]:
    """Newest first."""
    offered: dict[str, list[str]] = {}
    for channel, release in state.get("channels", {}).items():
        offered.setdefault(str(release.get("candidate")), []).append(channel)
    known = sorted(state.get("candidates", {}).items(), key=lambda item: -int(item[1].get("number", 0)))
    return tuple(
        CandidateView(
            id=name,
            version=str(candidate.get("version", "")),
            number=int(candidate.get("number", 0)),
            current=name == state.get("candidate"),
            files=tuple(sorted((str(file), str(digest)) for file, digest in candidate.get("files", {}).items())),
            checks=tuple(
                (str(stage), _outcome(check.get("outcome"))) for stage, check in candidate.get("checks", {}).items()
            ),
            channels=tuple(offered.get(name, ())),
        )
        for name, candidate in known
    )


def _outcome(outcome: Any) -> Status:
    return STATUSES.get(str(outcome), STATUSES["inconclusive"])


def _findings(findings: Iterable[Mapping[str, Any]]) -> tuple[FindingView, ...]:
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        alike.setdefault((str(finding.get("rule")), str(finding.get("message"))), []).append(finding)
    return tuple(_finding(some) for some in alike.values())


def _finding(alike: Sequence[Mapping[str, Any]]) -> FindingView:
    finding = alike[0]
    evidence = finding.get("evidence") or {}
    return FindingView(
        rule=str(finding.get("rule", "")),
        severity=int(finding.get("severity", 0)),
        gate=bool(finding.get("gate")),
        places=tuple(str(one["where"]) for one in alike if one.get("where")),
        message=str(finding.get("message", "")),
        hint=str(finding.get("hint", "")),
        source=str(finding.get("source", "")),
        evidence=tuple((str(key), _pretty(value)) for key, value in evidence.items()),
    )


def _pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _tools(report: Mapping[str, Any]) -> tuple[ToolView, ...]:
    listed = [tool for tool in report.get("tools", ()) if isinstance(tool, dict)]
    dearest = max((int(tool.get("tokens", 0)) for tool in listed), default=0) or 1
    return tuple(
        ToolView(
            name=str(tool.get("name", "")),
            operation=_operation(tool.get("operation")),
            arguments=tuple(f"{name} ({bound.get('in')})" for name, bound in (tool.get("arguments") or {}).items()),
            tokens=int(tool.get("tokens", 0)),
            share=round(100 * int(tool.get("tokens", 0)) / dearest),
        )
        for tool in listed
    )


def _operation(operation: Any) -> str:
    return f"{operation.get('method')} {operation.get('path')}" if isinstance(operation, dict) else ""


def _variable(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(one.get("name", "")), "required" if one.get("required") else "optional", str(one.get("description", ""))


def _event(event: Mapping[str, Any]) -> Event:
    kind = str(event.get("event", ""))
    subject = str(event.get("stage") or event.get("channel") or "")
    outcome = event.get("outcome")
    verb = _EVENTS.get(kind, kind)
    status = _outcome(outcome) if outcome else STATUSES["interrupted"] if kind == "stage.interrupted" else None
    parts = [str(event[key]) for key in ("version", "message", "reason") if event.get(key)]
    parts += ["; ".join(map(str, event["reasons"]))] if event.get("reasons") else []
    return Event(
        str(event.get("at", "")), str(event.get("actor", "")), f"{subject} {verb}".strip(), status, " · ".join(parts)
    )
