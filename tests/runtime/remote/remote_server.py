"""The server elsewhere: `remote_server.py` on stdio, `remote_server.py --http --port 0`. What happens in it is written to the file that HAPPENED names."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from mcpfactory_runtime import Context, Server

server = Server("elsewhere", version="1", instructions="Ask kindly.")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def note(what: str) -> None:
    with Path(os.environ["HAPPENED"]).open("a") as file:
        file.write(f"{what}\n")


@server.tool(annotations={"readOnlyHint": True})
async def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def fail() -> None:
    raise RuntimeError("a secret of the server elsewhere")


@server.tool
async def speak(ctx: Context) -> str:
    """Say how far it is, and something for the log."""
    await ctx.report_progress(1, 2, "half")
    await ctx.report_progress(2, 2, "whole")
    await ctx.warning({"said": "careful"}, logger="elsewhere")
    return "spoken"


@server.tool
async def ask(ctx: Context) -> str:
    """Ask the person, then the model, then for the roots."""
    note("ask")
    answer = await ctx.elicit("Who?", FORM)
    if not answer.accepted:
        return answer.action
    said = await ctx.sample(f"Greet {answer.content['name']}")
    places = await ctx.roots()
    return f"{said.text} at {places[0].uri}"


@server.tool
async def wait() -> str:
    """Wait until it is cancelled."""
    note("waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "never"


@server.tool
async def count(ctx: Context) -> int:
    """How often this session has asked."""
    ctx.session_state["n"] = ctx.session_state.get("n", 0) + 1
    return int(ctx.session_state["n"])


@server.tool
async def heard(ctx: Context) -> dict[str, Any]:
    """What arrived with the call."""
    return {"headers": dict(ctx.headers), "meta": {**ctx.meta}, "abilities": ctx.client_capabilities}


@server.tool
async def environment() -> list[str]:
    return sorted(os.environ)


@server.tool
async def grow(name: str) -> None:
    """Have another tool and another resource, from now on."""

    @server.tool(name=name)
    async def another() -> str:
        return f"I am {name}"

    server.resource(f"memo://{name}", name=name)(lambda: f"memo of {name}")


@server.tool
async def shrink(name: str) -> None:
    server.remove_tool(name)


@server.tool
async def touch(uri: str) -> None:
    """Say that a resource changed."""
    server.notify_resource_updated(uri)


@server.tool
async def die() -> None:
    os._exit(3)


@server.resource("memo://today", mime_type="text/plain", meta={"kept": True})
def today() -> str:
    return "a fine day"


@server.resource("memo://of/{name}")
def memo(name: str) -> bytes | None:
    return None if name == "nobody" else name.encode()


@server.prompt
def greet(person: str) -> str:
    """Greet somebody."""
    return f"Greet {person}"


@server.completion
def complete(ref: Any, argument: Any) -> list[str]:
    return [f"{ref.name or ref.uri} {argument.name} {argument.value}"]


if __name__ == "__main__":
    server.run()
