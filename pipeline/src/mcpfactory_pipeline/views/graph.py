"""The stages of a workspace as a graph, with where one server stands: as text, Mermaid and JSON. Pure: data in, text out.

The picture is drawn by `mcpfactory_pipeline.views.drawing`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_pipeline.base.text import format_duration, pluralize
from mcpfactory_pipeline.plan.gates import GATES
from mcpfactory_pipeline.plan.order import needed_stages
from mcpfactory_pipeline.plan.policy import ChannelPolicy, describe_decision
from mcpfactory_pipeline.plan.stage import Stage

__all__ = [
    "FORMATS",
    "GraphNode",
    "approval_name",
    "gates_name",
    "graph_of",
    "rejected_words",
    "to_json",
    "to_mermaid",
    "to_text",
]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One place of the graph: `kind` is `stage`, `approval`, `gates` or `channel`; `needs` are the nearest ones; `level` is how many stand before it in a row.

    `status` is `passed`, another outcome, `running`, or a verdict of the plan (`run`, `blocked`, `held`, `waiting`); at an
    approval before a channel `rejected`, where somebody said no; "" without a server.
    """

    name: str
    kind: str
    needs: tuple[str, ...]
    level: int
    status: str = ""
    note: str = ""


def gates_name(channel: str) -> str:
    """Return the name of the place before a channel where what it measures must be met."""
    return f"gates of {channel}"


def approval_name(channel: str) -> str:
    """Return the name of the place before a channel where people must say yes."""
    return f"approval for {channel}"


def graph_of(
    stages: Sequence[Stage], row: Mapping[str, Any] | None = None, channels: Sequence[ChannelPolicy] = ()
) -> tuple[GraphNode, ...]:
    """Return the nodes of stages, in their order, and of channels that no stage fills; `row` is the `status_row` of a server.

    A need that follows from another one is left out. Before each channel stand its gates and its approvals, where it asks for any.
    """
    before = {stage.name: needed_stages(stages, stage.name) for stage in stages}
    nodes: dict[str, GraphNode] = {}
    known = row or {}
    for stage in stages:
        needs = tuple(name for name in stage.needs if not any(name in before[other] for other in stage.needs))
        kind = "approval" if stage.approval else "channel" if stage.channel else "stage"
        cell = known.get("stages", {}).get(stage.name, {})
        if stage.channel:
            needs = _admission(nodes, stage.channel, needs, known)
        running = stage.name in known.get("at_work", ())
        status, note = ("running", "") if running else (_status(cell), _note(cell))
        nodes[stage.name] = GraphNode(stage.name, kind, needs, _level(nodes, needs), status, note)
    filled = {stage.channel.name: stage.name for stage in stages if stage.channel}
    for channel in channels:
        source = filled.get(channel.source or "", channel.source or "")
        if channel.name in filled or channel.name in nodes or source not in nodes:
            continue
        offered = known.get("channels", {}).get(channel.name)
        status = f"offers {offered['version']}" if offered else "offers nothing" if row else ""
        needs = _admission(nodes, channel, (source,), known)
        nodes[channel.name] = GraphNode(channel.name, "channel", needs, _level(nodes, needs), status)
    return tuple(nodes.values())


def rejected_words(known: Mapping[str, Any]) -> str:
    """Return who rejected a candidate, and why, in words: an entry of `rejected` of a `status_row`."""
    return "; ".join(f"{known['version']} was {describe_decision('rejected', one)}" for one in known["by"])


def _admission(
    nodes: dict[str, GraphNode], channel: ChannelPolicy, needs: tuple[str, ...], row: Mapping[str, Any]
) -> tuple[str, ...]:
    """Add what a channel asks for behind its needs, and return what the channel itself then needs."""
    asked = [
        name.replace("_", " ") + ("" if GATES[name].switch else f" {limit:g}") for name, limit in channel.gates.items()
    ]
    asked += [f"{format_duration(channel.soak)} in {channel.source}"] if channel.soak else []
    approvals = pluralize(channel.approvals, "approval") if channel.approvals else ""
    for name, kind, words in (
        (gates_name(channel.name), "gates", "; ".join(asked)),
        (approval_name(channel.name), "approval", approvals),
    ):
        if words and name not in nodes:
            said = row.get("rejected", {}).get(channel.name) if kind == "approval" else None
            status, note = ("rejected", rejected_words(said)) if said else ("", words)
            nodes[name] = GraphNode(name, kind, needs, _level(nodes, needs), status, note)
            needs = (name,)
    return needs


def _level(nodes: Mapping[str, GraphNode], needs: Sequence[str]) -> int:
    return 1 + max((nodes[name].level for name in needs), default=-1)


def _status(cell: Mapping[str, Any]) -> str:
    if not cell:
        return ""
    verdict, outcome = str(cell["verdict"]), cell["outcome"]
    if verdict == "up-to-date":
        return str(outcome or "passed")
    return str(outcome) if verdict == "blocked" and outcome not in {None, "passed"} else verdict


def _note(cell: Mapping[str, Any]) -> str:
    return str(cell.get("message", "")) if cell.get("verdict") == "up-to-date" else "; ".join(cell.get("reasons", ()))


# --- text ---

_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "stage": ("", ""),
    "approval": ("( ", " )"),
    "gates": ("< ", " >"),
    "channel": ("[ ", " ]"),
}


def to_text(nodes: Sequence[GraphNode]) -> str:
    """Return a line for each stage, as far indented as others stand before it; people in ( ), gates in < >, channels in [ ]."""
    names = {node.name: "  " * node.level + node.name.join(_MARKS[node.kind]) for node in nodes}
    width = max(map(len, names.values()), default=0)
    needs = {node.name: f"needs {', '.join(node.needs)}" if node.needs else "" for node in nodes}
    second = max(map(len, needs.values()), default=0)
    lines = []
    for node in nodes:
        status = f"{node.status}{': ' if node.status and node.note else ''}{node.note}"
        lines.append(f"{names[node.name]:<{width}}  {needs[node.name]:<{second}}  {status}".rstrip())
    return "\n".join(lines) + "\n"


def to_json(nodes: Sequence[GraphNode]) -> str:
    """Return a list of objects, one for each stage."""
    return json.dumps([asdict(node) for node in nodes], indent=2, ensure_ascii=False) + "\n"


_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "stage": ("[", "]"),
    "approval": ("([", "])"),
    "gates": ("{{", "}}"),
    "channel": ("[[", "]]"),
}


def to_mermaid(nodes: Sequence[GraphNode]) -> str:
    """Return a flowchart of Mermaid, which forges draw in Markdown."""
    ids = {node.name: f"s{number}" for number, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        left, right = _SHAPES[node.kind]
        words = f"{node.name}<br>{node.status}" if node.status else node.name
        lines.append(f'  {ids[node.name]}{left}"{words}"{right}')
    lines += [f"  {ids[need]} --> {ids[node.name]}" for node in nodes for need in node.needs]
    return "\n".join(lines) + "\n"


FORMATS: Final[Mapping[str, Callable[[Sequence[GraphNode]], str]]] = {
    "text": to_text,
    "json": to_json,
    "mermaid": to_mermaid,
}
