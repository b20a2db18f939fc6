"""A protected server behind a real web server on a real socket, and its callers."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.types import Json
from tests.runtime.auth.issuer import Issuer, issuer
from tests.timeouts import TIMEOUT


def books() -> Server:
    """The protected server."""
    server = Server("books", version="1.0.0")

    @server.tool
    async def whoami(ctx: Context) -> list[str]:
        """Say who calls."""
        assert ctx.principal is not None
        return [ctx.principal.issuer, ctx.principal.subject, ctx.principal.client, *sorted(ctx.principal.scopes)]

    @server.tool(scopes=("books:write",))
    async def write() -> str:
        """Write a book."""
        return "written"

    @server.tool(scopes=("books:write", "books:burn"))
    async def burn() -> str:
        """Burn a book."""
        return "burnt"

    @server.tool
    async def pass_on(ctx: Context, tool: str = "write") -> str:
        """Call another tool, such as write."""
        return str(await ctx.call(tool))

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask the user."""
        answer = await ctx.elicit("Sure?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
        return answer.action

    @server.tool
    async def pulp(ctx: Context, confirm: str = "") -> str:
        """Pulp a book, once a person agrees."""
        await ctx.consent("Pulp Emma", confirm=confirm)
        return "pulped"

    return server


@dataclass
class Protected:
    """A running server and one HTTP client."""

    url: str
    http: httpx.AsyncClient
    issuer: Issuer

    async def post(self, message: Any, token: str | None = None, **headers: str) -> httpx.Response:
        """POST any message; header names with _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        return await self.http.post(self.url, json=message, headers=sent)

    async def modern(self, method: str, params: Json | None = None, token: str | None = None, **headers: str) -> Any:
        """Send a request of the per-request lifecycle."""
        params = {**(params or {}), "_meta": {META_VERSION: LATEST.name, META_CAPABILITIES: {"elicitation": {}}}}
        named = {"Mcp-Name": params["name"]} if "name" in params else {}
        own = {"MCP-Protocol-Version": LATEST.name, "Mcp-Method": method, **named}
        return await self.post(request(method, params), token, **own, **headers)

    async def call(self, tool: str, token: str | None = None, **params: Any) -> Any:
        """Send tools/call in the per-request lifecycle."""
        return await self.modern("tools/call", {"name": tool, "arguments": {}, **params}, token)

    async def begin(self, token: str | None = None) -> httpx.Response:
        """Complete the handshake."""
        info = {"name": "raw", "version": "0"}
        hello = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": info}
        return await self.post(request("initialize", hello), token)


def request(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def challenge(response: httpx.Response) -> dict[str, str]:
    """Return the parameters of WWW-Authenticate."""
    scheme, _, rest = response.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    assert re.fullmatch(r'\w+="[^"\\]*"(, \w+="[^"\\]*")*', rest), rest
    return dict(re.findall(r'(\w+)="([^"]*)"', rest))


@asynccontextmanager
async def serving(server: Server, port: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Serve the server with uvicorn, in this event loop."""
    app = server.http_app(**options)
    web = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", ws="none"))
    task = asyncio.create_task(web.serve(sockets=[port]))
    try:
        yield
    finally:
        web.should_exit = web.force_exit = True
        await task


def listen() -> tuple[socket.socket, str]:
    """Return a listening socket, and the URL of its MCP endpoint."""
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    port.listen()
    return port, f"http://127.0.0.1:{port.getsockname()[1]}/mcp"


@asynccontextmanager
async def protected(server: Server | None = None, **options: Any) -> AsyncIterator[Protected]:
    """Yield a protected server, its issuer and a client; `options` are arguments of Authorization."""
    port, url = listen()
    with port:  # the web server also closes it, unless it failed at startup
        async with issuer(audience=url) as source, httpx.AsyncClient(trust_env=False, timeout=TIMEOUT) as http:
            if not options.keys() & {"jwks", "verify", "jwks_url"}:
                options["jwks_url"] = source.jwks_url
            auth = Authorization(**{"issuer": source.base, "resource": url, "clock": source.clock, **options})
            async with serving(server or books(), port, auth=auth):
                yield Protected(url, http, source)
