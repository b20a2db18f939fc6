"""Each run of a workflow.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_EXECUTIONS = Operation(
    "GET",
    "/executions",
    parameters=(
        Parameter("status", "query", "status"),
        Parameter("workflowId", "query", "workflowId"),
        Parameter("projectId", "query", "projectId"),
        Parameter("includeData", "query", "includeData"),
        Parameter("limit", "query", "limit"),
        Parameter("cursor", "query", "cursor"),
    ),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
GET_EXECUTION = Operation(
    "GET",
    "/executions/{id}",
    parameters=(Parameter("id", "path", "id"), Parameter("includeData", "query", "includeData")),
    security=(("key",),),
)
DELETE_EXECUTION = Operation(
    "DELETE", "/executions/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
RETRY_EXECUTION = Operation(
    "POST",
    "/executions/{id}/retry",
    parameters=(Parameter("id", "path", "id"),),
    body=Body("application/json", (Field("loadWorkflow", ("loadWorkflow",)),), required=True),
    security=(("key",),),
)


async def list_executions(
    api: Upstream,
    /,
    *,
    status: Literal["canceled", "crashed", "error", "new", "running", "success", "unknown", "waiting"] | Unset = UNSET,
    workflowId: str | Unset = UNSET,
    projectId: str | Unset = UNSET,
    includeData: bool | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
) -> ToolResult:
    """List executions.

    GET /executions

    Args:
        api: the connection that the tools share.
        status: Only those that ended so
        workflowId: Only those of this workflow
        projectId: Only those of this project
        includeData: With what each node was given and gave, which is much
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(
        LIST_EXECUTIONS,
        {
            "status": status,
            "workflowId": workflowId,
            "projectId": projectId,
            "includeData": includeData,
            "limit": limit,
            "cursor": cursor,
        },
    )


async def get_execution(api: Upstream, /, *, id: str, includeData: bool | Unset = UNSET) -> ToolResult:
    """Look up one execution.

    GET /executions/{id}

    Args:
        api: the connection that the tools share.
        id: The execution
        includeData: With what each node was given and gave
    """
    return await api.send(GET_EXECUTION, {"id": id, "includeData": includeData})


async def delete_execution(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete an execution.

    DELETE /executions/{id}

    Args:
        api: the connection that the tools share.
        id: The execution
    """
    return await api.send(DELETE_EXECUTION, {"id": id})


async def retry_execution(api: Upstream, /, *, id: str, loadWorkflow: bool | Unset = UNSET) -> ToolResult:
    """Retry a failed execution.

    POST /executions/{id}/retry

    Args:
        api: the connection that the tools share.
        id: The execution
        loadWorkflow: With the workflow as it is now (true), or as it was then
    """
    return await api.send(RETRY_EXECUTION, {"id": id, "loadWorkflow": loadWorkflow})
