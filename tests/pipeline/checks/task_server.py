"""A server on the project's runtime whose tools can be tasks: one asks a question, one works for a moment."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime import Context, Server, Text

GO = {"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]}
server = Server("tasks", version="1.0.0")


async def count_animals(ctx: Context) -> Text:
    """Count the animals of the zoo, and report each house that was counted."""
    for house in range(2):
        await ctx.report_progress(house + 1, 2)
        await asyncio.sleep(0.01)
    return Text("seven animals")


async def plan_walk(ctx: Context) -> Text:
    """Plan a walk through the zoo after a question about the weather."""
    answer = await ctx.elicit("Is it dry?", GO, key="go")
    return Text(f"the walk is planned: {answer.action}")


async def name_keeper() -> Text:
    """Name the keeper of the zoo who is on duty tonight."""
    return Text("Ada")


server.tool(annotations={"readOnlyHint": True})(name_keeper)
server.tool(task="optional", annotations={"readOnlyHint": True})(count_animals)
server.tool(task="required", annotations={"readOnlyHint": True})(plan_walk)

if __name__ == "__main__":
    server.run()
