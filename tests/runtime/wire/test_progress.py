"""Progress on the wire of each revision."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.revisions import Revision
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak

pytestmark = pytest.mark.anyio


def stepping(*steps: float) -> Server:
    server = Server("steps")
    late: list[Context] = []

    @server.tool
    async def work(ctx: Context) -> str:
        """Work."""
        late.append(ctx)
        for step in steps:
            await ctx.report_progress(step, None, "on the way")
        return "done"

    @server.tool
    async def haunt() -> str:
        """Report for a call that has ended."""
        await late[0].report_progress(1000)
        return "boo"

    return server


@requirement("progress.asked-for", "progress.token-types", "progress.message")
async def test_progress_goes_to_those_who_gave_a_token(revision: Revision) -> None:
    async with speak(stepping(1, 2, 3), revision) as client:
        await client.call("work")
        assert client.heard == []
        for token in ("t", "", 0, 7):
            client.heard.clear()
            await client.call("work", meta={"progressToken": token})
            assert [message["params"]["progressToken"] for message in client.heard] == [token] * 3
            said = [message["params"].get("message") for message in client.heard]
            known = "message" in revision.fields["ProgressNotificationParams"]
            assert said == [("on the way" if known else None)] * 3
        wrong: Any
        for wrong in (None, 1.5, True, [], {}):
            client.heard.clear()
            await client.call("work", meta={"progressToken": wrong})
            assert client.heard == []


@requirement("progress.increases")
async def test_progress_that_does_not_grow_is_not_sent(revision: Revision) -> None:
    async with speak(stepping(1, 1, 0.5, 2, 2, -1, 3), revision) as client:
        await client.call("work", meta={"progressToken": "t"})
        assert [message["params"]["progress"] for message in client.heard] == [1, 2, 3]


@requirement("progress.stops")
async def test_no_progress_is_reported_for_a_call_that_has_ended(revision: Revision) -> None:
    async with speak(stepping(1), revision) as client:
        await client.call("work", meta={"progressToken": "t"})
        client.heard.clear()
        await client.call("haunt")
        assert client.heard == []
