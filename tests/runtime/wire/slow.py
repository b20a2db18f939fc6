"""A server with a tool that waits, for tests of concurrent messages."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from mcpfactory_runtime import Context, Server
from tests.runtime.wire.raw_client import Json, request


def slow() -> tuple[Server, asyncio.Event, list[str]]:
    """Return a server with a tool that waits for the event, and a list of what happened."""
    server, go, log = Server("slow"), asyncio.Event(), list[str]()

    @server.tool
    async def work(ctx: Context) -> str:
        """Work."""
        log.append("begun")
        await ctx.report_progress(1)
        try:
            await go.wait()
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        await ctx.report_progress(2)
        log.append("done")
        return "done"

    @server.tool
    async def later(ctx: Context) -> str:
        """Let the client come back for the result."""
        ctx.close_stream(retry=7)
        await go.wait()
        return "later"

    @server.tool
    async def mirrored(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
        size: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Size"})] = 0,
    ) -> str:
        """Be mirrored."""
        return f"{region} {size}"

    return server, go, log


def working(token: Any = "t") -> Json:
    return request("tools/call", {"name": "work", "arguments": {}, "_meta": {"progressToken": token}})
