"""The stages of a workspace as a graph, with the positions of candidates."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_pipeline.base.text import format_duration, pluralize, terminal_width, truncate
from mcpfactory_pipeline.plan.gates import GATES
from mcpfactory_pipeline.plan.plan import needed_stages
from mcpfactory_pipeline.plan.policy import describe_decision
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.policy import ChannelPolicy

if TYPE_CHECKING:
    from mcpfactory_pipeline.views.inbox import InboxItem


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the graph.

    `kind` is `stage`, `approval`, `gates` or `channel`. `needs` are the direct predecessors. `level` is the length of
    the longest path to the node. `status` is an outcome such as `passed` or `running`, or a verdict of the plan (`run`,
    `blocked`, `held`, `waiting`). An approval before a channel can also have the status `rejected`. In a graph of
    several servers, `status` is "".
    """

    name: str
    kind: str
    needs: tuple[str, ...]
    level: int
    status: str = ""
    note: str = ""


def gates_node_name(channel: str) -> str:
    """Return the name of the node for a channel's gates."""
    return f"gates of {channel}"


def approval_node_name(channel: str) -> str:
    """Return the name of the approval node before a channel."""
    return f"approval for {channel}"


def stage_graph(
    stages: Sequence[Stage], row: Mapping[str, Any] | None = None, channels: Sequence[ChannelPolicy] = ()
) -> tuple[GraphNode, ...]:
    """Return the nodes of the stages, and of channels that no stage fills.

    `row` is the `status_row` of a server. Indirect predecessors are left out. The nodes of a channel's gates and
    approvals precede the node of the channel.
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


def describe_rejections(known: Mapping[str, Any]) -> str:
    """Describe the rejections of a candidate, with reasons. `known` is an entry of `rejected` in a `status_row`."""
    return "; ".join(f"{known['version']} was {describe_decision('rejected', one)}" for one in known["by"])


def describe_channel_limits(channel: ChannelPolicy) -> list[str]:
    """Describe the gates and the soak time of a channel."""
    limits = {name: "" if GATES[name].switch else f" {limit:g}" for name, limit in channel.gates.items()}
    soak = [f"{format_duration(channel.soak)} in {channel.source}"] if channel.soak else []
    return [*(name.replace("_", " ") + limit for name, limit in limits.items()), *soak]


def _admission(
    nodes: dict[str, GraphNode], channel: ChannelPolicy, needs: tuple[str, ...], row: Mapping[str, Any]
) -> tuple[str, ...]:
    """Add nodes for a channel's gates and approvals before the channel. Return the channel's new needs."""
    asked = describe_channel_limits(channel)
    approvals = pluralize(channel.approvals, "approval") if channel.approvals else ""
    for name, kind, words in (
        (gates_node_name(channel.name), "gates", "; ".join(asked)),
        (approval_node_name(channel.name), "approval", approvals),
    ):
        if words and name not in nodes:
            said = row.get("rejected", {}).get(channel.name) if kind == "approval" else None
            status, note = ("rejected", describe_rejections(said)) if said else ("", words)
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


def to_text(nodes: Sequence[GraphNode], columns: int | None = None) -> str:
    """Return a line for each node, indented by its level. Approvals are in ( ), gates in < >, channels in [ ].

    If the lines are wider than `columns`, the predecessors are left out, and long notes are cut.
    """
    names = {node.name: "  " * node.level + node.name.join(_MARKS[node.kind]) for node in nodes}
    width = max(map(len, names.values()), default=0)
    needs = {node.name: f"needs {', '.join(node.needs)}" if node.needs else "" for node in nodes}
    second = max(map(len, needs.values()), default=0)
    statuses = {node.name: f"{node.status}{': ' if node.status and node.note else ''}{node.note}" for node in nodes}
    lines = [f"{names[one]:<{width}}  {needs[one]:<{second}}  {status}".rstrip() for one, status in statuses.items()]
    if columns is not None and max(map(terminal_width, lines), default=0) > columns:
        lines = [truncate(f"{names[one]:<{width}}  {status}".rstrip(), columns) for one, status in statuses.items()]
    return "\n".join(lines) + "\n"


def to_json(nodes: Sequence[GraphNode]) -> str:
    """Return a JSON list with an object for each node."""
    return json.dumps([asdict(node) for node in nodes], indent=2, ensure_ascii=False) + "\n"


_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "stage": ("[", "]"),
    "approval": ("([", "])"),
    "gates": ("{{", "}}"),
    "channel": ("[[", "]]"),
}


def to_mermaid(nodes: Sequence[GraphNode]) -> str:
    """Return a Mermaid flowchart, which code forges draw in Markdown files."""
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


MANY: Final = 30  # maximum number of servers that the graph shows by name
# Statuses that are also kinds of inbox items. The chips of these statuses link to the inbox.
_IN_INBOX: Final = frozenset({"gate", "approval", "ready"})
_CHIPS: Final = 8  # maximum number of chips per place, including the chip that counts the rest

# Statuses of a server at a place, in order of display.
_ORDER: Final = (
    "running", "failed", "errored", "interrupted", "inconclusive", "gate", "held", "approval", "rejected", "waiting", "ready", "stale", "never", "offered",
)  # fmt: skip
# Kinds of items about a channel that need no decision about a candidate.
_NO_QUESTION: Final = frozenset({"hold", "stale", "never", "failed"})


@dataclass(frozen=True, slots=True)
class ServerPosition:
    """A server at a node, with its candidate ("" before the build), its status and a dashboard page."""

    place: str
    server: str
    candidate: str
    version: str
    status: str
    about: str
    path: str


@dataclass(frozen=True, slots=True)
class PlaceChip:
    """A chip at a node: one candidate, or several servers.

    `path` is the dashboard page of the chip. `about` is the chip's full text.
    """

    label: str
    status: str
    about: str
    path: str


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A node with its chips. `number` is the number of servers at the node; None in a graph of one server."""

    node: GraphNode
    chips: tuple[PlaceChip, ...] = ()
    number: int | None = None


