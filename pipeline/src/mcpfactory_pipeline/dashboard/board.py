"""The board: servers × stages, what needs a person first. Pure: facts in, view out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.words import STATUSES, Status, headline, status_of

__all__ = ["Board", "Cell", "Count", "Row", "board", "cells_of"]


_REASONS = 2  # of one cell that the board shows; the server's page has all


@dataclass(frozen=True)
class Cell:
    """One stage of one server: its status, and in a few words what it found or why it would run."""

    stage: str
    status: Status
    note: str


@dataclass(frozen=True)
class Row:
    """One server."""

    name: str
    status: Status
    cells: tuple[Cell, ...]
    version: str
    channels: Mapping[str, str]  # channel → version
    tools: int | None
    tokens: int | None
    score: int | None
    problem: str


@dataclass(frozen=True)
class Count:
    """How many servers have a status."""

    status: Status
    number: int
    chosen: bool


@dataclass(frozen=True)
class Board:
    """The page. `shown` of `total` servers are in `rows` after filtering by `query` and `chosen`."""

    workspace: str
    stages: tuple[str, ...]
    channels: tuple[str, ...]
    rows: tuple[Row, ...]
    counts: tuple[Count, ...]
    total: int
    query: str
    chosen: str

    def to_json(self) -> dict[str, Any]:
        """Plain data: what `?format=json` answers."""
        return {
            "workspace": self.workspace,
            "stages": list(self.stages),
            "channels": list(self.channels),
            "counts": {count.status.key: count.number for count in self.counts},
            "total": self.total,
            "servers": [_row_json(row) for row in self.rows],
        }


def board(facts: WorkspaceFacts, *, query: str = "", chosen: str = "") -> Board:
    """The board of a workspace: failed and stale servers first, then by name.

    `query` keeps servers whose name contains it, `chosen` those with that status; unknown statuses choose nothing away.
    """
    rows = sorted((_row(server) for server in facts.servers), key=lambda row: (row.status.rank, row.name))
    chosen = chosen if chosen in STATUSES else ""
    numbers = Counter(row.status.key for row in rows)
    return Board(
        workspace=facts.name,
        stages=_ordered(server.row.get("stages", {}) for server in facts.servers),
        channels=_ordered(server.row.get("channels", {}) for server in facts.servers),
        rows=tuple(row for row in rows if query.casefold() in row.name.casefold() and chosen in ("", row.status.key)),
        counts=tuple(Count(status, numbers[key], key == chosen) for key, status in STATUSES.items() if numbers[key]),
        total=len(rows),
        query=query,
        chosen=chosen,
    )


def cells_of(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The stages of a status row, in their order."""
    return tuple(
        _cell(name, stage, running=row.get("running") == name) for name, stage in row.get("stages", {}).items()
    )


def _row(server: ServerFacts) -> Row:
    cells = cells_of(server.row)
    problem = server.row.get("problem") or {}
    tools = server.report.get("tools")
    return Row(
        name=server.name,
        status=STATUSES["broken"] if problem else headline([cell.status for cell in cells]),
        cells=cells,
        version=str(server.row.get("version") or ""),
        channels={name: str(release.get("version", "")) for name, release in server.row.get("channels", {}).items()},
        tools=len(tools) if isinstance(tools, list) else server.validation.get("tools"),
        tokens=server.report.get("tokens"),
        score=server.row.get("stages", {}).get("validate", {}).get("summary", {}).get("score"),
        problem=str(problem.get("message", "")),
    )


def _cell(name: str, stage: Mapping[str, Any], *, running: bool) -> Cell:
    status = status_of(stage, running=running)
    known = [str(reason) for reason in stage.get("reasons", ())]
    reasons = "; ".join(known[:_REASONS]) + (f"; and {len(known) - _REASONS} more" if len(known) > _REASONS else "")
    message = str(stage.get("message", ""))
    return Cell(name, status, reasons if status.key in ("stale", "never") else message or reasons)


def _ordered(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Every name once, in the order in which they first come."""
    return tuple(dict.fromkeys(name for some in names for name in some))


def _row_json(row: Row) -> dict[str, Any]:
    stages = {cell.stage: {"status": cell.status.key, "note": cell.note} for cell in row.cells}
    plain = {key: value for key, value in asdict(row).items() if key not in ("cells", "status")}
    return {**plain, "status": row.status.key, "stages": stages}
