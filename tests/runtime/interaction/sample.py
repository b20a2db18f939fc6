"""The server of the interaction tests: in memory, as a process, and behind HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from mcpfactory_runtime import (
    Audio,
    Context,
    Elicit,
    EmbeddedBlob,
    EmbeddedText,
    Image,
    McpError,
    Message,
    ResourceLink,
    Roots,
    Sample,
    Server,
    Text,
    ToolError,
    ToolResult,
)

ICON = {"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["16x16"]}


async def life(server: Server) -> Any:
    yield {"started": True}


server = Server(
    "sample",
    version="1.2.3",
    title="Sample",
    description="For tests",
    instructions="Be kind.",
    website_url="https://example.org",
    icons=[ICON],
    lifespan=life,
)


class Book(BaseModel):
    """A book."""

    title: str
    pages: int = 0


@server.tool(title="Adding", annotations={"readOnlyHint": True}, icons=[ICON], meta={"group": "math"})
async def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


@server.tool
def in_a_thread(text: str, ctx: Context) -> str:
    """Work in a worker thread."""
    print("noise that must not reach the client")
    ctx.info("from a thread")
    ctx.report_progress(1, 1)
    return text


@server.tool
async def describe(book: Book) -> Book:
    """Take and return a model."""
    return book


@server.tool
async def everything() -> ToolResult:
    """Return every kind of content."""
    return ToolResult(
        [
            Text("text", annotations={"audience": ["user"], "lastModified": "2025-01-01T00:00:00Z"}, meta={"k": 1}),
            Image(b"\x89PNG"),
            Audio(b"RIFF"),
            EmbeddedText("memo://1", "memo", annotations={"priority": 0.5}),
            EmbeddedBlob("memo://2", b"\x00", meta={"k": 2}),
            ResourceLink("memo://today", "today", title="Today", description="what to do", size=5, icons=[ICON]),
        ],
        structured={"count": 6},
        meta={"trace": "x"},
    )


@server.tool
async def untyped_list() -> ToolResult:
    """Return structured content that is no object."""
    return ToolResult("two", structured=[1, 2])


@server.tool
async def refuse() -> str:
    """Fail for the model to see."""
    raise ToolError("try something else")


@server.tool
async def crash() -> str:
    """Fail with a secret."""
    raise RuntimeError("the password is 1234")


@server.tool
async def leave() -> str:
    """Try to end the process."""
    raise SystemExit(3)


@server.tool
async def wrong_type() -> int:
    """Break the promise of the annotation."""
    return "three"  # type: ignore[return-value]  # that is the point


@server.tool
async def unencodable() -> ToolResult:
    """Return what has no JSON form."""
    return ToolResult({"type": "text", "text": object()})


@server.tool
async def protocol_error() -> str:
    """Raise an error of one's own."""
    raise McpError(-5, "no such luck", {"luck": 0})


@server.tool
async def speak(ctx: Context) -> str:
    """Log on every level and report progress."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, {"level": level}, logger="sample")
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "done"


@server.tool
async def wait_for_ever(ctx: Context) -> str:
    """Say that it started, then wait until somebody cancels."""
    await ctx.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        cancelled.append(ctx.request_id)
    return "never"


cancelled: list[object] = []


@server.tool
async def greet(ctx: Context) -> str:
    """Ask for a name, then for a colour."""
    name = await ctx.elicit("Your name?", form("name"), key="who")
    colour = await ctx.elicit(f"And your colour, {name.content['name']}?", form("colour"))
    return f"{name.content['name']} likes {colour.content['colour'] if colour.accepted else 'nothing'}"


def form(field: str) -> dict[str, Any]:
    return {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}


@server.tool
def greet_from_a_thread(ctx: Context) -> str:
    """Ask from a worker thread."""
    answer = ctx.wait(ctx.elicit("Your book?", Book, key="book"))
    assert isinstance(answer.content, Book)
    return answer.content.title


@server.tool
async def ask_everything(ctx: Context) -> str:
    """Ask three things at once."""
    answers = await ctx.ask(who=Elicit("Your name?", form("name")), poem=Sample("A poem!"), where=Roots())
    return f"{answers['who'].content['name']}: {answers['poem'].text} in {answers['where'][0].uri}"


@server.tool
async def about_me(ctx: Context) -> dict[str, Any]:
    """Tell what is known of the client."""
    return {
        "revision": ctx.revision,
        "client": ctx.client_info.get("name", ""),
        "capabilities": sorted(ctx.client_capabilities),
        "state": ctx.state,
        "server": ctx.server.name,
    }


@server.tool
async def grow(ctx: Context) -> str:
    """Add and remove a tool, a prompt and a resource, and touch the memo."""
    ctx.server.tool(name="new")(add)
    ctx.server.prompt(name="new")(ask_for)
    ctx.server.resource("memo://new")(today)
    ctx.server.remove_tool("new")
    ctx.server.remove_prompt("new")
    ctx.server.remove_resource("memo://new")
    ctx.server.notify_resource_updated("memo://today")
    ctx.server.notify_resource_updated("memo://other")
    return "grown"


@server.resource(
    "memo://today", title="Today", mime_type="text/plain", annotations={"priority": 1}, size=10, icons=[ICON]
)
async def today() -> str:
    """What to do today."""
    return "a fine day"


@server.resource("memo://picture", mime_type="image/png", meta={"k": 1})
def picture() -> bytes:
    """A picture."""
    return b"\x89PNG"


@server.resource("memo://asks")
async def asks(ctx: Context) -> str:
    """A resource that asks first."""
    answer = await ctx.elicit("Which?", form("which"), key="which")
    return str(answer.content["which"])


@server.resource("memo://broken")
async def broken() -> str:
    """A resource that fails."""
    raise RuntimeError("secret")


@server.resource("book://{shelf}/{number}{?lang}", title="Book", icons=[ICON])
async def book(shelf: str, number: int, lang: str = "en") -> dict[str, Any] | None:
    """A book by its place."""
    return {"shelf": shelf, "number": number, "lang": lang} if number else None


@server.prompt(title="Asking", icons=[ICON], meta={"k": 1})
def ask_for(topic: str, words: int = 100) -> list[Message]:
    """Ask for a text.

    Args:
        topic: what about
        words: how long
    """
    return [Message(f"Write {words} words about {topic}"), Message(ResourceLink("memo://today", "today"), "assistant")]


@server.prompt
async def asking_prompt(ctx: Context) -> str:
    """A prompt that asks first."""
    answer = await ctx.elicit("Which?", form("which"), key="which")
    return f"About {answer.content['which']}"


@server.completion
async def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    """Suggest."""
    if argument.name == "many":
        return [str(number) for number in range(150)]
    return [f"{ref.type}/{argument.value}/{context.arguments.get('shelf', '')}"]


if __name__ == "__main__":
    server.run()
