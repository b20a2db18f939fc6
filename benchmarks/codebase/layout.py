"""Where the nodes of a graph without circles are drawn: rows from top to bottom, edges lead downwards. Pure, and the same every time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.codebase import graph

_SWEEPS: Final = 40
_GAP: Final = 14.0
_BEND: Final = 6.0  # the width of a place where an edge passes a row

Point = tuple[float, float]
_Slot = tuple[str, str, int]  # a node ("", name, row), or where the edge from one node to another passes a row


@dataclass(frozen=True, slots=True)
class Drawing:
    """Where everything is.

    Attributes:
        nodes: node → the middle of its box.
        edges: (from, to) → the points that the edge passes, from the lower side of one box to the upper side of the other.
        width: of the whole.
        height: of the whole.
    """

    nodes: dict[str, Point]
    edges: dict[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def lay_out(
    leads: Mapping[str, set[str]], width: Callable[[str], float], *, row_height: float, box_height: float
) -> Drawing:
    """Place every node below all that lead to it, and order each row so that few edges cross.

    Raises:
        ValueError: when the graph has a circle.
    """
    levels = graph.layers(leads)[::-1]
    row_of = {node: row for row, level in enumerate(levels) for node in level}
    chains = {
        (start, end): [
            _node(start, row_of),
            *((start, end, row) for row in range(row_of[start] + 1, row_of[end])),
            _node(end, row_of),
        ]
        for start in leads
        for end in sorted(leads[start])
    }
    rows: list[list[_Slot]] = [[_node(node, row_of) for node in sorted(level)] for level in levels]
    for chain in chains.values():
        for slot in chain[1:-1]:
            rows[slot[2]].append(slot)
    links = _links(chains)
    _order(rows, links)
    x = _spread(rows, links, lambda slot: _BEND if slot[0] else width(slot[1]))
    left = min(x[slot] - (_BEND if slot[0] else width(slot[1])) / 2 for row in rows for slot in row)
    right = max(x[slot] + (_BEND if slot[0] else width(slot[1])) / 2 for row in rows for slot in row)
    middle = {slot: (round(x[slot] - left, 1), slot[2] * row_height + box_height / 2) for row in rows for slot in row}
    edges = {pair: _points([middle[slot] for slot in chain], box_height / 2) for pair, chain in chains.items()}
    nodes = {node: middle[_node(node, row_of)] for node in leads}
    return Drawing(nodes, edges, round(right - left, 1), (len(rows) - 1) * row_height + box_height)


def _points(middles: Sequence[Point], half: float) -> tuple[Point, ...]:
    """Return what an edge passes: straight down beside the boxes of each row, and free between two rows."""
    points = [(x, y + side) for x, y in middles for side in (-half, half)]
    return tuple(points[1:-1])


def _node(name: str, row_of: Mapping[str, int]) -> _Slot:
    return ("", name, row_of[name])


def _links(chains: Mapping[tuple[str, str], Sequence[_Slot]]) -> dict[_Slot, list[_Slot]]:
    """Return the neighbours of every slot, in the row above and the row below."""
    links: dict[_Slot, list[_Slot]] = {}
    for chain in chains.values():
        for upper, lower in itertools.pairwise(chain):
            links.setdefault(upper, []).append(lower)
            links.setdefault(lower, []).append(upper)
    return links


def _order(rows: list[list[_Slot]], links: Mapping[_Slot, Sequence[_Slot]]) -> None:
    """Sort each row by the middle of its neighbours, downwards and upwards by turns; keep the order with the fewest crossings."""
    best, fewest = [list(row) for row in rows], _crossings(rows, links)
    for sweep in range(_SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        numbers = range(1, len(rows)) if step == 1 else range(len(rows) - 2, -1, -1)
        for number in numbers:
            place = {slot: index for index, slot in enumerate(rows[number - step])}
            own = {slot: index for index, slot in enumerate(rows[number])}
            rows[number].sort(
                key=lambda slot: (
                    _mean([place[each] for each in links.get(slot, ()) if each in place], own[slot]),
                    slot,
                )
            )
        if (crossings := _crossings(rows, links)) < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _crossings(rows: Sequence[Sequence[_Slot]], links: Mapping[_Slot, Sequence[_Slot]]) -> int:
    count = 0
    for upper, lower in itertools.pairwise(rows):
        place = {slot: index for index, slot in enumerate(lower)}
        pairs = [(index, place[end]) for index, slot in enumerate(upper) for end in links.get(slot, ()) if end in place]
        count += sum((a - c) * (b - d) < 0 for n, (a, b) in enumerate(pairs) for c, d in pairs[:n])
    return count


def _spread(
    rows: Sequence[Sequence[_Slot]], links: Mapping[_Slot, Sequence[_Slot]], width: Callable[[_Slot], float]
) -> dict[_Slot, float]:
    """Return how far to the right each slot is: near its neighbours, in the order of its row, without overlap."""
    x: dict[_Slot, float] = {}
    for row in rows:
        x |= dict(zip(row, _apart([0.0] * len(row), [width(slot) for slot in row]), strict=True))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 else rows[::-1]:
            middle = _mean([x[slot] for slot in row], 0.0)
            wanted = [
                _mean([x[each] for each in links.get(slot, ()) for _ in range(_weight(slot, each))], middle)
                for slot in row
            ]
            x |= dict(zip(row, _apart(wanted, [width(slot) for slot in row]), strict=True))
    return x


def _weight(one: _Slot, other: _Slot) -> int:
    """Return how strongly two neighbours want to stand one below the other: an edge that passes several rows is straight."""
    return (1, 2, 8)[bool(one[0]) + bool(other[0])]


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return the places nearest to those wanted (least squares) that keep the order and do not overlap."""
    offsets = [0.0]
    for left, right in itertools.pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + _GAP)
    blocks: list[tuple[float, int]] = []  # (mean, length): places that have to move together
    for want, offset in zip(wanted, offsets, strict=False):
        blocks.append((want - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (first, one), (second, two) = blocks[-2:]
            blocks[-2:] = [((first * one + second * two) / (one + two), one + two)]
    shifts = [mean for mean, length in blocks for _ in range(length)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=False)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
