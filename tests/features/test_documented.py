"""Features as the documentation shows them: its own code is run, and called by a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse

from mcpfactory_runtime import Context, Image, Server, Text
from mcpfactory_runtime.auth.authorization import WELL_KNOWN
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect
from tests.features.docs_examples import run_shown, says
from tests.runtime.transports.conftest import hello
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
LEGACY = "2025-06-18"
TASKS = "2025-11-25"  # the revision that has them in its core


async def said(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]["result"]


async def test_the_first_example() -> None:
    logged: list[Any] = []
    server = run_shown("reference/server-api.md#server-api")["server"]
    says("reference/server-api.md#results-of-tools", "structured content that matches the annotation")
    says("reference/server-api.md#testing", 'client.call_tool("add_note", {"text": "tea"})')
    async with connect(server, LEGACY, notified=lambda _, params: logged.append(params["data"])) as client:
        assert client.instructions == "Search before you add."
        (tool,) = await client.list_tools()
        assert tool["description"] == "Keep a note."
        assert tool["annotations"] == {"destructiveHint": False}
        assert tool["inputSchema"]["properties"]["text"] == {"type": "string", "description": "what to remember"}
        assert tool["outputSchema"]["properties"]["result"]["type"] == "integer"
        assert (await client.call_tool("add_note", {"text": "tea"}))["structuredContent"] == {"result": 1}
        assert (await client.read_resource("notes://1"))[0] == {
            "uri": "notes://1",
            "mimeType": "text/plain",
            "text": "tea",
        }
        prompt = await client.get_prompt("summarise", {"style": "short"})
        assert "in short words" in prompt["messages"][0]["content"]["text"]
    assert logged == ["1 notes"]


async def test_errors_and_wrong_arguments() -> None:
    says("reference/server-api.md#errors", "the message, which the model reads")
    says("reference/server-api.md#functions", "Unknown arguments are refused")
    server = run_shown("reference/server-api.md#server-api")["server"]

    @server.tool
    async def fail() -> None:
        raise RuntimeError("a password")

    async with connect(server) as client:
        for arguments, words in (
            ({"text": " "}, ["The note is empty."]),
            ({"text": 1, "more": 2}, ["text: ", "more: there is no such argument"]),
        ):
            refused = await client.call_tool("add_note", arguments)
            assert refused["isError"]
            assert all(word in refused["content"][0]["text"] for word in words)
        failed = await client.call_tool("fail")
        assert failed["isError"]
        assert "password" not in str(failed)


async def test_content_of_results() -> None:
    says("reference/server-api.md#results-of-tools", "`Image` and `Audio` take bytes, base64 text or `path=`")
    server = Server("pictures")

    @server.tool
    async def picture() -> list[Image | dict[str, int] | Text]:
        return [Image(b"\x89PNG", "image/png"), {"width": 1}, Text("a dot")]

    @server.tool
    async def numbers() -> Any:
        yield 1
        yield 2

    async with connect(server) as client:
        content = (await client.call_tool("picture"))["content"]
        assert [block["type"] for block in content] == ["image", "text", "text"]
        assert content[1]["text"] == '{"width":1}'
        assert "2" in str((await client.call_tool("numbers"))["content"])


async def test_completion() -> None:
    says("reference/server-api.md#server", "`(ref, argument, context)` or fewer arguments, and returns strings")
    server = run_shown("reference/server-api.md#server-api")["server"]

    @server.completion
    def styles(ref: Any, argument: Any) -> list[str]:
        return [word for word in ("plain", "poetic", "short") if word.startswith(argument.value)]

    async with connect(server) as client:
        found = await client.complete({"type": "ref/prompt", "name": "summarise"}, "style", "p")
        assert found["values"] == ["plain", "poetic"]


async def test_changes_are_told() -> None:
    says("reference/server-api.md#server", "change the lists and notify connected clients")
    told = asyncio.Event()
    server = run_shown("reference/server-api.md#server-api")["server"]
    async with connect(server, LEGACY, notified=lambda method, _: told.set() if "tools" in method else None) as client:
        await client.list_tools()
        server.remove_tool("add_note")
        async with asyncio.timeout(TIMEOUT):
            await told.wait()


async def test_dependencies() -> None:
    server = run_shown("reference/server-api.md#dependencies")["server"]
    async with connect(server) as client:
        (tool,) = await client.list_tools()
        assert list(tool["inputSchema"]["properties"]) == ["number"]
        assert await said(client, "note", number="1") == "Buy milk."


async def test_servers_in_a_server() -> None:
    names = run_shown("reference/server-api.md#servers-in-a-server")

    @names["books"].tool
    async def search(q: str) -> str:
        return f"books about {q}"

    async with connect(names["library"]) as client:
        assert await said(client, "books_search", q="tea") == "books about tea"


async def test_tools_made_of_others() -> None:
    library, books = Server("library"), Server("books")

    @books.tool
    async def search(q: str, genre: str = "", limit: int = 100, debug: bool = False) -> list[str]:
        return [f"{q} {genre} {limit} {debug}"]

    def shorten(found: list[str]) -> str:
        return found[0]

    library.mount(books, "books")
    run_shown("reference/server-api.md#tools-made-of-others", library=library, shorten=shorten)
    async with connect(library) as client:
        (tool,) = await client.list_tools()
        assert tool["name"] == "find_novels"
        assert list(tool["inputSchema"]["properties"]) == ["words", "limit"]
        assert await said(client, "find_novels", words="tea") == "tea novel 5 False"


async def test_middleware() -> None:
    server = run_shown("reference/middleware.md#middleware")["server"]

    @server.tool
    async def admin_stop() -> str:
        return "stopped"

    @server.tool
    async def read() -> str:
        return "a note"

    async with connect(server) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["read"]
        assert await said(client, "read") == "a note"
        assert (await client.call_tool("admin_stop"))["content"][0]["text"] == "Only admins may do this."


async def test_an_app() -> None:
    server = run_shown("reference/extensions.md#apps")["server"]
    async with connect(server) as client:
        (tool,) = await client.list_tools()
        assert tool["_meta"]["ui"]["resourceUri"] == "ui://clock"
        assert "<title>Clock</title>" in (await client.read_resource("ui://clock"))[0]["text"]
        assert await said(client, "now") == "12:00"


async def test_a_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "skills/keep-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: keep-notes\ndescription: How to keep notes.\n---\nKeep them.\n")
    monkeypatch.chdir(tmp_path)
    server = run_shown("reference/extensions.md#skills")["server"]
    async with connect(server) as client:
        assert "Keep them." in (await client.read_resource("skill://keep-notes/SKILL.md"))[0]["text"]


async def test_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hurried:
        """A clock that does not wait: the months of the example pass at once."""

        sleep = staticmethod(lambda _seconds: real_sleep(0))

    real_sleep = asyncio.sleep
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path)
    names = run_shown("reference/tasks.md#tasks")
    names["asyncio"] = Hurried

    def publish(_: Any) -> Any:
        return {"action": "accept", "content": {"publish": True}}

    async with connect(names["server"], TASKS, elicitation=publish) as client:
        begun = await client.call("tools/call", {"name": "report", "arguments": {"year": 2026}, "task": {}})
        result = await client.call("tasks/result", {"taskId": begun["task"]["taskId"]})
        assert result["content"][0]["text"] == "2026: published"
        state = await client.call("tasks/get", {"taskId": begun["task"]["taskId"]})
        assert state["status"] == "completed"


async def test_routes() -> None:
    server = Server("hooks")
    names = run_shown("reference/server-api.md#routes", server=server)
    (route,) = server.routes
    assert (route.path, route.methods, route.public) == ("/hooks/{name}", {"POST"}, True)
    assert route.handler is names["hook"]


async def test_a_mounted_server() -> None:
    place = "reference/server-api.md#in-your-own-application"
    events: list[str] = []

    @asynccontextmanager
    async def life(name: str) -> AsyncIterator[dict[str, str]]:
        events.append(name)
        yield {"outer": name}
        events.append(f"{name} ended")

    app = run_shown(place, hello=lambda request: PlainTextResponse(request.state.outer))["app"]
    loans = Server("loans", lifespan=lambda _: life("loans")).http_app(allowed_hosts={"*"})
    outer = FastAPI(lifespan=lambda _: life("outer"))
    outer.router.routes += app.routes
    loans.mount_on(outer, "/loans")
    async with outer.router.lifespan_context(outer) as state, asgi(outer, state) as http:
        says(place, WELL_KNOWN + "/books/mcp")
        metadata = (await http.get(f"{WELL_KNOWN}/books/mcp")).json()
        assert metadata["resource"] == "https://api.example.com/books/mcp"
        refused = await http.post("/books/mcp", json=hello())
        assert refused.status_code == 401
        assert f"https://api.example.com{WELL_KNOWN}/books/mcp" in refused.headers["www-authenticate"]
        assert (await http.post("/loans/mcp", json=hello())).status_code == 200
        assert (await http.get(f"{WELL_KNOWN}/loans/mcp")).status_code == 404
        assert (await http.get("/hello")).text == "outer"
    assert events == ["loans", "outer", "outer ended", "loans ended"]


def asgi(app: Any, state: dict[str, Any]) -> httpx.AsyncClient:
    """Return a client of an application in memory."""

    async def with_state(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": dict(state)}, receive, send)

    accept = {"accept": "application/json, text/event-stream"}
    transport = httpx.ASGITransport(app=with_state)
    return httpx.AsyncClient(transport=transport, base_url="https://api.example.com", headers=accept)


async def test_rates() -> None:
    server = run_shown("reference/server-api.md#rates")["server"]

    @server.tool
    async def read(ctx: Context) -> str:
        return ctx.revision

    async with connect(server, LEGACY) as client:
        assert await said(client, "read") == LEGACY
    allowance = server.rates.allowance()
    assert allowance.completions is not None
    assert [allowance.completions.take() for _ in range(21)] == [True] * 20 + [False]
    assert allowance.logs is None
