"""Files and pages that bots know.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import Operation, Parameter, Upstream

GET_FILE = Operation(
    "GET", "/library/files/{fileId}", parameters=(Parameter("fileId", "path", "fileId"),), security=(("key",),)
)
DELETE_FILE = Operation(
    "DELETE", "/library/files/{fileId}", parameters=(Parameter("fileId", "path", "fileId"),), security=(("key",),)
)
SHARE_FILE = Operation(
    "POST",
    "/library/files/{fileId}/source/{sourceId}",
    parameters=(Parameter("fileId", "path", "fileId"), Parameter("sourceId", "path", "sourceId")),
    security=(("key",),),
)
UNSHARE_FILE = Operation(
    "DELETE",
    "/library/files/{fileId}/source/{sourceId}",
    parameters=(Parameter("fileId", "path", "fileId"), Parameter("sourceId", "path", "sourceId")),
    security=(("key",),),
)


async def get_file(api: Upstream, /, *, fileId: str) -> ToolResult:
    """Look up a file of the library.

    GET /library/files/{fileId}

    Args:
        api: the connection that the tools share.
        fileId: The file
    """
    return await api.send(GET_FILE, {"fileId": fileId})


async def delete_file(api: Upstream, /, *, fileId: str) -> ToolResult:
    """Delete a file of the library.

    DELETE /library/files/{fileId}

    Args:
        api: the connection that the tools share.
        fileId: The file
    """
    return await api.send(DELETE_FILE, {"fileId": fileId})


async def share_file(api: Upstream, /, *, fileId: str, sourceId: str) -> ToolResult:
    """Give a source a file of the library.

    POST /library/files/{fileId}/source/{sourceId}

    Args:
        api: the connection that the tools share.
        fileId: The file
        sourceId: The source
    """
    return await api.send(SHARE_FILE, {"fileId": fileId, "sourceId": sourceId})


async def unshare_file(api: Upstream, /, *, fileId: str, sourceId: str) -> ToolResult:
    """Take a file of the library from a source.

    DELETE /library/files/{fileId}/source/{sourceId}

    Args:
        api: the connection that the tools share.
        fileId: The file
        sourceId: The source
    """
    return await api.send(UNSHARE_FILE, {"fileId": fileId, "sourceId": sourceId})
