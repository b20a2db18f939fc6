"""Values that all workflows may read.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_VARIABLES = Operation(
    "GET",
    "/variables",
    parameters=(Parameter("limit", "query", "limit"), Parameter("cursor", "query", "cursor")),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
CREATE_VARIABLE = Operation(
    "POST",
    "/variables",
    body=Body("application/json", (Field("key", ("key",)), Field("value", ("value",))), required=True),
    security=(("key",),),
)
UPDATE_VARIABLE = Operation(
    "PUT",
    "/variables/{id}",
    parameters=(Parameter("id", "path", "id"),),
    body=Body("application/json", (Field("key", ("key",)), Field("value", ("value",))), required=True),
    security=(("key",),),
)
DELETE_VARIABLE = Operation(
    "DELETE", "/variables/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)


async def list_variables(api: Upstream, /, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> ToolResult:
    """List variables.

    GET /variables

    Args:
        api: the connection that the tools share.
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(LIST_VARIABLES, {"limit": limit, "cursor": cursor})


async def create_variable(api: Upstream, /, *, key: str, value: str) -> ToolResult:
    """Create a variable.

    POST /variables

    Args:
        api: the connection that the tools share.
        key: Its name
        value: What workflows read
    """
    return await api.send(CREATE_VARIABLE, {"key": key, "value": value})


async def update_variable(api: Upstream, /, *, id: str, key: str, value: str) -> ToolResult:
    """Change a variable.

    PUT /variables/{id}

    Args:
        api: the connection that the tools share.
        id: The variable
        key: Its name
        value: What workflows read
    """
    return await api.send(UPDATE_VARIABLE, {"id": id, "key": key, "value": value})


async def delete_variable(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete a variable.

    DELETE /variables/{id}

    Args:
        api: the connection that the tools share.
        id: The variable
    """
    return await api.send(DELETE_VARIABLE, {"id": id})
