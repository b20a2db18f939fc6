"""Several servers behind one endpoint: what is passed on, when servers run, and what happens when one dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcpfactory_pipeline.channels.contract import contract_to_text
from mcpfactory_pipeline.serve.gateway import Gateway, make_gateway
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import MISSING_CAPABILITY, McpError
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.testing import connect
from tests.cli.recorded_workspaces import stage
from tests.serve.sample import ABLE, BROKEN, SLY, servers
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

HINTS = {"readOnlyHint": True}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TOOL = {"name": "list_books", "description": "List the books.", "inputSchema": {"type": "object"}, "annotations": HINTS}


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Workspace:
    return servers(tmp_path_factory.mktemp("gateway"), able=ABLE)


@asynccontextmanager
async def through(space: Workspace, revision: str = "", *, options: Any = None, **client: Any) -> AsyncIterator[Any]:
    gateway = make_gateway(space, (), **(options or {}))
    async with connect(gateway.server, revision, **client) as found:
        yield gateway, found


def row(gateway: Gateway, server: str = "able") -> Any:
    return next(row for row in gateway.rows() if row.server == server)


async def text(client: Client, tool: str, arguments: Any = None, **options: Any) -> str:
    return str((await client.call_tool(tool, arguments, **options))["content"][0]["text"])


async def test_listing_starts_nothing_where_a_candidate_was_validated(tmp_path):
    space = servers(tmp_path, shop=BROKEN, store=BROKEN)
    for name in ("shop", "store"):
        stage(space, name, name)
        kept = space.artifacts / name / str(Store(space).state(name).candidate) / "validate"
        kept.mkdir()
        (kept / "tools.json").write_text(contract_to_text([TOOL], "1.0"))
    async with through(space) as (gateway, client):
        tools = await client.list_tools()
        assert [tool["name"] for tool in tools] == ["shop_list_books", "store_list_books"]
        assert tools[0] == {**TOOL, "name": "shop_list_books"}
        assert [(row.state, row.starts) for row in gateway.rows()] == [("asleep", 0)] * 2


async def test_a_server_that_cannot_start_says_why_and_hurts_no_other(tmp_path):
    space = servers(tmp_path, able=ABLE, broken=BROKEN)
    async with through(space) as (gateway, client):
        assert await text(client, "able_echo", {"text": "still here"}) == "still here"
        assert row(gateway, "broken").state == "broken"
        assert "no key in the environment" in row(gateway, "broken").last_error
    assert (space.artifacts / "able/listing.json").exists()
    async with through(space, options={"search": False}) as (gateway, client):
        assert "able_echo" in {tool["name"] for tool in await client.list_tools()}
        assert row(gateway).starts == 0, "what it said before is known while its sources are the same"


async def test_resources_prompts_completion_progress_and_log_are_passed_on(space):
    heard, steps = [], []

    def notified(method: str, params: Any) -> None:
        heard.append((method, params))

    async with through(space, notified=notified, log_level="info") as (_, client):
        assert "It does a bit of everything." in client.instructions
        listed = {one["uri"] for one in await client.list_resources()}
        assert listed == {"mcp://able/about://self", "gateway://health"}
        (template,) = await client.list_resource_templates()
        assert template["uriTemplate"] == "mcp://able/note://{number}"
        (about,) = await client.read_resource("mcp://able/about://self")
        assert (about["uri"], about["blob"]) == ("mcp://able/about://self", "YWJsZQ==")
        link = (await client.call_tool("able_link"))["content"][0]
        (note,) = await client.read_resource(link["uri"])
        assert note["text"] == "note 7"
        with pytest.raises(McpError, match="mcp://able/note://99"):
            await client.read_resource("mcp://able/note://99")
        with pytest.raises(McpError, match="mcp://nobody/note://1"):
            await client.read_resource("mcp://nobody/note://1")
        prompt = await client.get_prompt("able_greet", {"name": "Ada"})
        assert prompt["messages"][0]["content"]["text"] == "Greet Ada."
        rest = await client.get_prompt("able_rest")
        assert rest["messages"][0]["content"]["text"] == "Rest."
        read = await client.get_prompt("able_read", {"uri": "note://7"})
        assert read["messages"][0]["content"]["text"] == "Read note://7."
        with pytest.raises(McpError, match="name"):
            await client.get_prompt("able_greet")
        for reference in (
            {"type": "ref/prompt", "name": "able_greet"},
            {"type": "ref/resource", "uri": template["uriTemplate"]},
        ):
            assert (await client.complete(reference, "name", "Gr"))["values"] == ["Grace"]
        await client.call_tool("able_report", progress=steps.append)
        refused = await client.call_tool("able_echo", {"word": "x"})
        assert refused["isError"], "arguments are checked by the server itself"
        assert "text: required but missing" in refused["content"][0]["text"]
    assert [step["message"] for step in steps] == ["half", "done"]
    assert [params["data"] for method, params in heard if method == "notifications/message"] == ["look out"]


async def test_nothing_that_a_server_says_has_text_that_nobody_sees(tmp_path):
    """Answers, errors, log messages, progress, questions, resources, prompts and completions; the health page counts them."""
    heard: list[Any] = []

    def asked(params: Any) -> Any:
        heard.append(params["message"])
        return {"action": "accept", "content": {"name": "Ada"}}

    space = servers(tmp_path, sly=SLY)
    async with through(space, notified=lambda _, params: heard.append(params), log_level="info", elicitation=asked) as (
        gateway,
        client,
    ):
        heard.append(await client.call_tool("sly_say", progress=heard.append))
        heard.append(await client.call_tool("sly_fail"))
        heard.append(await client.call_tool("sly_whisper"))
        with pytest.raises(McpError, match="refused") as refused:
            await client.call_tool("sly_refuse")
        heard.append((refused.value.message, refused.value.data))
        assert await text(client, "sly_ask") == "Ada"
        heard.append(await client.read_resource("mcp://sly/secret://text"))
        heard.append(await client.get_prompt("sly_prompt", {"word": "a"}))
        heard.append(await client.complete({"type": "ref/prompt", "name": "sly_prompt"}, "word", "c"))
        cleaned = row(gateway, "sly").left_out
    words = (
        "value",
        "member",
        "progress",
        "log",
        "logged",
        "failed",
        "refused",
        "data",
        "question",
        "resource",
        "prompt",
        "whispered",
    )
    assert [word for word in (*words, "completed") if f"{word}no[8m" not in str(heard)] == []
    assert [sign for sign in ("\\u202e", "\\u200b", "\\U000e0041", "\\x9b", "\\x1b") if sign in repr(heard)] == []
    assert cleaned == "hidden characters removed from 12 messages"


@pytest.mark.parametrize("revision", [LATEST.name, LATEST_LEGACY.name])
async def test_questions_of_a_server_reach_whoever_called(space, revision):
    asked = []

    def elicit(params: Any) -> Any:
        asked.append(params["message"])
        return {"action": "accept", "content": {"name": params["message"].split()[0].upper()}}

    def sample(_params: Any) -> Any:
        return {"role": "assistant", "content": {"type": "text", "text": "MODEL"}, "model": "m"}

    options = {"elicitation": elicit, "sampling": sample, "info": {"name": "robot", "version": "1"}}
    async with through(space, revision, **options) as (_, client):
        assert await text(client, "able_ask", {"word": "one"}) == "FIRST SECOND MODEL robot"
    assert asked == ["first one", "second one"], "nobody is asked the same thing twice"


@pytest.mark.parametrize("revision", [LATEST.name, LATEST_LEGACY.name])
async def test_a_server_is_told_the_trace_of_who_called_or_of_the_gateway_below_it(space, revision):
    given = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "tenant=blue"}
    faulty = {"traceparent": "00-nonsense-01", "tracestate": "vendor=1", "baggage": "tenant=\u202eeulb"}

    async def told(client: Client, meta: Any) -> Any:
        call = {"name": "able_trace", "arguments": {}, "_meta": meta}
        return (await client.call("tools/call", call))["structuredContent"]

    async with through(space, revision) as (gateway, client):
        assert await told(client, given) == given
        assert await told(client, faulty) == {}
        assert await told(client, {}) == {}
        spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        gateway.server.add_telemetry(provider)
    async with connect(gateway.server, revision) as client:
        below = await told(client, given)
    (span,) = [span for span in spans.get_finished_spans() if span.name == "tools/call able_trace"]
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT[36:52]
    assert below == {**given, "traceparent": f"{PARENT[:36]}{span.context.span_id:016x}-01"}


async def test_a_client_that_cannot_answer_is_not_asked(space):
    async with through(space) as (_, client):
        with pytest.raises(McpError) as error:
            await client.call_tool("able_ask", {"word": "one"})
    assert error.value.code == MISSING_CAPABILITY


async def test_a_server_that_dies_is_started_anew_and_calls_in_flight_are_told(space, tmp_path):
    waiting, results = anyio.Event(), []
    async with through(space) as (gateway, client):
        before = await text(client, "able_pid")
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                arguments = {"file": str(tmp_path / "x")}
                results.append(await client.call_tool("able_wait", arguments, progress=lambda _: waiting.set()))

            group.start_soon(wait)
            await waiting.wait()
            results.append(await client.call_tool("able_die"))
        for result in results:
            assert result["isError"]
            assert "The server able cannot answer: the server ended with exit code 3" in result["content"][0]["text"]
            assert "that was it" in result["content"][0]["text"]
        assert (row(gateway).state, row(gateway).errors) == ("broken", 2)
        starts = row(gateway).starts
        assert await text(client, "able_pid") != before
        assert (row(gateway).state, row(gateway).starts) == ("awake", starts + 1)


async def test_a_cancelled_call_is_cancelled_at_the_server(space, tmp_path):
    waiting, file = anyio.Event(), tmp_path / "said"
    async with through(space) as (gateway, client):
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                await client.call_tool("able_wait", {"file": str(file)}, progress=lambda _: waiting.set())

            group.start_soon(wait)
            await waiting.wait()
            starts = row(gateway).starts
            group.cancel_scope.cancel()
        with anyio.fail_after(TIMEOUT):
            while not (file.exists() and row(gateway).in_flight == 0):
                await client.call_tool("able_echo", {"text": "x"})
        assert row(gateway).starts == starts


@asynccontextmanager
async def beside(space: Workspace, **environ: str) -> AsyncIterator[Client]:
    """A gateway on stdio, in a process of its own, which has not loaded OpenTelemetry as this one has."""
    command = [sys.executable, "-m", "mcpfactory", "serve", "--all", "--workspace", str(space.root)]
    async with Client.connect_stdio(command, {**os.environ, **environ}, revision=LATEST_LEGACY.name) as client:
        yield client


async def test_calls_go_to_the_server_that_runs_now_however_many_came_before(tmp_path):
    """What is kept of a call for the next one holds for one process of a server."""
    space = servers(tmp_path, able=ABLE, other=ABLE)
    async with beside(space) as client:
        for _ in range(2):
            said = await asyncio.gather(
                *(
                    text(client, f"{server}_echo", {"text": f"{server} {n}"})
                    for n in range(20)
                    for server in ("able", "other")
                )
            )
            assert said == [f"{server} {n}" for n in range(20) for server in ("able", "other")]
            processes = {await text(client, "able_pid"), await text(client, "other_pid")}
            assert len(processes) == 2
            waiting = asyncio.ensure_future(client.call_tool("able_wait", {"file": str(tmp_path / "x")}))
            await text(client, "able_echo", {"text": "it waits"})
            os.kill(int(await text(client, "able_pid")), signal.SIGKILL)
            ended = await waiting
            assert ended["isError"]
            assert "call again, which restarts it" in ended["content"][0]["text"]
            given = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "tenant=blue"}
            for meta in ({}, given, {}):
                call = {"name": "able_trace", "arguments": {}, **({"_meta": meta} if meta else {})}
                assert (await client.call("tools/call", call))["structuredContent"] == meta
            assert await text(client, "able_pid") not in processes


async def test_search_finds_and_calls_the_tools_of_all_servers(space):
    async with through(space, options={"search": True}) as (_, client):
        tools = [tool["name"] for tool in await client.list_tools()]
        assert tools == ["search_tools", "describe_tools", "call_tool"]
        assert "able_echo(text)" in await text(client, "search_tools", {"query": "say it again"})
        assert '"text"' in await text(client, "describe_tools", {"names": ["able_echo"]})
        assert await text(client, "call_tool", {"name": "able_echo", "arguments": {"text": "hi"}}) == "hi"


@pytest.fixture
def url(space) -> Iterator[str]:
    """A gateway over HTTP, behind a token."""
    command = [sys.executable, "-m", "mcpfactory", "serve", "--server", "able", "--http", "--port", "0"]
    environ = {**os.environ, "TOKEN": "only-the-right-people-know"}
    with subprocess.Popen(
        [*command, "--token", "env:TOKEN"], cwd=space.root, env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        yield process.stderr.readline().split(" at ")[1].strip()
        process.terminate()
        process.stderr.read()


def test_the_health_page_is_for_programs_and_says_little_to_strangers(url):
    page = url.removesuffix("/mcp") + "/health"

    def read(**headers: str) -> tuple[str, str]:
        with urllib.request.urlopen(urllib.request.Request(page, headers=headers)) as answer:
            return answer.headers["content-type"], answer.read().decode()

    known = {"Authorization": "Bearer only-the-right-people-know"}
    assert json.loads(read()[1]) == {"status": "ok"}
    kind, found = read(**known)
    assert kind == "application/json"
    assert json.loads(found)["servers"][0]["server"] == "able"
