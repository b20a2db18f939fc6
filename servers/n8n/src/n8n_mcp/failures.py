"""Grouping of failed executions by workflow, node and reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .answers import members

__all__ = ["Failure", "failures"]

_SHOWN: Final = 500  # characters of a message
_EXAMPLES: Final = 3  # executions listed per failure


@dataclass(frozen=True, slots=True)
class Failure:
    """Executions that failed in the same way: count, time of the last one, and some IDs."""

    workflow: str
    workflow_name: str
    node: str
    message: str
    times: int
    last: str
    executions: list[str]


def failures(executions: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[Failure]:
    """Group failed executions; the most frequent failure first, then the latest.

    Args:
        executions: executions with data, the latest first, as the API returns them.
        names: workflow names by ID.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for execution in executions:
        result = members(members(execution.get("data")).get("resultData"))
        error = result.get("error")
        error = error if isinstance(error, Mapping) else {"message": error}
        where = error.get("node")  # an object, or only the name
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