def candidate_anchor(candidate: str) -> str:
    """Return the HTML anchor of a candidate on the server's page."""
    return f"candidate-{candidate}"


def server_positions(
    row: Mapping[str, Any], items: Iterable[InboxItem], stages: Sequence[Stage], channels: Sequence[ChannelPolicy]
) -> tuple[ServerPosition, ...]:
    """Return all positions of a server. A retired or broken server has no position."""
    if row.get("retired") or row.get("problem") or not stages:
        return ()
    nodes = {node.name for node in stage_graph(stages, None, channels)}
    about = {item.about: item for item in items if item.kind not in _NO_QUESTION}
    failed = {item.about: item.message for item in items if item.kind == "failed"}
    found = [
        *_front(row, stages, nodes),
        *_before_channels(row, about, channels, nodes),
        *_offered(row, failed, channels, nodes),
    ]
    return tuple(found)


def _front(row: Mapping[str, Any], stages: Sequence[Stage], nodes: set[str]) -> Iterator[ServerPosition]:
    """Yield the positions of the newest candidate: all running stages, else the first unfinished stage."""
    at_work = set(row.get("at_work", ()))
    undone = (
        name
        for name, cell in row.get("stages", {}).items()
        if (cell["outcome"], cell["verdict"]) != ("passed", "up-to-date")
    )
    names = at_work or set(itertools.islice(undone, 1))
    for stage in stages:
        # A stage that awaits a channel has its position at the channel.
        if stage.name in at_work or (stage.name in names and not stage.awaits):
            yield _position_at(row, stage, stages, nodes, running=stage.name in at_work)


def _position_at(
    row: Mapping[str, Any], stage: Stage, stages: Sequence[Stage], nodes: set[str], *, running: bool
) -> ServerPosition:
    """Return the position of the newest candidate at a stage. Before the build, the position has no candidate."""
    cells, server = row.get("stages", {}), str(row["server"])
    names = [one.name for one in stages]
    builders = [names.index(one.name) for one in stages if "candidate" in one.writes]
    built = all(names.index(stage.name) > place for place in builders) and bool(row.get("candidate"))
    candidate, version = (str(row["candidate"]), str(row["version"])) if built else ("", "")
    cell = cells.get(stage.name, {})
    status = "running" if running else idle_stage_status(cell)
    if status in {"never", "passed", "stale"}:
        status = "gate" if cell.get("verdict") == "blocked" else "stale" if status == "passed" else status
    elif status == "waiting" and stage.approval:
        status = "approval"
    gates = gates_node_name(stage.channel.name) if stage.channel else ""
    place = gates if status == "gate" and gates in nodes else stage.name
    words = str(cell.get("message", "")) if status in {"failed", "errored", "interrupted", "inconclusive"} else ""
    words = words or ("at work now" if status == "running" else "; ".join(map(str, cell.get("reasons", ()))))
    path = f"/servers/{server}/" + (f"#{candidate_anchor(candidate)}" if candidate else "")
    return ServerPosition(place, server, candidate, version, status, words, path)


def idle_stage_status(cell: Mapping[str, Any]) -> str:
    """Return the status of a stage that is not running. `cell` is the stage's cell of a `status_row`."""
    verdict, outcome = cell.get("verdict"), cell.get("outcome")
    if outcome not in {None, "passed"}:
        return str(outcome)
    if verdict in {"held", "waiting"}:
        return str(verdict)
    return "never" if outcome is None else "passed" if verdict == "up-to-date" else "stale"


