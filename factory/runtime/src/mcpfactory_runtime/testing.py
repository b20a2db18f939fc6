"""Testing servers in memory.

>>> async with connect(server) as client:
...     result = await client.call_tool("add", {"a": 1, "b": 2})
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.dependencies import override
from mcpfactory_runtime.server.schema.json_schema import compile_schema
from mcpfactory_runtime.shape_diff import differences
from mcpfactory_runtime.transports.memory import serve_memory

if TYPE_CHECKING:
    from mcpfactory_runtime.server.server import Server

__all__ = ["compile_schema", "connect", "differences", "override"]


@asynccontextmanager
async def connect(server: Server, revision: str = "", **options: Any) -> AsyncIterator[Client]:
    """Yield a client of `server` in this process, over the same bytes as on stdio. The server's lifespan is entered.

    Args:
        server: the server under test.
        revision: the protocol revision to speak; "" is the newest.
        options: those of `mcpfactory_runtime.client.Client`: elicitation, sampling, roots, notified …
    """
    async with serve_memory(server) as stream, Client.connect_memory(stream, revision=revision, **options) as client:
        yield client
