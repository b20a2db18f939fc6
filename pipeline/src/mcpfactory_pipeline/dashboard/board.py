"""The board: servers × stages, what needs a person first. Pure: facts in, view out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.values import Pager, paged
from mcpfactory_pipeline.dashboard.words import STATUSES, Shown, headline, status_of

__all__ = ["GROUPS", "SORTS", "Board", "Cell", "Count", "Offer", "Row", "board", "cells_of"]

_REASONS = 2  # of one cell that the board shows; the server's page has all
_SIZE = 40  # rows of a page: with the longest names and reasons still below 100 kB


@dataclass(frozen=True)
class Cell:
    """One stage of one server: its status, and in a few words what it found or why it would run."""

    stage: str
    status: Shown
    note: str


@dataclass(frozen=True)
class Offer:
    """What a channel offers of a server: a version, or "" while it is only held. `held` says who holds it, and why."""

    channel: str
    version: str
    held: str


@dataclass(frozen=True)
class Row:
    """One server. `waiting` is how many things of it are in the inbox."""

    name: str
    status: Shown
    group: str
    cells: tuple[Cell, ...]
    version: str
    channels: tuple[Offer, ...]
    tools: int | None
    tokens: int | None
    score: int | None
    waiting: int
    problem: str


@dataclass(frozen=True)
class Count:
    """How many servers have a status, or belong to a group."""

    key: str
    status: Shown | None
    number: int


@dataclass(frozen=True)
class Board:
    """The board. `servers` are those of this page, after filtering; `counts` are of all servers of the workspace."""

    workspace: str
    stages: tuple[str, ...]
    channels: tuple[str, ...]
    counts: tuple[Count, ...]
    groups: tuple[Count, ...]
    total: int
    query: str
    status: str
    sort: str
    group: str
    pager: Pager
    servers: tuple[Row, ...]


# What rows can be sorted by; none of a value stands behind all that have one, in either direction.
SORTS: Final[dict[str, Callable[[Row], Any]]] = {
    "status": lambda row: row.status.rank,
    "name": lambda row: row.name,
    "version": lambda row: row.version or None,
    "score": lambda row: row.score,
    "tools": lambda row: row.tools,
    "tokens": lambda row: row.tokens,
    "waiting": lambda row: row.waiting,
}

# What rows can be grouped by.
GROUPS: Final[dict[str, Callable[[ServerFacts], str]]] = {
    "template": lambda server: server.template or "no template",
    "prefix": lambda server: server.name.replace("_", "-").partition("-")[0],
    "version": lambda server: str(server.row.get("version") or "not built"),
}


def board(
    facts: WorkspaceFacts, *, query: str = "", status: str = "", sort: str = "", group: str = "", page: str = "1"
) -> Board:
    """The board of a workspace: what needs a person first, then by name.

    `query` keeps servers whose name contains it, `status` those with that status. `sort` is one of `SORTS`, with a `-`
    before it the other way round; `group` is one of `GROUPS`. What is unknown counts as not given.
    """
    status = status if status in STATUSES else ""
    sort = sort if sort.removeprefix("-") in SORTS else "status"
    group = group if group in GROUPS else ""
    rows = [_row(server, group) for server in facts.servers]
    numbers = Counter(row.status.key for row in rows)
    kept = [row for row in rows if query.casefold() in row.name.casefold() and status in {"", row.status.key}]
    shown, pager = paged(_sorted(kept, sort), page, _SIZE)
    return Board(
        workspace=facts.name,
        stages=_ordered(server.row.get("stages", {}) for server in facts.servers),
        channels=_ordered(
            [channel.name for channel in facts.channels] or server.row.get("channels", {}) for server in facts.servers
        ),
        counts=tuple(Count(key, one, numbers[key]) for key, one in STATUSES.items() if numbers[key]),
        groups=tuple(Count(key, None, n) for key, n in sorted(Counter(row.group for row in kept).items()) if group),
        total=len(rows),
        query=query,
        status=status,
        sort=sort,
        group=group,
        pager=pager,
        servers=shown,
    )


def cells_of(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The stages of a status row, in their order."""
    return tuple(
        _cell(name, stage, running=row.get("running") == name) for name, stage in row.get("stages", {}).items()
    )


def _sorted(rows: list[Row], sort: str) -> list[Row]:
    value = SORTS[sort.removeprefix("-")]
    rows = sorted(rows, key=lambda row: row.name)
    known = [row for row in rows if value(row) is not None]
    known.sort(key=value, reverse=sort.startswith("-"))
    return sorted([*known, *(row for row in rows if value(row) is None)], key=lambda row: row.group)


def _row(server: ServerFacts, group: str) -> Row:
    cells = cells_of(server.row)
    problem = server.row.get("problem") or {}
    return Row(
        name=server.name,
        status=headline(server.row, [cell.status for cell in cells]),
        group=GROUPS[group](server) if group else "",
        cells=cells,
        version=str(server.row.get("version") or ""),
        channels=_offers(server.row),
        tools=server.tools,
        tokens=server.tokens,
        score=server.row.get("stages", {}).get("validate", {}).get("summary", {}).get("score"),
        waiting=len(server.items),
        problem=str(problem.get("message", "")),
    )


def _offers(row: Mapping[str, Any]) -> tuple[Offer, ...]:
    channels, holds = row.get("channels", {}), row.get("holds", {})
    return tuple(
        Offer(name, str(channels.get(name, {}).get("version", "")), _who(holds[name]) if name in holds else "")
        for name in dict.fromkeys((*channels, *holds))
    )


def _who(hold: Mapping[str, Any]) -> str:
    return f"{hold.get('actor', '')}: {hold['reason']}" if hold.get("reason") else str(hold.get("actor", ""))


def _cell(name: str, stage: Mapping[str, Any], *, running: bool) -> Cell:
    status = status_of(stage, running=running)
    known = [str(reason) for reason in stage.get("reasons", ())]
    reasons = "; ".join(known[:_REASONS]) + (f"; and {len(known) - _REASONS} more" if len(known) > _REASONS else "")
    message = str(stage.get("message", ""))
    return Cell(name, status, reasons if status.key in {"stale", "never", "held"} else message or reasons)


def _ordered(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Every name once, in the order in which they first come."""
    return tuple(dict.fromkeys(name for some in names for name in some))
