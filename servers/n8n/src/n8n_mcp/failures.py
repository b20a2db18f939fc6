"""Executions that failed, by workflow, node and reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .answers import members

__all__ = ["Failure", "failures"]

_SHOWN: Final = 500  # characters of a message
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed in the same way: how often, when last, and some of the executions."""

    workflow: str
    workflow_name: str
    node: str
    message: str
    times: int
    last: str
    executions: list[str]


def failures(executions: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[Failure]:
    """Return the failures of executions with their data, the most frequent first, and of these the latest.

    Args:
        executions: the latest first, as the API gives them.
        names: of workflows, by their ids.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for execution in executions:
        result = members(members(execution.get("data")).get("resultData"))
        error = result.get("error")
        error = error if isinstance(error, Mapping) else {"message": error}
        where = error.get("node")  # an object, or the name alone
        node = str(
            members(where).get("name")
            or (where if isinstance(where, str) else "")
            or result.get("lastNodeExecuted")
            or "unknown node"
        )
        said = str(error.get("message") or "the execution has no message")
        about = error.get("description")
        message = f"{said}: {about}" if about and about != said else said
        groups.setdefault((str(execution.get("workflowId", "")), node, message[:_SHOWN]), []).append(execution)
    found = [
        Failure(
            workflow,
            names.get(workflow, ""),
            node,
            message,
            len(group),
            max(str(one.get("stoppedAt") or one.get("startedAt") or "") for one in group),
            [str(one.get("id", "")) for one in group[:_EXAMPLES]],
        )
        for (workflow, node, message), group in groups.items()
    ]
    return sorted(sorted(found, key=lambda one: one.last, reverse=True), key=lambda one: -one.times)
