"""A server on our own runtime: stdio, or `--http --port N`."""

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import Context, Server

server = Server("ours", version="1.0.0")


@server.tool
async def count(ctx: Context) -> int:
    """Count to two, with progress."""
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return 2


@server.tool
async def ask(ctx: Context) -> Any:
    """Ask for a name."""
    answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return answer.action


@server.resource("memo://{day}")
def memo(day: str) -> str:
    """What was on that day."""
    return f"tea on {day}"


@server.tool
async def change() -> None:
    """Say that everything changed."""
    server.notify_changed("tools")
    server.notify_changed("prompts")
    server.notify_resource_updated("memo://monday")
    server.notify_resource_updated("memo://tuesday")


if __name__ == "__main__":
    server.run()
