"""Results of the factory's MCP tools; their output schemas are derived from these classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcpfactory_pipeline.checks.report import Finding
from mcpfactory_pipeline.plan.plan import PlanStep
from mcpfactory_pipeline.views.inbox import InboxItem
from mcpfactory_runtime.types import Json


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server. `tools` and `source` are null if unknown. `problem` has message and hint for broken files."""

    server: str
    path: str
    template: str
    tools: int | None
    source: str | None
    problem: Json | None = None


@dataclass(frozen=True, slots=True)
class ServerList:
    """All servers."""

    servers: list[ServerRow]


@dataclass(frozen=True, slots=True)
class StatusList:
    """Status of servers, in the shape of `mcpfactory pipeline status --json`."""

    servers: list[Json]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """Stages that a run would execute."""

    due: int
    steps: list[PlanStep]


@dataclass(frozen=True, slots=True)
class FindingRow(Finding):
    """A finding with its evidence. Severity 5 is the highest. A finding with `gate` blocks the promotion."""

    evidence: Any = None


@dataclass(frozen=True, slots=True)
class FindingList:
    """Findings of `validate` in a candidate, gates first. `total` also counts the findings beyond `limit`."""

    server: str
    candidate: str
    version: str
    score: int
    passed: bool
    total: int
    findings: list[FindingRow]
    not_checked: list[Json]


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of an examination of a server's sources."""

    server: str
    score: int
    passed: bool
    failed_gates: list[str]
    findings: list[FindingRow]


@dataclass(frozen=True, slots=True)
class ConfusedTools:
    """Confused tools, most frequent pairs first. `reports` are the models with reports."""

    server: str
    reports: list[str]
    pairs: list[Json]


@dataclass(frozen=True, slots=True)
class SourceDiff:
    """Effect of changes in a server's sources on callers, and the version that the changes require."""

    server: str
    against: str
    before: str
    after: str
    needed: str
    step: str
    proposed: str
    kept: bool
    stale: tuple[str, ...]
    changes: list[Json]


@dataclass(frozen=True, slots=True)
class InboxResult:
    """Pending work, most blocking items first."""

    items: list[InboxItem]


@dataclass(frozen=True, slots=True)
class StageLog:
    """Output of a stage's last run. `cut` is True if the beginning of the output was omitted."""

    text: str
    cut: bool
