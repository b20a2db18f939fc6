"""A task as the two forms of the protocol show it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.revisions import TASKS, Revision
from mcpfactory_runtime.revisions.projection import project_tool_result
from mcpfactory_runtime.server.tasks.record import Task

__all__ = [
    "RELATED",
    "core_form",
    "detailed_form",
    "extension_form",
    "missing_extension",
    "no_result",
    "related",
    "tool_result",
    "unknown_task",
]

Json = dict[str, Any]

RELATED: Final = "io.modelcontextprotocol/related-task"
"""Key of `_meta` that says which task a message belongs to (core feature only)."""


def core_form(task: Task, poll_interval: int) -> Json:
    """Return the `Task` object of the core feature. A tool's own failure is `failed` there (Task Execution Errors)."""
    status, message = task.status, task.message
    if task.result is not None and task.result.get("isError"):
        status, message = "failed", _error_text(task.result)
    return _form(task, (status, message), {"ttl": task.ttl, "pollInterval": poll_interval})


def extension_form(task: Task, poll_interval: int) -> Json:
    """Return the `Task` object of the extension, without what only a detailed one has."""
    return _form(task, (task.status, task.message), {"ttlMs": task.ttl, "pollIntervalMs": poll_interval})


def detailed_form(task: Task, poll_interval: int, revision: Revision) -> Json:
    """Return the `DetailedTask` of the extension: with the questions, the result or the error of its status."""
    form = extension_form(task, poll_interval)
    if task.status == "input_required":
        form["inputRequests"] = task.requests
    elif task.result is not None:
        form["result"] = {"resultType": "complete", **tool_result(task.result, revision)}
    elif task.error is not None:
        form["error"] = task.error
    return form


def tool_result(result: Json, revision: Revision) -> Json:
    """Return a kept result as the peer's revision knows it; never the kept object itself."""
    return dict(project_tool_result(result, revision))


def related(task_id: str) -> Json:
    """Return what `_meta` says of a message that belongs to a task."""
    return {RELATED: {"taskId": task_id}}


def missing_extension() -> McpError:
    """Return the refusal for clients that did not declare the extension with the request (ext-tasks, Capability Negotiation)."""
    return McpError(
        MISSING_CAPABILITY,
        f"This needs the client capability extensions.{TASKS}, which the client did not declare with this request",
        {"requiredCapabilities": {"extensions": {TASKS: {}}}},
    )


def no_result(task: Task) -> McpError:
    """Return what `tasks/result` answers for a task that ended without a result."""
    if task.error is not None:
        return McpError(task.error["code"], task.error["message"], task.error.get("data"))
    return McpError(INVALID_REQUEST, f"The task was cancelled and has no result: {task.message}")


def unknown_task() -> McpError:
    """Return the error for a task that does not exist, has expired, or belongs to somebody else; one may not learn which."""
    return McpError(INVALID_PARAMS, "Invalid params: there is no such task, or it has expired")


def _form(task: Task, state: tuple[str, str | None], times: Json) -> Json:
    status, message = state
    form: Json = {"taskId": task.id, "status": status}
    if message:
        form["statusMessage"] = message
    form["createdAt"], form["lastUpdatedAt"] = _iso(task.created), _iso(task.updated)
    return form | times


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _error_text(result: Json) -> str:
    texts = [block.get("text", "") for block in result.get("content", ()) if block.get("type") == "text"]
    return texts[0] if texts and texts[0] else "The tool reported an error"
