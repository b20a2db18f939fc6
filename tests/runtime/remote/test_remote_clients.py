"""Several clients of a server with a part elsewhere, over HTTP: each is asked its own questions, and nothing of theirs goes on that is not said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import RemoteServer
from mcpfactory_runtime.client import Client
from tests.runtime.remote.conftest import ELSEWHERE, Elsewhere, process
from tests.runtime.remote.remote_server import server as far
from tests.runtime.remote.test_remote import OLD, Happened, around, both_callers, said, until
from tests.runtime.transports.test_mounting import served
from tests.system import free_port
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio
both_parts = pytest.mark.parametrize("revision", ["", OLD], ids=["modern part", "handshake part"])


class Recorder:
    """An ASGI application that keeps what arrives, and passes it on."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.arrived: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def recorded() -> Any:
            message = await receive()
            self.arrived.append(str(message.get("body")))
            return message

        if scope["type"] == "http":
            self.arrived += [f"{scope['path']} {name.decode()}: {value.decode()}" for name, value in scope["headers"]]
            self.arrived.append(str(scope["query_string"]))
        await self.app(scope, recorded if scope["type"] == "http" else receive, send)


def person(name: str, asked: list[str]) -> dict[str, Any]:
    """What a client answers, whose person is called so."""

    def elicit(params: Any) -> Any:
        asked.append(name)
        return {"action": "accept", "content": {"name": name}}

    def sample(params: Any) -> Any:
        text = params["messages"][0]["content"]["text"]
        return {"role": "assistant", "model": name, "content": {"type": "text", "text": text}}

    return {"elicitation": elicit, "sampling": sample, "roots": [{"uri": f"file:///{name}"}]}


@both_callers
@both_parts
async def test_each_client_is_asked_its_own_questions(
    start_remote_server: Elsewhere, revision: str, caller: str
) -> None:
    asked: list[str] = []
    part = RemoteServer(start_remote_server(), revision=revision, connect_timeout=TIMEOUT)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(around(part).http_app()))
        clients = {
            name: await stack.enter_async_context(
                Client.connect_http(f"{url}/mcp", revision=caller, **person(name, asked))
            )
            for name in ("Ada", "Bob", "Cy")
        }
        for _ in range(3):
            calls = [said(client, "far_ask") for client in clients.values()]
            assert await asyncio.gather(*calls) == [f"Greet {name} at file:///{name}" for name in clients]
    assert set(asked) == {"Ada", "Bob", "Cy"}


@both_callers
@both_parts
async def test_a_callers_token_and_headers_stay_here_and_its_own_are_sent(revision: str, caller: str) -> None:
    recorder = Recorder(far.http_app())
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(served(recorder))
        part = RemoteServer(
            f"{there}/mcp",
            revision=revision,
            headers={"Authorization": "Bearer of-the-part", "X-Own": "yes"},
            connect_timeout=TIMEOUT,
        )
        here = await stack.enter_async_context(served(around(part).http_app()))
        own = {"Authorization": "Bearer inbound-token", "X-Inbound": "inbound-header", "Cookie": "inbound-cookie=1"}
        client = await stack.enter_async_context(Client.connect_http(f"{here}/mcp", own, revision=caller))
        params = {"name": "far_heard", "arguments": {}, "_meta": {"com.example/inbound": "inbound-meta"}}
        heard = (await client.call("tools/call", params))["structuredContent"]
        assert heard["headers"]["x-own"] == "yes"
        assert (await client.read_resource("memo://today"))[0]["text"] == "a fine day"
    everything = "\n".join(recorder.arrived)
    assert "authorization: Bearer of-the-part" in everything
    assert "tools/call" in everything  # the bodies are there, too
    assert "inbound" not in everything


@both_parts
async def test_a_server_that_comes_later_or_again_is_listed_and_called(
    remote_log: Happened, tmp_path: Path, revision: str
) -> None:
    port = free_port()
    command = [*ELSEWHERE, "--http", "--port", str(port)]
    part = RemoteServer(f"http://127.0.0.1:{port}/mcp", name="far", revision=revision)
    whole = around(part)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(whole.http_app()))
        client = await stack.enter_async_context(Client.connect_http(f"{url}/mcp", revision=OLD))
        assert [tool["name"] for tool in await client.list_tools()] == ["near"]
        with process(command, tmp_path / "first", port):
            await until(lambda: "far_add" in whole.registry.tools)
            assert await said(client, "far_add", a=1) == 3
        gone = await client.call_tool("far_add", {"a": 1})
        assert gone["isError"]
        assert gone["content"][0]["text"].startswith("The server far cannot answer: no connection to 127.0.0.1")
        assert await said(client, "near") == "here"
        with process(command, tmp_path / "second", port):
            assert await said(client, "far_add", a=2) == 4


LIGHT = """
import json, sys
from mcpfactory_runtime import Server
whole, part = Server("whole"), Server("part")
whole.mount(part, "part")
before = sorted(sys.modules)
from mcpfactory_runtime import RemoteServer
whole.mount(RemoteServer([sys.executable]), "far")
print(json.dumps([before, sorted(sys.modules)]))
"""


def test_nothing_is_loaded_for_servers_elsewhere_where_there_are_none_and_no_http_for_a_command() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, timeout=TIMEOUT)
    without, with_command = json.loads(done.stdout)
    assert not [name for name in without if "remote" in name or name.startswith("mcpfactory_runtime.client")]
    assert not {"httpx", "starlette", "uvicorn"} & set(with_command)
