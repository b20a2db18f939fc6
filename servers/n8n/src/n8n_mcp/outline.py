"""Summary of a workflow, and a change to one of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .answers import members

__all__ = ["NodeOutline", "WorkflowOutline", "changed", "outline"]

Json = Mapping[str, Any]

# Settings and node members that n8n accepts in an update. It rejects a workflow with any other.
_OF_SETTINGS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "saveExecutionProgress": bool,
    "saveManualExecutions": bool,
    "saveDataErrorExecution": str,
    "saveDataSuccessExecution": str,
    "executionTimeout": (int, float),
    "errorWorkflow": str,
    "timezone": str,
    "executionOrder": str,
}
_OF_NODES: Final = frozenset(
    {
        "id",
        "name",
        "webhookId",
        "disabled",
        "notesInFlow",
        "notes",
        "type",
        "typeVersion",
        "executeOnce",
        "alwaysOutputData",
        "retryOnFail",
        "maxTries",
        "waitBetweenTries",
        "continueOnFail",
        "onError",
        "position",
        "parameters",
        "credentials",
    }
)


@dataclass(frozen=True, slots=True)
class NodeOutline:
    """A node. `next` has the names of the following nodes; `x` and `y` are its position in the editor."""

    name: str
    type: str
    disabled: bool
    credentials: list[str]
    next: list[str]
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkflowOutline:
    """A workflow without node parameters. `unconnected` has nodes without any connection that are not triggers."""

    id: str
    name: str
    active: bool
    updated: str
    tags: list[str]
    triggers: list[str]
    nodes: list[NodeOutline]
    unconnected: list[str] = field(default_factory=list)


def outline(workflow: Json) -> WorkflowOutline:
    """Return the summary of a workflow."""
    after = {str(name): _targets(members(ways)) for name, ways in members(workflow.get("connections")).items()}
    nodes = [_node(node, after.get(str(node.get("name")), [])) for node in map(members, workflow.get("nodes") or ())]
    reached = {name for names in after.values() for name in names}
    triggers = [node.name for node in nodes if _starts(node)]
    return WorkflowOutline(
        str(workflow["id"]),
        str(workflow.get("name") or ""),
        bool(workflow.get("active")),
        str(workflow.get("updatedAt") or ""),
        [str(members(tag).get("name", "")) for tag in workflow.get("tags") or ()],
        triggers,
        nodes,
        [
            node.name
            for node in nodes
            if node.name not in reached and node.name not in triggers and not after.get(node.name)
        ],
    )


def changed(workflow: Json, name: str, parameters: Json | None, *, disabled: bool | None) -> dict[str, Any]:
    """Return the update of a workflow with one node changed: parameters merged (RFC 7396), or the node switched off or on.

    Raises:
        KeyError: there is no such node; the message lists the nodes.
    """
    nodes = [dict(members(node)) for node in workflow.get("nodes") or ()]
    node = next((node for node in nodes if node.get("name") == name), None)
    if node is None:
        raise KeyError(f"There is no node {name!r}. Nodes: {', '.join(_name(node) for node in nodes) or 'none'}.")
    if parameters is not None:
        node["parameters"] = _merged(node.get("parameters") or {}, parameters)
    if disabled is not None:
        node["disabled"] = disabled
    settings = {key: value for key, value in (workflow.get("settings") or {}).items() if _is_taken(key, value)}
    return {
        "name": workflow.get("name") or "",
        "nodes": [
            {key: value for key, value in node.items() if key in _OF_NODES and value is not None} for node in nodes
        ],
        "connections": workflow.get("connections") or {},
        "settings": settings,
    }


def _is_taken(key: str, value: Any) -> bool:
    """Return True if n8n accepts a setting in an update. It returns more than it accepts, and keeps what is not sent."""
    return isinstance(value, _OF_SETTINGS.get(key, ())) and value != "DEFAULT"


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    found = dict(value) if isinstance(value, Mapping) else {}
    for key, one in patch.items():
        if one is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), one)
    return found


def _targets(ways: Json) -> list[str]:
    links = [link for outputs in ways.values() for output in outputs or () for link in output or ()]
    return list(dict.fromkeys(str(link["node"]) for link in map(members, links) if "node" in link))


def _name(node: Json) -> str:
    return str(node.get("name") or f"(no name, id {node.get('id')})")


def _node(node: Json, after: list[str]) -> NodeOutline:
    credentials = [str(members(one).get("name", kind)) for kind, one in members(node.get("credentials")).items()]
    x, y = [*(node.get("position") or []), 0.0, 0.0][:2]
    return NodeOutline(
        _name(node),
        str(node.get("type") or ""),
        bool(node.get("disabled")),
        credentials,
        after,
        float(x or 0),
        float(y or 0),
    )


def _starts(node: NodeOutline) -> bool:
    kind = node.type.rpartition(".")[2].lower()
    return "trigger" in kind or kind in ("webhook", "start", "cron", "interval")
