"""A server elsewhere as a part: what it has, and everything that passes between its callers and it, over stdio and HTTP, in both lifecycles."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from mcpfactory_runtime import McpError, RemoteServer, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.testing import connect
from tests.runtime.remote.conftest import ELSEWHERE, SDK, Elsewhere
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
OLD = "2025-06-18"
Make = Callable[..., RemoteServer]
Happened = Callable[[], list[str]]

both_callers = pytest.mark.parametrize("caller", ["", OLD], ids=["modern caller", "handshake caller"])


def maker(start_remote_server: Elsewhere, transport: str) -> Make:
    """Makes the part: by a command, or by a URL."""

    def made(**options: Any) -> RemoteServer:
        options.setdefault("name", "far")
        options.setdefault("connect_timeout", TIMEOUT)
        if transport == "http":
            return RemoteServer(start_remote_server(), **options)
        return RemoteServer(ELSEWHERE, env={"HAPPENED": os.environ["HAPPENED"]}, **options)

    return made


@pytest.fixture(params=["stdio", "http"])
def make(request: pytest.FixtureRequest, start_remote_server: Elsewhere) -> Make:
    return maker(start_remote_server, request.param)


@pytest.fixture(params=[("http", ""), ("stdio", OLD)], ids=["modern part over HTTP", "handshake part over stdio"])
def part(request: pytest.FixtureRequest, start_remote_server: Elsewhere) -> RemoteServer:
    transport, revision = request.param
    return maker(start_remote_server, transport)(revision=revision)


def around(part: RemoteServer) -> Server:
    """A server with a tool of its own, and the part as `far`."""
    whole = Server("whole", version="1")

    @whole.tool
    async def near() -> str:
        return "here"

    whole.mount(part, "far")
    return whole


async def said(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result
    return (result.get("structuredContent") or {}).get("result", result.get("structuredContent"))


async def until(happens: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not happens():  # noqa: ASYNC110 - it is about processes, of which no event of ours tells
            await asyncio.sleep(0.01)


def answering(log: list[Any]) -> dict[str, Any]:
    def elicit(params: Any) -> Any:
        log.append(params["message"])
        return {"action": "accept", "content": {"name": "Ada"}}

    def sample(params: Any) -> Any:
        text = params["messages"][0]["content"]["text"]
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": f"<{text}>"}}

    return {"elicitation": elicit, "sampling": sample, "roots": [{"uri": "file:///work"}]}


@both_callers
async def test_what_it_has_is_offered_under_the_prefix_and_works(part: RemoteServer, caller: str) -> None:
    async with connect(around(part), caller) as client:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        assert {"near", "far_add", "far_ask"} <= tools.keys()
        assert tools["far_add"]["annotations"] == {"readOnlyHint": True}
        assert tools["far_add"]["inputSchema"]["required"] == ["a"]
        assert await said(client, "far_add", a=1) == 3
        assert await said(client, "near") == "here"
        wrong = await client.call_tool("far_add", {"a": "x"})
        assert wrong["isError"]
        assert "a:" in wrong["content"][0]["text"]
        assert [one["uri"] for one in await client.list_resources()] == ["memo://today"]
        assert [one["uriTemplate"] for one in await client.list_resource_templates()] == ["memo://of/{name}"]
        assert (await client.read_resource("memo://today"))[0]["text"] == "a fine day"
        assert (await client.read_resource("memo://of/Ada"))[0]["blob"] == "QWRh"
        with pytest.raises(McpError, match="Resource not found: memo://of/nobody"):
            await client.read_resource("memo://of/nobody")
        prompt = await client.get_prompt("far_greet", {"person": "Ada"})
        assert prompt["messages"][0]["content"]["text"] == "Greet Ada"
        for reference, words in (
            ({"type": "ref/prompt", "name": "far_greet"}, "greet person A"),
            ({"type": "ref/resource", "uri": "memo://of/{name}"}, "memo://of/{name} person A"),
        ):
            assert (await client.complete(reference, "person", "A"))["values"] == [words]
        failed = await client.call_tool("far_fail")
        assert failed["isError"]
        assert "secret" not in str(failed)


@both_callers
async def test_progress_and_log_messages_reach_whoever_called(part: RemoteServer, caller: str) -> None:
    steps: list[Any] = []
    logged: list[Any] = []

    def notified(method: str, params: Any) -> None:
        if method == "notifications/message":
            logged.append((params["level"], params["data"], params["logger"]))

    async with connect(around(part), caller, notified=notified, log_level="info") as client:
        await client.call_tool("far_speak", progress=lambda step: steps.append((step["progress"], step["message"])))
        await until(lambda: logged and len(steps) == 2)
    assert steps == [(1, "half"), (2, "whole")]
    assert logged == [("warning", {"said": "careful"}, "elsewhere")]


@both_callers
async def test_questions_reach_whoever_called(part: RemoteServer, caller: str) -> None:
    asked: list[Any] = []
    async with connect(around(part), caller, **answering(asked)) as client:
        assert await said(client, "far_ask") == "<Greet Ada> at file:///work"
        assert set(asked) == {"Who?"}
        assert await asyncio.gather(*(said(client, "far_ask") for _ in range(3))) == ["<Greet Ada> at file:///work"] * 3


def part_is_modern(part: RemoteServer) -> bool:
    first = part._connections.first
    return first is not None and first.modern


async def test_a_call_that_is_given_up_is_cancelled_there(part: RemoteServer, remote_log: Happened) -> None:
    async with connect(around(part)) as client:
        call = asyncio.create_task(client.call_tool("far_wait"))
        await until(lambda: "waiting" in remote_log())
        call.cancel()
        await until(lambda: "cancelled" in remote_log())
        assert await said(client, "far_add", a=1) == 3


@both_callers
async def test_what_is_added_and_removed_there_is_so_here_and_clients_are_told(part: RemoteServer, caller: str) -> None:
    told: list[str] = []
    async with connect(around(part), caller, notified=lambda method, _: told.append(method)) as client:
        listening = asyncio.create_task(changes(client, told)) if not caller else None
        if caller:
            await client.call("resources/subscribe", {"uri": "memo://today"})
        await until(lambda: "listening" in told or caller)
        await client.call_tool("far_grow", {"name": "sprout"})
        await until(lambda: told.count("notifications/tools/list_changed") >= 1)
        await until(lambda: told.count("notifications/resources/list_changed") >= 1)
        assert await said(client, "far_sprout") == "I am sprout"
        assert (await client.read_resource("memo://sprout"))[0]["text"] == "memo of sprout"
        before = told.count("notifications/tools/list_changed")
        await client.call_tool("far_shrink", {"name": "sprout"})
        await until(lambda: told.count("notifications/tools/list_changed") > before)
        assert "far_sprout" not in [tool["name"] for tool in await client.list_tools()]
        while "notifications/resources/updated" not in told:  # the subscription over there may be on its way
            await client.call_tool("far_touch", {"uri": "memo://today"})
        if listening is not None:
            listening.cancel()


async def changes(client: Client, told: list[str]) -> None:
    async with client.listen(tools=True, resources=True, uris=["memo://today"]) as stream:
        told.append("listening")
        async for method, _ in stream:
            told.append(method)


async def test_tools_are_transformed_though_they_are_known_later_and_stay_so_when_the_list_changes(make: Make) -> None:
    whole = around(make())
    whole.transform_tool(
        "far_add", rename="plus_one", description="Add one.", arguments={"b": {"fix": 1}}, result=in_words
    )
    whole.transform_tool("plus_one", title="Plus one")
    whole.transform_tool("far_heard", arguments={"no_such": {"hide": True}})
    whole.transform_tool("far_nothing", rename="nothing")
    with pytest.raises(KeyError, match="unknown tool 'near_nothing'"):
        whole.transform_tool("near_nothing", rename="x")
    with pytest.raises(TypeError, match="unknown option colour"):
        whole.transform_tool("far_wait", arguments={"a": {"colour": "red"}})  # type: ignore[typeddict-unknown-key]
    async with connect(whole) as client:
        for _ in range(2):
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert "far_add" not in tools
            assert "far_heard" not in tools  # what could not be hidden is not shown
            assert tools["plus_one"]["title"] == "Plus one"
            assert list(tools["plus_one"]["inputSchema"]["properties"]) == ["a"]
            assert await said(client, "plus_one", a=1) == "it is 2"
            await client.call_tool("far_grow", {"name": "sprout"})
            await until(lambda: "far_sprout" in whole.registry.tools)
        with pytest.raises(KeyError, match="unknown tool 'far_nothing'"):
            whole.transform_tool("far_nothing", rename="x")
        whole.transform_tool("far_sprout", rename="bloom")
        await client.call_tool("far_shrink", {"name": "sprout"})
        await until(lambda: "bloom" not in whole.registry.tools)


def in_words(found: int) -> str:
    return f"it is {found}"


async def test_it_may_be_served_alone_with_middleware_and_transformed_itself(make: Make) -> None:
    part = make()
    part.transform_tool("add", rename="plus")
    seen: list[str] = []

    @part.tool_middleware
    async def note(call: Any, call_next: Any) -> Any:
        seen.append(call.name)
        return await call_next(call)

    async with connect(part, OLD) as client:
        assert client.instructions == "Ask kindly."
        assert await said(client, "plus", a=1) == 3
        await client.call_tool("grow", {"name": "sprout"})
        await until(lambda: "sprout" in part.registry.tools)
        assert await said(client, "plus", a=2) == 4
    assert seen == ["plus", "grow", "plus"]


async def test_a_program_that_ends_is_started_again_by_the_next_call(start_remote_server: Elsewhere) -> None:
    part = RemoteServer(ELSEWHERE, name="far", env={"HAPPENED": os.environ["HAPPENED"]}, connect_timeout=TIMEOUT)
    async with connect(around(part)) as client:
        died = await client.call_tool("far_die")
        assert died["isError"]
        assert died["content"][0]["text"].startswith(
            "The server far cannot answer: the server ended with exit code 3\nhint:"
        )
        assert await said(client, "far_add", a=1) == 3
        assert await said(client, "near") == "here"


async def test_a_server_that_is_not_there_takes_nothing_with_it(caplog: pytest.LogCaptureFixture) -> None:
    part = RemoteServer("http://127.0.0.1:9/mcp", name="far")
    whole = around(part)
    async with connect(whole) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["near"]
        assert await said(client, "near") == "here"
        assert not part.connected
    assert "far cannot be reached: no connection to 127.0.0.1:9" in caplog.text


async def test_nothing_of_our_environment_reaches_a_program(
    monkeypatch: pytest.MonkeyPatch, remote_log: Happened
) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    part = RemoteServer(ELSEWHERE, env={"HAPPENED": os.environ["HAPPENED"]}, connect_timeout=TIMEOUT)
    async with connect(around(part)) as client:
        names = await said(client, "far_environment")
    assert "API_TOKEN" not in names
    assert {"PATH", "HAPPENED"} <= set(names)


async def test_a_server_on_the_official_sdk_is_a_part(start_remote_server: Elsewhere) -> None:
    for part, caller in (
        (RemoteServer(SDK, connect_timeout=TIMEOUT), OLD),
        (RemoteServer(start_remote_server(SDK), mode="legacy", connect_timeout=TIMEOUT), ""),
    ):
        steps: list[Any] = []
        async with connect(around(part), caller, **answering([])) as client:
            assert await said(client, "far_add", a=1, b=2) == 3
            await client.call_tool("far_count", progress=lambda step, steps=steps: steps.append(step["progress"]))
            await until(lambda steps=steps: steps == [1, 2])
            assert (await client.read_resource("memo://today"))[0]["text"] == "a fine day"
            assert (await client.read_resource("memo://of/Ada"))[0]["text"] == "memo of Ada"
            assert (await client.get_prompt("far_greet", {"name": "Ada"}))["messages"][0]["content"][
                "text"
            ] == "Hello Ada"
            if not part_is_modern(part):
                assert await said(client, "far_ask") == "accept name='Ada'"


@both_callers
@pytest.mark.parametrize(
    ("part_mode", "tool", "grown"),
    [
        ("modern", "far_grow_and_publish", "far_published"),
        ("legacy", "far_grow", "far_sprout"),
    ],
)
async def test_a_tool_that_a_server_on_the_official_sdk_adds_is_told(
    caller: str, part_mode: Any, tool: str, grown: str
) -> None:
    told: list[str] = []
    part = RemoteServer(SDK, mode=part_mode, connect_timeout=TIMEOUT)
    async with connect(around(part), caller, notified=lambda method, _: told.append(method)) as client:
        listening = asyncio.create_task(changes(client, told)) if not caller else None
        await until(lambda: "listening" in told or caller)
        assert grown not in [one["name"] for one in await client.list_tools()]
        await client.call_tool(tool)
        await until(lambda: "notifications/tools/list_changed" in told)
        assert grown in [one["name"] for one in await client.list_tools()]
        assert await said(client, grown, a=1, b=2) == 3
        if listening is not None:
            listening.cancel()


@pytest.mark.parametrize("arguments", [("ftp://x/y", {}), ("notes", {}), ([], {})])
def test_what_is_no_target_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match="hint: "):
        RemoteServer(arguments[0])
