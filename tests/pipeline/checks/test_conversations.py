"""Conversations of the checks with servers that stop reading, and with servers that close their event streams."""

from __future__ import annotations

import sys

import pytest

from mcpfactory_pipeline.checks.transport import stdio
from mcpfactory_pipeline.checks.transport.http import HttpConversation
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from tests.loopback_server import LoopbackHandler, serving

pytestmark = pytest.mark.anyio
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def test_write_to_a_server_that_does_not_read_times_out(tmp_path, monkeypatch):
    monkeypatch.setattr(stdio, "_DRAIN", 0.2)
    command = (sys.executable, "-c", "import time; time.sleep(3600)")
    server = await StdioConversation.start(command, tmp_path, {}, "asleep")
    assert isinstance(server, StdioConversation)
    answer = await server.ask({**PING, "params": {"_meta": {"padding": "x" * 1_000_000}}}, 0.2)
    await server.close(terminate=True)
    assert answer.received is None
    assert "did not read" in answer.problem


class Closing(LoopbackHandler):
    """Closes the stream after an event with an ID, and answers to a GET with that ID."""

    event_id = "7.a"

    def post(self) -> None:
        self.events(f"id: {self.event_id}\ndata:\n\n")

    def get(self) -> None:
        answered = self.headers["Last-Event-ID"] == self.event_id
        self.events('data: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n' if answered else "")

    def events(self, text: str) -> None:
        self.answer(200, text.encode(), "text/event-stream")


async def test_stream_closed_after_an_event_is_resumed():
    with serving(Closing) as url:
        assert (await HttpConversation(url, "test").ask(PING, 5)).result == {}


async def test_event_id_that_is_not_a_header_value_is_not_sent():
    with serving(type("Foreign", (Closing,), {"event_id": "日本"})) as url:
        assert "without an answer" in (await HttpConversation(url, "test").ask(PING, 5)).problem
