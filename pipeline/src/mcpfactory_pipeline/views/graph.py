"""The stages of a workspace as a graph, with where one server stands: as text, SVG, Mermaid and JSON. Pure: data in, text out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from mcpfactory_pipeline.base.text import pluralize, truncate
from mcpfactory_pipeline.plan.order import needed_stages
from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.plan.stage import Stage

__all__ = [
    "FORMATS",
    "GraphBox",
    "GraphLayout",
    "GraphNode",
    "graph_of",
    "layout",
    "to_json",
    "to_mermaid",
    "to_svg",
    "to_text",
]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One stage: `kind` is `stage`, `approval` or `channel`; `needs` are the nearest ones; `level` is how many stand before it in a row.

    `status` is `passed`, another outcome, or a verdict of the plan (`run`, `blocked`, `held`, `waiting`); "" without a server.
    """

    name: str
    kind: str
    needs: tuple[str, ...]
    level: int
    status: str = ""
    note: str = ""


def graph_of(
    stages: Sequence[Stage], row: Mapping[str, Any] | None = None, channels: Sequence[ChannelPolicy] = ()
) -> tuple[GraphNode, ...]:
    """Return the nodes of stages, in their order, and of channels that no stage fills; `row` is the `status_row` of a server.

    A need that follows from another one is left out.
    """
    before = {stage.name: needed_stages(stages, stage.name) for stage in stages}
    levels: dict[str, int] = {}
    nodes = []
    for stage in stages:
        direct = [name for name in stage.needs if not any(name in before[other] for other in stage.needs)]
        levels[stage.name] = 1 + max((levels[name] for name in direct), default=-1)
        kind = "approval" if stage.approval else "channel" if stage.channel else "stage"
        cell = (row or {}).get("stages", {}).get(stage.name, {})
        nodes.append(GraphNode(stage.name, kind, tuple(direct), levels[stage.name], _status(cell), _note(cell)))
    return (*nodes, *_promoted_channels(nodes, stages, channels, row or {}))


def _promoted_channels(
    nodes: Sequence[GraphNode], stages: Sequence[Stage], channels: Sequence[ChannelPolicy], row: Mapping[str, Any]
) -> Iterator[GraphNode]:
    """Yield the channels that people and timers promote to, behind the approvals that they ask for."""
    levels = {node.name: node.level for node in nodes}
    filled = {stage.channel.name: stage.name for stage in stages if stage.channel and not stage.awaits}
    awaited = {stage.channel.name for stage in stages if stage.channel and stage.awaits}
    for channel in channels:
        before = filled.get(channel.source or "", channel.source or "")
        if channel.name in levels or channel.name in awaited or before not in levels:
            continue
        offered = row.get("channels", {}).get(channel.name)
        status = f"offers {offered['version']}" if offered else "offers nothing" if row else ""
        if channel.approvals:
            name = f"approval for {channel.name}"
            words = f"{pluralize(channel.approvals, 'approval')}"
            levels[name] = levels[before] + 1
            yield GraphNode(name, "approval", (before,), levels[name], "", words)
            before = name
        levels[channel.name] = levels[before] + 1
        yield GraphNode(channel.name, "channel", (before,), levels[channel.name], status)


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

_MARKS: Final[Mapping[str, tuple[str, str]]] = {"stage": ("", ""), "approval": ("( ", " )"), "channel": ("[ ", " ]")}


def to_text(nodes: Sequence[GraphNode]) -> str:
    """Return a line for each stage, as far indented as others stand before it; people in ( ), channels in [ ]."""
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


_SHAPES: Final[Mapping[str, tuple[str, str]]] = {"stage": ("[", "]"), "approval": ("([", "])"), "channel": ("[[", "]]")}


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


# --- picture ---

_WIDTH: Final = 150
_HEIGHT: Final = 40
_ACROSS: Final = 190
_DOWN: Final = 60
_EDGE: Final = 10
_TONES: Final[Mapping[str, str]] = {
    "passed": "#1a7f37",
    "failed": "#cf222e",
    "errored": "#cf222e",
    "blocked": "#cf222e",
    "waiting": "#9a6700",
    "held": "#9a6700",
    "run": "#0969da",
}
_GREY: Final = "#6e7781"


@dataclass(frozen=True, slots=True)
class GraphBox:
    """Where one stage is drawn, in pixels from the left and the top, and in which colour."""

    node: GraphNode
    x: int
    y: int
    colour: str
    width: int = _WIDTH
    height: int = _HEIGHT

    @property
    def radius(self) -> int:
        """How round the corners are: what people decide is a pill."""
        return _HEIGHT // 2 if self.node.kind == "approval" else 4


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The picture: its size, its boxes, and its arrows as paths."""

    width: int
    height: int
    boxes: tuple[GraphBox, ...]
    arrows: tuple[str, ...]


def layout(nodes: Sequence[GraphNode]) -> GraphLayout:
    """Return where everything is drawn: a column for each level, in it the stages in their order."""
    rows: dict[int, int] = {}
    boxes: dict[str, GraphBox] = {}
    for node in nodes:
        row = rows.setdefault(node.level, 0)
        rows[node.level] += 1
        colour = _TONES.get(node.status, _GREY)
        boxes[node.name] = GraphBox(node, _EDGE + node.level * _ACROSS, _EDGE + row * _DOWN, colour)
    arrows = tuple(_arrow(boxes[need], boxes[node.name]) for node in nodes for need in node.needs)
    width = 2 * _EDGE + max(rows, default=0) * _ACROSS + _WIDTH
    height = 2 * _EDGE + (max(rows.values(), default=1) - 1) * _DOWN + _HEIGHT
    return GraphLayout(width, height, tuple(boxes.values()), arrows)


def _arrow(start: GraphBox, end: GraphBox) -> str:
    x, y, to_x, to_y = start.x + _WIDTH, start.y + _HEIGHT // 2, end.x, end.y + _HEIGHT // 2
    middle = to_x - (_ACROSS - _WIDTH) // 2
    return f"M{x} {y}H{middle}V{to_y}H{to_x}"


def to_svg(nodes: Sequence[GraphNode]) -> str:
    """Return a picture that stands for itself: stages as boxes, channels with a thick edge, approvals as pills."""
    drawn = layout(nodes)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawn.width} {drawn.height}" width="{drawn.width}" '
        f'height="{drawn.height}" font-family="sans-serif" role="img" aria-label="stages">'
    ]
    lines += [f'<path d="{arrow}" fill="none" stroke="{_GREY}"/>' for arrow in drawn.arrows]
    for box in drawn.boxes:
        node, edge = box.node, 3 if box.node.kind == "channel" else 1
        words = node.name + (f": {node.status}" if node.status else "") + (f" – {node.note}" if node.note else "")
        lines += [
            f"<g><title>{escape(words)}</title>",
            f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="{box.radius}" fill="#ffffff" '
            f'stroke="{box.colour}" stroke-width="{edge}"/>',
            f'<text x="{box.x + box.width // 2}" y="{box.y + 17}" font-size="13" text-anchor="middle" fill="#1f2328">'
            f"{escape(truncate(node.name, 20))}</text>",
            f'<text x="{box.x + box.width // 2}" y="{box.y + 32}" font-size="11" text-anchor="middle" fill="{box.colour}">'
            f"{escape(node.status)}</text></g>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


FORMATS: Final[Mapping[str, Callable[[Sequence[GraphNode]], str]]] = {
    "text": to_text,
    "svg": to_svg,
    "json": to_json,
    "mermaid": to_mermaid,
}
