"""Cancellation on the wire of each revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.revisions import Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import notification, speak
from tests.runtime.wire.revision_ranges import HANDSHAKES
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


@requirement("cancel.stop", "cancel.silence", "stdio.cancelled-silence", "cancel.only-listen")
async def test_a_cancelled_request_ends_without_an_answer(revision: Revision) -> None:
    server = Server("patient")
    ended = asyncio.Event()

    @server.tool
    async def wait(ctx: Context) -> str:
        """Wait for ever."""
        ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with speak(server, revision) as client:
        message = client.make("tools/call", {"name": "wait"}, {"progressToken": 1})
        await client.say(message)
        await client.until("notifications/progress")
        await client.say(notification("notifications/cancelled", {"requestId": message["id"], "reason": "enough"}))
        async with asyncio.timeout(TIMEOUT):
            await ended.wait()
        assert await client.silence() == []


@requirement("cancel.ignore", "cancel.late", "message.notification-silence")
async def test_cancellations_of_nothing_are_ignored(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.ask("tools/list")
        params: Any
        for params in ({"requestId": "q1"}, {"requestId": "never"}, {"requestId": None}, {"requestId": []}, {}, []):
            await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await client.say(notification("notifications/nonsense"), notification("tools/list"))
        assert await client.silence() == []


@requirement("cancel.own-requests")
@HANDSHAKES
async def test_a_question_that_nobody_waits_for_any_more_is_cancelled(revision: Revision) -> None:
    server = Server("asking")

    @server.tool
    async def where(ctx: Context, patience: float | None = None) -> str:
        """Ask."""
        try:
            async with asyncio.timeout(patience):
                return str(await ctx.roots())
        except TimeoutError:
            return "too late"

    async with speak(server, revision, roots={}) as client:
        message = client.make("tools/call", {"name": "where"})
        await client.say(message)
        asked = await client.until("roots/list")
        await client.say(notification("notifications/cancelled", {"requestId": message["id"]}))
        cancelled = await client.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        assert (await client.call("where", {"patience": 0}))["content"][0]["text"] == "too late"
        asked, cancelled = client.heard
        assert (asked["method"], cancelled["params"]["requestId"]) == ("roots/list", asked["id"])
