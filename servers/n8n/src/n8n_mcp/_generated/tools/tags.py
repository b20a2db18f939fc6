"""Words that workflows are sorted by.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

LIST_TAGS = Operation(
    "GET",
    "/tags",
    parameters=(Parameter("limit", "query", "limit"), Parameter("cursor", "query", "cursor")),
    security=(("key",),),
    paging=Paging("cursor", "cursor", next=("nextCursor",), items=("data",), size="limit", limit=100),
)
CREATE_TAG = Operation(
    "POST", "/tags", body=Body("application/json", (Field("name", ("name",)),), required=True), security=(("key",),)
)


async def list_tags(api: Upstream, /, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> ToolResult:
    """List tags.

    GET /tags

    Args:
        api: the connection that the tools share.
        limit: At most so many
        cursor: The nextCursor of the page before
    """
    return await api.send(LIST_TAGS, {"limit": limit, "cursor": cursor})


async def create_tag(api: Upstream, /, *, name: str) -> ToolResult:
    """Create a tag.

    POST /tags

    Args:
        api: the connection that the tools share.
        name: The word
    """
    return await api.send(CREATE_TAG, {"name": name})
