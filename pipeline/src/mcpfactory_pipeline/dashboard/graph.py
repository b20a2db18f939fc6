"""The pipeline as a picture: where the candidates of all servers are. With many servers it counts them. Pure: facts in, view out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mcpfactory_pipeline.dashboard.facts import STATUSES, ServerFacts, ShownStatus, WorkspaceFacts
from mcpfactory_pipeline.views.graph import MANY, GraphPlace, Stand, graph_of, stands_of, workspace_places


@dataclass(frozen=True, slots=True)
class OutsideCount:
    """The number of servers that the graph leaves out: unreadable and retired ones."""

    status: ShownStatus
    number: int


@dataclass(frozen=True, slots=True)
class GraphPage:
    """The page. `counted` says that chips are numbers of servers; `shown` of `total` servers have a name that contains `query`."""

    workspace: str
    total: int
    shown: int
    query: str
    counted: bool
    running: int
    places: tuple[GraphPlace, ...]
    statuses: tuple[str, ...]
    outside: tuple[OutsideCount, ...]


def graph_page(facts: WorkspaceFacts, *, query: str = "") -> GraphPage:
    """Return the picture of a workspace. `query` keeps servers whose name contains it."""
    kept = [one for one in facts.servers if query.casefold() in one.name.casefold()]
    nodes = graph_of(facts.stages, None, facts.channels)
    stands = [stand for one in kept for stand in stands_in(facts, one)]
    places = workspace_places(nodes, stands, len(kept))
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
        outside=tuple(OutsideCount(STATUSES[key], number) for key, number in outside.items()),
    )


def stands_in(facts: WorkspaceFacts, server: ServerFacts) -> tuple[Stand, ...]:
    """Return the positions of one server of a workspace in the graph."""
    return stands_of(server.row, server.items, facts.stages, facts.channels)
