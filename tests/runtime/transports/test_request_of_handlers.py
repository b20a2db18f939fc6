"""What handlers see of the HTTP request that brought a call: headers, address and session, each its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.testing import connect
from tests.runtime.transports.test_mounting import served


def make_server(gate: asyncio.Event | None = None) -> Server:
    server = Server("seen")
    waiting: list[str] = []

    @server.tool
    async def seen(ctx: Context) -> str:
        ctx.session_state["calls"] = ctx.session_state.get("calls", 0) + 1
        return json.dumps(
            {
                "tenant": ctx.headers.get("x-tenant"),
                "authorization": ctx.headers.get("authorization"),
                "address": ctx.client_address,
                "session": ctx.session_id is not None,
                "calls": ctx.session_state["calls"],
            }
        )

    @server.tool
    async def together(ctx: Context) -> str | None:
        """Wait until two calls are here, then say which header each has."""
        assert gate is not None
        waiting.append("")
        if len(waiting) == 2:
            gate.set()
        await gate.wait()
        return ctx.headers.get("x-tenant")

    return server


async def facts(client: Client, tool: str = "seen") -> Any:
    return json.loads((await client.call_tool(tool))["content"][0]["text"])


@pytest.mark.parametrize(
    ("revision", "session", "calls"), [(LATEST_LEGACY.name, True, 2), (LATEST.name, False, 1)], ids=str
)
def test_handlers_see_headers_address_and_session_but_no_token(revision: str, session: bool, calls: int) -> None:
    headers = {"X-Tenant": "acme", "Authorization": "Bearer secret"}

    async def run() -> Any:
        async with (
            served(make_server().http_app()) as root,
            Client.connect_http(f"{root}/mcp", headers, revision=revision) as client,
        ):
            await facts(client)
            return await facts(client)

    expected = {"tenant": "acme", "authorization": None, "address": "127.0.0.1", "session": session, "calls": calls}
    assert asyncio.run(run()) == expected


def test_on_a_stream_there_are_none_and_the_connection_is_the_session() -> None:
    async def run() -> Any:
        async with connect(make_server()) as client:
            await facts(client)
            return await facts(client)

    assert asyncio.run(run()) == {"tenant": None, "authorization": None, "address": None, "session": False, "calls": 2}
