"""What runs: nodes and their connections.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_WORKFLOWS = Operation(
    "GET",
    "/workflows",
    parameters=(
        Parameter("active", "query", "active"),
        Parameter("tags", "query", "tags"),
        Parameter("name", "query", "name"),
        Parameter("projectId", "query", "projectId"),
        Parameter("excludePinnedData", "query", "excludePinnedData"),
        Parameter("limit", "query", "limit"),
        Parameter("cursor", "query", "cursor"),
    ),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
CREATE_WORKFLOW = Operation(
    "POST",
    "/workflows",
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("nodes", ("nodes",)),
            Field("connections", ("connections",)),
            Field("settings", ("settings",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
GET_WORKFLOW = Operation(
    "GET",
    "/workflows/{id}",
    parameters=(Parameter("id", "path", "id"), Parameter("excludePinnedData", "query", "excludePinnedData")),
    security=(("key",),),
)
UPDATE_WORKFLOW = Operation(
    "PUT",
    "/workflows/{id}",
    parameters=(Parameter("id", "path", "id"),),
    body=Body(
        "application/json",
        (
            Field("name", ("name",)),
            Field("nodes", ("nodes",)),
            Field("connections", ("connections",)),
            Field("settings", ("settings",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
DELETE_WORKFLOW = Operation(
    "DELETE", "/workflows/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
ACTIVATE_WORKFLOW = Operation(
    "POST", "/workflows/{id}/activate", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
DEACTIVATE_WORKFLOW = Operation(
    "POST", "/workflows/{id}/deactivate", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
SET_WORKFLOW_TAGS = Operation(
    "PUT",
    "/workflows/{id}/tags",
    parameters=(Parameter("id", "path", "id"),),
    body=Body("application/json", (Field("body"),), required=True),
    security=(("key",),),
)


async def list_workflows(
    api: Upstream,
    /,
    *,
    active: bool | Unset = UNSET,
    tags: str | Unset = UNSET,
    name: str | Unset = UNSET,
    projectId: str | Unset = UNSET,
    excludePinnedData: bool | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> ToolResult:
    """List workflows.

    GET /workflows

    Args:
        api: the connection that the tools share.
        active: Only those that run by their triggers (true) or do not (false)
        tags: Only those with all of these tags, separated by commas
        name: Only those of this name
        projectId: Only those of this project
        excludePinnedData: Leave out data that was pinned to nodes
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(
        LIST_WORKFLOWS,
        {
            "active": active,
            "tags": tags,
            "name": name,
            "projectId": projectId,
            "excludePinnedData": excludePinnedData,
            "limit": limit,
            "cursor": cursor,
        },
    )


async def create_workflow(
    api: Upstream, /, *, name: str, nodes: list[dict[str, Any]], connections: dict[str, Any], settings: dict[str, Any]
) -> ToolResult:
    """Create a workflow.

    POST /workflows

    Args:
        api: the connection that the tools share.
        name: What people see
        nodes: What is done
        connections: From the name of a node to the nodes that come after it
        settings: Time zone, error workflow, what is kept of runs
    """
    return await api.send(
        CREATE_WORKFLOW, {"name": name, "nodes": nodes, "connections": connections, "settings": settings}
    )


async def get_workflow(api: Upstream, /, *, id: str, excludePinnedData: bool | Unset = UNSET) -> ToolResult:
    """Look up one workflow.

    GET /workflows/{id}

    Args:
        api: the connection that the tools share.
        id: The workflow
        excludePinnedData: Leave out data that was pinned to nodes
    """
    return await api.send(GET_WORKFLOW, {"id": id, "excludePinnedData": excludePinnedData})


async def update_workflow(
    api: Upstream,
    /,
    *,
    id: str,
    name: str,
    nodes: list[dict[str, Any]],
    connections: dict[str, Any],
    settings: dict[str, Any],
) -> ToolResult:
    """Replace a workflow.

    PUT /workflows/{id}

    Args:
        api: the connection that the tools share.
        id: The workflow
        name: What people see
        nodes: What is done
        connections: From the name of a node to the nodes that come after it
        settings: Time zone, error workflow, what is kept of runs
    """
    return await api.send(
        UPDATE_WORKFLOW, {"id": id, "name": name, "nodes": nodes, "connections": connections, "settings": settings}
    )


async def delete_workflow(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete a workflow.

    DELETE /workflows/{id}

    Args:
        api: the connection that the tools share.
        id: The workflow
    """
    return await api.send(DELETE_WORKFLOW, {"id": id})


async def activate_workflow(api: Upstream, /, *, id: str) -> ToolResult:
    """Activate a workflow.

    POST /workflows/{id}/activate

    Args:
        api: the connection that the tools share.
        id: The workflow
    """
    return await api.send(ACTIVATE_WORKFLOW, {"id": id})


async def deactivate_workflow(api: Upstream, /, *, id: str) -> ToolResult:
    """Deactivate a workflow.

    POST /workflows/{id}/deactivate

    Args:
        api: the connection that the tools share.
        id: The workflow
    """
    return await api.send(DEACTIVATE_WORKFLOW, {"id": id})


async def set_workflow_tags(api: Upstream, /, *, id: str, body: list[dict[str, Any]]) -> ToolResult:
    """Set the tags of a workflow.

    PUT /workflows/{id}/tags

    Args:
        api: the connection that the tools share.
        id: The workflow
        body: The whole body of the request.
    """
    return await api.send(SET_WORKFLOW_TAGS, {"id": id, "body": body})
