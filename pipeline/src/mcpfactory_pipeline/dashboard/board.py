"""Board and graph. The board is a table of servers and stages, and the graph shows all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.facts import (
    STATUSES,
    DisplayedStatus,
    Pager,
    ServerFacts,
    ShownStatus,
    WorkspaceFacts,
    displayed_stage_status,
    overall_status,
    paginate,
)
from mcpfactory_pipeline.views.graph import MANY, GraphPlace, server_positions, stage_graph, workspace_graph

_REASONS: Final = 2  # maximum number of reasons per cell
_SIZE: Final = 40  # maximum number of rows per page; with the longest texts, a page stays below 100 kB


@dataclass(frozen=True, slots=True)
class StageCell:
    """A stage of a server on the board. `note` is a short result, or the reason why the stage must run."""

    stage: str
    status: ShownStatus
    note: str


@dataclass(frozen=True, slots=True)
class ChannelCell:
    """A channel of a server on the board."""

    channel: str
    version: str
    held: str


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A server on the board.

    `waiting` is the number of the server's inbox items. `risks` are those of its pending promotions, and `rejected`.
    """

    name: str
    status: ShownStatus
    group: str
    cells: tuple[StageCell, ...]
    version: str
    channels: tuple[ChannelCell, ...]
    tools: int | None
    tokens: int | None
    score: int | None
    waiting: int
    problem: str
    risks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerCount:
    """The number of servers with one status or in one group."""

    key: str
    status: ShownStatus | None
    number: int


@dataclass(frozen=True, slots=True)
class BoardPage:
    """The board. `counts` include all servers of the workspace."""

    workspace: str
    stages: tuple[str, ...]
    channels: tuple[str, ...]
    counts: tuple[ServerCount, ...]
    groups: tuple[ServerCount, ...]
    total: int
    query: str
    status: str
    sort: str
    group: str
    pager: Pager
    servers: tuple[BoardRow, ...]


@dataclass(frozen=True, slots=True)
class _ServerSummary:
    server: ServerFacts
    status: DisplayedStatus
    group: str


# Column → sort key. Rows without a value come last in both directions.
SORTS: Final[dict[str, Callable[[_ServerSummary], Any]]] = {
    "status": lambda brief: brief.status.rank,
    "name": lambda brief: brief.server.name,
    "version": lambda brief: _version(brief.server) or None,
    "score": lambda brief: _score(brief.server),
    "tools": lambda brief: brief.server.tools,
    "tokens": lambda brief: brief.server.tokens,
    "waiting": lambda brief: len(brief.server.items),
}

# Criterion → function that returns a server's group.
GROUPS: Final[dict[str, Callable[[ServerFacts], str]]] = {
    "template": lambda server: server.template or "no template",
    "prefix": lambda server: server.name.replace("_", "-").partition("-")[0],
    "version": lambda server: _version(server) or "not built",
}


def board(
    facts: WorkspaceFacts, *, query: str = "", status: str = "", sort: str = "", group: str = "", page: str = "1"
) -> BoardPage:
    """Return the board of a workspace. By default, servers that need attention come first.

    `query` is a text in the server's name. `sort` is one of `SORTS`, and the prefix `-` selects descending order.
    Unknown values of the parameters are ignored.
    """
    status = status if status in STATUSES else ""
    sort = sort if sort.removeprefix("-") in SORTS else "status"
    group = group if group in GROUPS else ""
    briefs = [_brief(server, group) for server in facts.servers]
    numbers = Counter(brief.status.key for brief in briefs)
    words = query.casefold()
    kept = [one for one in briefs if words in one.server.name.casefold() and status in {"", one.status.key}]
    shown, pager = paginate(_sorted(kept, sort), page, _SIZE)
    return BoardPage(
        workspace=facts.name,
        stages=_ordered(server.row.get("stages", {}) for server in facts.servers),
        channels=_ordered(
            [channel.name for channel in facts.channels] or server.row.get("channels", {}) for server in facts.servers
        ),
        counts=tuple(ServerCount(key, one, numbers[key]) for key, one in STATUSES.items() if numbers[key]),
        groups=tuple(
            ServerCount(key, None, n) for key, n in sorted(Counter(one.group for one in kept).items()) if group
        ),
        total=len(briefs),
        query=query,
        status=status,
        sort=sort,
        group=group,
        pager=pager,
        servers=tuple(map(_row, shown)),
    )


def stage_cells(row: Mapping[str, Any]) -> tuple[StageCell, ...]:
    """Return the stages of a status row."""
    at_work = row.get("at_work", ())
    return tuple(_cell(name, stage, running=name in at_work) for name, stage in row.get("stages", {}).items())


