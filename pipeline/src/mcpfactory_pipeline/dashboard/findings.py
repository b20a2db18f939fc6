"""Findings of a validation as pages show them: alike ones together, worst first, with as much evidence as a page has room for."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.facts import shorten

_SHOWN: Final = 20  # findings of a page; the report has all
_ROOM: Final = 16_000  # bytes of evidence on a page
_PLACES: Final = 12
_TEXT: Final = 300  # characters of one text


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """One part of the evidence: the request, the response or the output on stdout."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FindingView:
    """Findings that differ only in where they are: `number` of them, the first `places`. `evidence` is that of the first."""

    rule: str
    severity: int
    gate: bool
    number: int
    places: tuple[str, ...]
    message: str
    hint: str
    source: str
    evidence: tuple[EvidenceView, ...]


def findings_of(findings: Iterable[Mapping[str, Any]]) -> tuple[FindingView, ...]:
    """Return the findings of a report, gates first, then by severity."""
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        alike.setdefault((str(finding.get("rule")), str(finding.get("message"))), []).append(finding)
    groups = sorted(alike.values(), key=lambda some: (not some[0].get("gate"), -int(some[0].get("severity", 0))))
    room, shown = _ROOM, []
    for some in groups[:_SHOWN]:
        evidence = tuple(
            EvidenceView(str(key), _fit(pretty(value), room // 3))
            for key, value in (some[0].get("evidence") or {}).items()
        )
        room -= sum(_bytes(one.text) for one in evidence)
        shown.append(_finding(some, evidence))
    return tuple(shown)


def pretty(value: object) -> str:
    """Return a value as text that reads well."""
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
    """Return the beginning of a text that takes at most about `room` bytes of a page."""
    size = _bytes(text)
    if size <= room:
        return text
    return f"{text[: len(text) * max(room, 0) // size]}… the report has all of it"


def _bytes(text: str) -> int:
    return len(html.escape(text).encode())
