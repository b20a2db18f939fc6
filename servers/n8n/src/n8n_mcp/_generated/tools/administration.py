"""Users, projects, the security audit.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_USERS = Operation(
    "GET",
    "/users",
    parameters=(
        Parameter("includeRole", "query", "includeRole"),
        Parameter("limit", "query", "limit"),
        Parameter("cursor", "query", "cursor"),
    ),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
LIST_PROJECTS = Operation(
    "GET",
    "/projects",
    parameters=(Parameter("limit", "query", "limit"), Parameter("cursor", "query", "cursor")),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
AUDIT_INSTANCE = Operation(
    "POST",
    "/audit",
    body=Body("application/json", (Field("additionalOptions", ("additionalOptions",)),)),
    security=(("key",),),
)


async def list_users(
    api: Upstream, /, *, includeRole: bool | Unset = UNSET, limit: int | Unset = UNSET, cursor: str | Unset = UNSET
) -> ToolResult:
    """List users.

    GET /users

    Args:
        api: the connection that the tools share.
        includeRole: With the role of each
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(LIST_USERS, {"includeRole": includeRole, "limit": limit, "cursor": cursor})


async def list_projects(api: Upstream, /, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> ToolResult:
    """List projects.

    GET /projects

    Args:
        api: the connection that the tools share.
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(LIST_PROJECTS, {"limit": limit, "cursor": cursor})


async def audit_instance(api: Upstream, /, *, additionalOptions: dict[str, Any] | Unset = UNSET) -> ToolResult:
    """Audit the security of the instance.

    POST /audit

    Args:
        api: the connection that the tools share.
        additionalOptions: `additionalOptions` in the body.
    """
    return await api.send(AUDIT_INSTANCE, {"additionalOptions": additionalOptions})
