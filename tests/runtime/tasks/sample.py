"""A server whose tools are tasks: in memory, as a process, and behind HTTP. Work lasts until a question is answered."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from mcpfactory_runtime import Context, Elicit, McpError, Server, Text, ToolError

if TYPE_CHECKING:
    from mcpfactory_runtime.server.extensions import TasksOption

GO = {"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]}
BROKEN = -31000
RUNNING = threading.Event()  # while `in_a_thread` is at work


async def work(ctx: Context) -> str:
    """Work until told to go on."""
    answer = await ctx.elicit("Go on?", GO, key="go")
    return f"went on: {answer.content['go']}" if answer.accepted else answer.action


async def count(ctx: Context) -> int:
    """Return at once."""
    return 7


async def fail() -> Text:
    """Report an error."""
    raise ToolError("out of tea")


async def break_down() -> Text:
    """End with an error of the protocol."""
    raise McpError(BROKEN, "broken", {"part": 1})


async def crash() -> Text:
    """End with a surprise."""
    raise RuntimeError("secret")


async def only_as_task() -> Text:
    """Need a task."""
    return Text("done")


async def plain() -> Text:
    """Have nothing to do with tasks."""
    return Text("plain")


async def steps(ctx: Context) -> Text:
    """Tell how it goes, wait, and tell again."""
    await ctx.report_progress(1, 3, "one of three")
    await ctx.warning("half way")
    await ctx.elicit("Go on?", GO, key="go")
    await ctx.report_progress(3, 3, "three of three")
    return Text("all steps done")


async def ask_twice(ctx: Context) -> list[bool]:
    """Ask under the same name twice."""
    return [(await ctx.elicit("Go on?", GO, key="again")).content["go"] for _ in range(2)]


async def ask_both(ctx: Context) -> Text:
    """Ask two things at once."""
    answers = await ctx.ask(a=Elicit("A?", GO), b=Elicit("B?", GO))
    return Text(f"{answers['a'].content['go']} {answers['b'].content['go']}")


async def ask_model(ctx: Context) -> str:
    """Ask the client's model."""
    return (await ctx.sample("Say hi", key="model")).text


async def stubborn(ctx: Context) -> str:
    """Return although it is cancelled."""
    try:
        await ctx.elicit("Go on?", GO, key="go")
    except asyncio.CancelledError:
        return "I finished all the same"
    return "went on"


async def later(quick: bool, ctx: Context) -> str:
    """Ask first, then become a task, unless there is little to do."""
    name = (
        await ctx.elicit("Name?", {"type": "object", "properties": {"name": {"type": "string"}}}, key="name")
    ).content
    if quick:
        return f"quick {name['name']}"
    before = ctx.task_id
    await asyncio.gather(ctx.start_task(), ctx.start_task())
    assert before is None or ctx.task_id == before
    answer = await ctx.elicit("Go on?", GO, key="go")
    return f"{name['name']} {answer.content['go']}"


def in_a_thread(ctx: Context) -> str:
    """Wait in a worker thread until cancelled."""
    RUNNING.set()
    while not ctx.cancelled:
        threading.Event().wait(0.005)
    RUNNING.clear()
    return "cancelled"


def make(tasks: TasksOption = None, **options: Any) -> Server:
    """A server of its own."""
    server = Server("tasks", version="1.0.0", tasks=tasks, **options)
    server.tool(plain)
    for tool in (work, count, fail, break_down, crash, steps, ask_twice, ask_both, ask_model, stubborn, in_a_thread):
        server.tool(task="optional")(tool)
    server.tool(task="required")(only_as_task)
    server.tool(task="optional", defer_task=True)(later)
    return server


if __name__ == "__main__":
    make().run()
