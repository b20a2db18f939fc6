"""Tools that change the lists of tools and prompts while clients are connected."""

from __future__ import annotations

from mcpfactory_runtime import Context, Text


async def test_trigger_tool_change(ctx: Context) -> Text:
    """Change the list of tools: a tool appears, and disappears with the next call."""
    if "changing_tool" in ctx.server.registry.tools:
        ctx.server.remove_tool("changing_tool")
    else:
        ctx.server.tool(changing_tool)
    return Text("The list of tools changed.")


async def test_trigger_prompt_change(ctx: Context) -> Text:
    """Change the list of prompts: a prompt appears, and disappears with the next call."""
    if "changing_prompt" in ctx.server.registry.prompts:
        ctx.server.remove_prompt("changing_prompt")
    else:
        ctx.server.prompt(changing_prompt)
    return Text("The list of prompts changed.")


async def test_trigger_resource_update(ctx: Context) -> Text:
    """Notify subscribers that the watched resource changed."""
    ctx.server.notify_resource_updated("test://watched-resource")
    return Text("The watched resource changed.")


async def changing_tool() -> Text:
    """Demonstrate that the list has changed."""
    return Text("I am here.")


async def changing_prompt() -> str:
    """Demonstrate that the list has changed."""
    return "I am here."


TOOLS = (test_trigger_tool_change, test_trigger_prompt_change, test_trigger_resource_update)
