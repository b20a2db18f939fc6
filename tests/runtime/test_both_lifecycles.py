"""Both lifecycles, shuffled, on one process and on one endpoint: every answer is the right one, in the right form."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpfactory_runtime.protocol.connection import META_SERVER
from mcpfactory_runtime.revisions import LATEST, LEGACY, R2025_03_26, Revision
from tests.runtime.interaction.conftest import sample_url  # noqa: F401 - a fixture
from tests.runtime.requirements import requirement
from tests.runtime.transports.conftest import Process, hello, modern, process, request  # noqa: F401 - a fixture among them
from tests.timeouts import TIMEOUT

REQUESTS = 2_000
CONNECTIONS = 8
STREAMED = [revision for revision in LEGACY.values() if revision.name >= R2025_03_26.name]


def wanted(number: int) -> tuple[str, dict[str, Any]]:
    """What request `number` asks: its answer depends on the number."""
    if number % 10 == 3:
        return "tools/call", {"name": "about_me", "arguments": {}}
    if number % 10 == 7:
        return "prompts/get", {"name": "ask_for", "arguments": {"topic": f"t{number}"}}
    return "tools/call", {"name": "add", "arguments": {"a": number, "b": 1}}


def check(number: int, answer: dict[str, Any], revision: Revision) -> None:
    """The answer to request `number` in `revision`."""
    assert answer["id"] == number
    result = answer["result"]
    assert ("resultType" in result) == revision.modern
    assert (META_SERVER in result.get("_meta", {})) == revision.modern
    if number % 10 == 3:
        assert f'"revision":"{revision.name}"' in result["content"][0]["text"]
    elif number % 10 == 7:
        assert f"t{number}" in result["messages"][0]["content"]["text"]
    else:
        assert result["content"] == [{"type": "text", "text": str(number + 1)}]
        assert ("structuredContent" in result) == ("structuredContent" in revision.fields["CallToolResult"])


@requirement("version.no-cross-talk", "version.handshake-beside", "stdio.interleave", "message.response-id")
def test_two_thousand_requests_of_both_lifecycles_on_one_process(process: Process) -> None:  # noqa: F811 - the fixture
    dice = random.Random(1)
    spoken = {number: dice.random() < 0.5 for number in range(1, REQUESTS + 1)}
    process.ask(hello(R2025_03_26.name))

    def lines() -> Iterator[bytes]:
        for number, new in spoken.items():
            method, params = wanted(number)
            yield json.dumps((modern if new else request)(method, params, number)).encode() + b"\n"

    writer = threading.Thread(target=lambda: (process.stdin.writelines(lines()), process.stdin.flush()))
    writer.start()
    left = set(spoken)
    while left:
        answer = process.hear()
        left.remove(answer["id"])
        check(answer["id"], answer, LATEST if spoken[answer["id"]] else R2025_03_26)
    writer.join()
    assert process.ask(request("ping", id="last"))["result"] == {}


class Connection:
    """One kept-alive HTTP connection, written by hand: a client library costs more than the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[dict[str, str], bytes]:
        headers = {"content-type": "application/json", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        start = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{head}\r\n"
        self.writer.write(start.encode() + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        told = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in raw[1:])}
        assert raw[0].split()[1] in ("200", "202"), raw
        return told, await self.reader.readexactly(int(told["content-length"]))


async def shuffled(port: int, numbers: range, revision: Revision) -> None:
    """One client: a session of `revision` and the newest lifecycle by turns, on one connection."""
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    told, _ = await connection.post(json.dumps(hello(revision.name)).encode(), {})
    session = {"mcp-session-id": told["mcp-session-id"]}
    await connection.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', session)
    dice = random.Random(numbers.start)
    for number in numbers:
        method, params = wanted(number)
        new = dice.random() < 0.5
        headers = {"mcp-protocol-version": LATEST.name, "mcp-method": method, "mcp-name": params["name"]}
        message = (modern if new else request)(method, params, number)
        _, body = await connection.post(json.dumps(message).encode(), headers if new else session)
        check(number, json.loads(body), LATEST if new else revision)
    connection.writer.close()


@requirement("version.no-cross-talk", "version.same-endpoint", "version.per-request")
def test_two_thousand_requests_of_both_lifecycles_on_one_endpoint(sample_url: str) -> None:  # noqa: F811 - the fixture
    port = urlsplit(sample_url).port
    assert port is not None
    share = REQUESTS // CONNECTIONS

    async def all_clients() -> None:
        clients = (
            shuffled(port, range(index * share, (index + 1) * share), STREAMED[index % len(STREAMED)])
            for index in range(CONNECTIONS)
        )
        await asyncio.gather(*clients)

    asyncio.run(asyncio.wait_for(all_clients(), TIMEOUT))


@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
@requirement("initialize.respect-version", "initialize.answer", "initialize.same-version")
def test_the_process_speaks_the_revision_that_was_agreed(process: Process, revision: Revision) -> None:  # noqa: F811 - the fixture
    greeting = process.ask(hello(revision.name))["result"]
    assert greeting["protocolVersion"] == revision.name
    assert set(greeting) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
    assert set(greeting["serverInfo"]) <= revision.fields["Implementation"]
    result = process.ask(request("tools/call", {"name": "everything", "arguments": {}}))["result"]
    assert set(result) <= revision.fields["CallToolResult"]