def _brief(server: ServerFacts, group: str) -> _ServerSummary:
    at_work = server.row.get("at_work", ())
    statuses = [
        displayed_stage_status(stage, running=name in at_work) for name, stage in server.row.get("stages", {}).items()
    ]
    return _ServerSummary(server, overall_status(server.row, statuses), GROUPS[group](server) if group else "")


def _sorted(briefs: list[_ServerSummary], sort: str) -> list[_ServerSummary]:
    value = SORTS[sort.removeprefix("-")]
    briefs = sorted(briefs, key=lambda brief: brief.server.name)
    known = [brief for brief in briefs if value(brief) is not None]
    known.sort(key=value, reverse=sort.startswith("-"))
    return sorted([*known, *(brief for brief in briefs if value(brief) is None)], key=lambda brief: brief.group)


def _row(brief: _ServerSummary) -> BoardRow:
    server = brief.server
    problem = server.row.get("problem") or {}
    return BoardRow(
        name=server.name,
        status=brief.status,
        group=brief.group,
        cells=stage_cells(server.row),
        version=_version(server),
        channels=_offers(server.row),
        tools=server.tools,
        tokens=server.tokens,
        score=_score(server),
        waiting=len(server.items),
        problem=str(problem.get("message", "")),
        risks=tuple(
            dict.fromkeys(
                (
                    *(["rejected"] if server.row.get("rejected") else []),
                    *(risk for one in server.items for risk in one.risks),
                )
            )
        ),
    )


def _version(server: ServerFacts) -> str:
    return str(server.row.get("version") or "")


def _score(server: ServerFacts) -> int | None:
    score: int | None = server.row.get("stages", {}).get("validate", {}).get("summary", {}).get("score")
    return score


def _offers(row: Mapping[str, Any]) -> tuple[ChannelCell, ...]:
    channels, holds = row.get("channels", {}), row.get("holds", {})
    return tuple(
        ChannelCell(
            name, str(channels.get(name, {}).get("version", "")), describe_hold(holds[name]) if name in holds else ""
        )
        for name in dict.fromkeys((*channels, *holds))
    )


def describe_hold(hold: Mapping[str, Any]) -> str:
    """Return the author and the reason of a hold as text."""
    return f"{hold.get('actor', '')}: {hold['reason']}" if hold.get("reason") else str(hold.get("actor", ""))


def _cell(name: str, stage: Mapping[str, Any], *, running: bool) -> StageCell:
    status = displayed_stage_status(stage, running=running)
    if running:
        return StageCell(name, status, "")
    known = [str(reason) for reason in stage.get("reasons", ())]
    reasons = "; ".join(known[:_REASONS]) + (f"; and {len(known) - _REASONS} more" if len(known) > _REASONS else "")
    message = str(stage.get("message", ""))
    return StageCell(name, status, reasons if status.key in {"stale", "never", "held"} else message or reasons)


def _ordered(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))


@dataclass(frozen=True, slots=True)
class OmittedServerCount:
    """Number of broken or retired servers. The graph omits these servers."""

    status: ShownStatus
    number: int


@dataclass(frozen=True, slots=True)
class GraphPage:
    """Page with the graph. If `counted` is True, the graph shows numbers of servers instead of names."""

    workspace: str
    total: int
    shown: int
    query: str
    counted: bool
    running: int
    places: tuple[GraphPlace, ...]
    statuses: tuple[str, ...]
    outside: tuple[OmittedServerCount, ...]


def graph_page(facts: WorkspaceFacts, *, query: str = "") -> GraphPage:
    """Return the graph of the servers whose name contains `query`."""
    kept = [one for one in facts.servers if query.casefold() in one.name.casefold()]
    nodes = stage_graph(facts.stages, None, facts.channels)
    positions = [
        position for one in kept for position in server_positions(one.row, one.items, facts.stages, facts.channels)
    ]
    places = workspace_graph(nodes, positions, len(kept))
    outside = Counter(
        "broken" if one.row.get("problem") else "retired"
        for one in kept
        if one.row.get("problem") or one.row.get("retired")
    )
    return GraphPage(
        workspace=facts.name,
        total=len(facts.servers),
        shown=len(kept),
        query=query,
        counted=len(kept) > MANY,
        running=sum(bool(one.row.get("at_work")) for one in kept),
        places=places,
        statuses=tuple(dict.fromkeys(chip.status for place in places for chip in place.chips)),
        outside=tuple(OmittedServerCount(STATUSES[key], number) for key, number in outside.items()),
    )