def _before_channels(
    row: Mapping[str, Any], about: Mapping[str, InboxItem], channels: Sequence[ChannelPolicy], nodes: set[str]
) -> Iterator[ServerPosition]:
    """Yield the candidates that wait before a channel: for a gate, for approvals, or until the soak time ends."""
    offers, server = row.get("channels", {}), str(row["server"])
    for channel in channels:
        next_up, there = offers.get(channel.source or ""), offers.get(channel.name)
        if next_up is None or (there and there["candidate"] == next_up["candidate"]):
            continue
        item = about.get(channel.name)
        said = row.get("rejected", {}).get(channel.name)
        if item is None and not said and (not channel.soak or channel.source in row.get("holds", {})):
            continue
        status = "rejected" if said else item.kind if item and item.kind in {"gate", "approval", "ready"} else "waiting"
        first, second = gates_node_name(channel.name), approval_node_name(channel.name)
        wanted = (second, first) if status in {"approval", "ready", "rejected"} else (first, second)
        place = next((name for name in wanted if name in nodes), "")
        if place:
            words = (
                describe_rejections(said)
                if said
                else item.message
                if item
                else f"waits for the end of its soak time in {channel.source}"
            )
            path = f"/servers/{server}/decide/{channel.name}/"
            yield ServerPosition(place, server, next_up["candidate"], next_up["version"], status, words, path)


def _offered(
    row: Mapping[str, Any], failed: Mapping[str, str], channels: Sequence[ChannelPolicy], nodes: set[str]
) -> Iterator[ServerPosition]:
    offers, server, holds = row.get("channels", {}), str(row["server"]), row.get("holds", {})
    for name, offer in offers.items():
        if name not in nodes:
            continue
        follows = (one.name for one in channels if one.source == name)
        due = next((to for to in follows if offers.get(to, {}).get("candidate") != offer["candidate"]), "")
        path = f"/servers/{server}/" + (f"decide/{due}/" if due else f"#{candidate_anchor(offer['candidate'])}")
        hold = holds.get(name)
        status = "held" if hold else "failed" if name in failed else "offered"
        held = describe_decision("held", hold) if hold else ""
        words = held or failed.get(name, "") or f"{name} offers it"
        yield ServerPosition(name, server, offer["candidate"], offer["version"], status, words, path)


def server_graph(
    row: Mapping[str, Any], items: Iterable[InboxItem], stages: Sequence[Stage], channels: Sequence[ChannelPolicy]
) -> tuple[GraphPlace, ...]:
    """Return the graph of one server, with the status of each stage and the position of each candidate."""
    positions = server_positions(row, items, stages, channels)
    return tuple(
        GraphPlace(node, tuple(_chip(one, one.version or "next") for one in here))
        for node in stage_graph(stages, row, channels)
        for here in [[one for one in positions if one.place == node.name]]
    )


def workspace_graph(
    nodes: Sequence[GraphNode], positions: Iterable[ServerPosition], servers: int
) -> tuple[GraphPlace, ...]:
    """Return the graph with a chip for each server; with more than `MANY` servers, a chip shows a number of servers."""
    there: dict[str, list[ServerPosition]] = {}
    for one in sorted(positions, key=lambda one: (_ORDER.index(one.status), one.server)):
        there.setdefault(one.place, []).append(one)
    chips = _counted if servers > MANY else _named
    return tuple(
        GraphPlace(node, tuple(chips(node, here)), len(here)) for node in nodes for here in [there.get(node.name, [])]
    )


def _named(node: GraphNode, positions: Sequence[ServerPosition]) -> Iterator[PlaceChip]:
    shown = positions if len(positions) <= _CHIPS else positions[: _CHIPS - 1]
    for one in shown:
        yield _chip(one, f"{one.server} {one.version}".strip())
    if rest := positions[len(shown) :]:
        yield PlaceChip(f"{len(rest)} more", rest[0].status, f"{len(rest)} more servers at {node.name}", "/board/")


def _counted(node: GraphNode, positions: Sequence[ServerPosition]) -> Iterator[PlaceChip]:
    for status, number in Counter(one.status for one in positions).items():
        path = f"/?kind={status}" if status in _IN_INBOX else f"/board/?status={status}"
        yield PlaceChip(f"{number:,}", status, f"servers at {node.name}", path)


def _chip(one: ServerPosition, label: str) -> PlaceChip:
    return PlaceChip(label, one.status, f"{one.server} {one.version}".strip() + f": {one.about}", one.path)
