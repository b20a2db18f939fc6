"""Small servers for the gateway in a workspace: one with all features, and others for single tests."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.recorded_workspaces import make

ABLE = '''
import asyncio, os, pathlib, sys
from mcpfactory_runtime import Context, ResourceLink, Server
server = Server("able", instructions="It does a bit of everything.")

@server.tool
async def echo(text: str) -> str:
    """Say it again."""
    return text

@server.tool(name="pid")
async def pid() -> int:
    """Which process this is."""
    return os.getpid()

@server.tool
async def ask(ctx: Context, word: str) -> str:
    """Ask the person twice, and the model once."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    first = await ctx.elicit(f"first {word}", form)
    second = await ctx.elicit(f"second {word}", form)
    model = await ctx.sample("who?")
    return f"{first.content['name']} {second.content['name']} {model.text} {ctx.client_info['name']}"

@server.tool
async def report(ctx: Context) -> None:
    """Tell how far it is, and log."""
    await ctx.report_progress(1, 2, "half")
    await ctx.warning("look out")
    await ctx.report_progress(2, 2, "done")

@server.tool
async def wait(ctx: Context, file: str) -> None:
    """Wait until it is cancelled, and write that down."""
    await ctx.report_progress(1, 2, "waiting")
    try:
        await asyncio.Event().wait()
    finally:
        pathlib.Path(file).write_text("cancelled")

@server.tool
async def trace(ctx: Context) -> dict[str, str]:
    """What it is told of the trace."""
    return {name: ctx.meta[name] for name in ("traceparent", "tracestate", "baggage") if name in ctx.meta}

@server.tool
async def die() -> None:
    """End the process."""
    sys.stderr.write("that was it\\n")
    sys.stderr.flush()
    os._exit(3)

@server.tool
async def link() -> ResourceLink:
    """A link to a note."""
    return ResourceLink("note://7", name="seven")

@server.resource("note://{number}")
async def note(number: int) -> str | None:
    """A note."""
    return f"note {number}" if number < 10 else None

@server.resource("about://self")
async def about() -> bytes:
    """What this is."""
    return b"able"

@server.prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."

@server.prompt
async def rest() -> str:
    """Rest a while."""
    return "Rest."

@server.prompt
async def read(uri: str) -> str:
    """Read something."""
    return f"Read {uri}."

@server.completion
async def complete(ref, argument):
    return [word for word in ("Ada", "Grace") if word.startswith(argument.value)]

if __name__ == "__main__":
    server.run()
'''
SLY = """
from mcpfactory_runtime import Context, McpError, Server, ToolError
server = Server("sly")
HIDDEN = "\\u202eno\\u200b\\U000e0041\\x9b\\x1b[8m"

@server.tool
async def say(ctx: Context) -> dict[str, str]:
    ctx.report_progress(1, 2, f"progress{HIDDEN}")
    ctx.log("warning", {f"logged{HIDDEN}": [f"log{HIDDEN}"]})
    return {f"member{HIDDEN}": f"value{HIDDEN}"}

@server.tool
async def whisper() -> str:
    return f"whispered{HIDDEN}"

@server.tool
async def fail() -> str:
    raise ToolError(f"failed{HIDDEN}")

@server.tool
async def refuse() -> str:
    raise McpError(-31999, f"refused{HIDDEN}", {"why": f"data{HIDDEN}"})

@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit(f"question{HIDDEN}", {"type": "object", "properties": {"name": {"type": "string"}}})
    return answer.content["name"]

@server.resource("secret://text")
async def resource() -> str:
    return f"resource{HIDDEN}"

@server.prompt
async def prompt(word: str) -> str:
    return f"prompt{HIDDEN}"

@server.completion
async def complete(ref, argument):
    return [f"completed{HIDDEN}"]

if __name__ == "__main__":
    server.run()
"""
BROKEN = "raise SystemExit('no key in the environment')\n"


def servers(root: Path, **sources: str) -> Workspace:
    """Return a workspace with these servers, each a module with the given source."""
    space = make(root, *sources)
    for name, source in sources.items():
        package = root / "servers" / name / "src" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(source)
    return space
