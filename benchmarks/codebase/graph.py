"""Questions to a directed graph, which is a mapping of each node to the nodes that it leads to. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Group = TypeVar("Group", bound=Hashable)
Graph = Mapping[Node, Collection[Node]]


def cycles(graph: Graph[Node]) -> list[frozenset[Node]]:
    """Return the strongly connected components of two nodes and more, the largest first: Tarjan's algorithm, without recursion."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[frozenset[Node]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph.get(successor, ()))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = stack[stack.index(node) :]
                    del stack[-len(component) :]
                    on_stack.difference_update(component)
                    found.append(frozenset(component))
    return sorted((each for each in found if len(each) > 1), key=len, reverse=True)


def sources(graph: Graph[Node]) -> dict[Node, set[Node]]:
    """Return for each node the nodes that lead to it."""
    found: dict[Node, set[Node]] = {node: set() for node in graph}
    for node, successors in graph.items():
        for successor in successors:
            found.setdefault(successor, set()).add(node)
    return found


def contract(graph: Graph[Node], group: Callable[[Node], Group]) -> dict[Group, set[Group]]:
    """Return the graph of groups: one leads to another where one of its nodes leads to one of the other's."""
    found: dict[Group, set[Group]] = defaultdict(set)
    for node, successors in graph.items():
        own = group(node)
        found[own] |= {group(successor) for successor in successors} - {own}
    return dict(found)


def layers(graph: Graph[Node]) -> list[list[Node]]:
    """Return the nodes of a graph without circles in layers, lowest first: each stands above all that it leads to.

    Raises:
        ValueError: when the graph has a circle.
    """
    height: dict[Node, int] = {}
    waiting = list(graph)
    while waiting:
        ready = [node for node in waiting if all(successor in height for successor in graph[node])]
        if not ready:
            raise ValueError(f"these nodes lead to each other in a circle: {waiting}")
        for node in ready:
            height[node] = 1 + max((height[successor] for successor in graph[node]), default=-1)
        waiting = [node for node in waiting if node not in height]
    return [[node for node in graph if height[node] == level] for level in range(max(height.values(), default=-1) + 1)]


def without_shortcuts(graph: Graph[Node]) -> dict[Node, set[Node]]:
    """Return the transitive reduction of a graph without circles: an edge goes where a longer way leads to the same node."""
    below: dict[Node, set[Node]] = {}
    for level in layers(graph):
        for node in level:
            below[node] = _union(below[successor] | {successor} for successor in graph[node])
    return {
        node: {successor for successor in successors if not any(successor in below[other] for other in successors)}
        for node, successors in graph.items()
    }


def _union(sets: Iterable[set[Node]]) -> set[Node]:
    """Return all members of some sets."""
    return {member for each in sets for member in each}
