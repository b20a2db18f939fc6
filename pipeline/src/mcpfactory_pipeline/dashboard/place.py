"""The servers at one place of the graph, as a list. Pure: facts in, view out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.facts import WorkspaceFacts
from mcpfactory_pipeline.dashboard.graph import stands_in
from mcpfactory_pipeline.dashboard.values import Pager, paged, shorten
from mcpfactory_pipeline.views.drawing import SIGNS
from mcpfactory_pipeline.views.graph import graph_of
from mcpfactory_pipeline.views.places import place_key

__all__ = ["PlaceCount", "PlacePage", "PlaceRow", "place_keys", "place_page"]

_SIZE: Final = 60  # rows of a page
_TEXT: Final = 240


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One server at the place: how it stands there, and the page that says more or decides."""

    server: str
    version: str
    status: str
    about: str
    path: str


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """How many servers at the place have a status."""

    status: str
    number: int


@dataclass(frozen=True, slots=True)
class PlacePage:
    """The list. `kind` is that of the place; `counts` are of all servers there, `rows` those of this page with the wanted `status`."""

    workspace: str
    place: str
    key: str
    kind: str
    note: str
    status: str
    counts: tuple[PlaceCount, ...]
    total: int
    pager: Pager
    rows: tuple[PlaceRow, ...]


def place_keys(facts: WorkspaceFacts) -> Iterator[str]:
    """Return how the places of a workspace are called in addresses."""
    yield from (place_key(node.name) for node in graph_of(facts.stages, None, facts.channels))


def place_page(facts: WorkspaceFacts, key: str, *, status: str = "", page: str = "") -> PlacePage:
    """Return the servers at a place, what is wrong first; with `status` those that stand there in this way.

    Raises:
        NotFoundError: for a place that the graph has not.
    """
    nodes = {place_key(node.name): node for node in graph_of(facts.stages, None, facts.channels)}
    if key not in nodes:
        raise NotFoundError(f"the graph has no place {key!r}", hint=f"places: {', '.join(nodes)}")
    node, order = nodes[key], list(SIGNS)
    there = [stand for server in facts.servers for stand in stands_in(facts, server) if stand.place == node.name]
    there.sort(key=lambda stand: (order.index(stand.status), stand.server))
    numbers = Counter(stand.status for stand in there)
    status = status if status in numbers else ""
    shown, pager = paged([stand for stand in there if status in {"", stand.status}], page, _SIZE)
    return PlacePage(
        workspace=facts.name,
        place=node.name,
        key=key,
        kind=node.kind,
        note=node.note,
        status=status,
        counts=tuple(PlaceCount(name, number) for name, number in numbers.items()),
        total=len(there),
        pager=pager,
        rows=tuple(PlaceRow(one.server, one.version, one.status, shorten(one.about, _TEXT), one.path) for one in shown),
    )
