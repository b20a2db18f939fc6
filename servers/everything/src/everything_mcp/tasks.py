"""Tools that may or must be tasks."""

from __future__ import annotations

import asyncio

from mcpfactory_runtime import Context, Elicit, McpError, Server, Text, ToolError

_CONFIRM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def greet(name: str) -> Text:
    """Greet somebody, at once."""
    return Text(f"Hello, {name}!")


async def slow_compute(seconds: float, label: str, ctx: Context) -> Text:
    """Take some time."""
    await ctx.report_progress(0, seconds, f"computing {label}")
    await asyncio.sleep(seconds)
    return Text(f"{label}: computed for {seconds:g} seconds")


async def failing_job() -> Text:
    """Work for a second and fail."""
    await asyncio.sleep(1)
    raise ToolError("The job failed, as it always does.")


async def protocol_error_job() -> Text:
    """Fail with a protocol error."""
    raise McpError(-31999, "The job broke the protocol, as it always does.")


async def confirm_delete(filename: str, ctx: Context) -> Text:
    """Ask for consent to delete a file. No file is deleted."""
    answer = await ctx.elicit(f"Delete {filename}?", _CONFIRM, key="confirm")
    if answer.accepted and answer.content["confirm"]:
        return Text(f"Deleted {filename}.")
    return Text(f"Kept {filename}.")


async def multi_input(ctx: Context) -> Text:
    """Ask two things at once."""
    answers = await ctx.ask(first=Elicit("Your name?", _NAME), second=Elicit("Another name?", _NAME))
    return Text(" and ".join(f"{key}: {answer.content}" for key, answer in answers.items()))


async def test_tool_with_task(ctx: Context) -> Text:
    """Ask for a name during the request, then continue as a task."""
    answer = await ctx.elicit("What is your name?", _NAME, key="user_name")
    await ctx.start_task()
    return Text(f"Hello, {answer.content['name']}!" if answer.accepted else "Hello, whoever you are!")


def add_to(server: Server) -> None:
    """Register the tools."""
    server.tool(greet)
    for tool in (slow_compute, protocol_error_job, confirm_delete, multi_input):
        server.tool(task="optional")(tool)
    server.tool(task="required")(failing_job)
    server.tool(task="required", defer_task=True)(test_tool_with_task)
