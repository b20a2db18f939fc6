"""Change notifications: to handshake sessions, and on `subscriptions/listen` streams."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.protocol.connection import META_SUBSCRIPTION
from mcpfactory_runtime.revisions import LEGACY, MODERN
from tests.runtime.interaction.conftest import Connect
from tests.runtime.requirements import requirement
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

LISTS = {
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
}


class Heard:
    """Collects notifications, and waits until a wanted one is there."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []
        self._changed = asyncio.Event()

    def __call__(self, method: str, params: dict[str, Any]) -> None:
        self.all.append((method, params))
        self._changed.set()

    async def wait_for(self, method: str) -> None:
        async with asyncio.timeout(TIMEOUT):
            while method not in self.methods:
                self._changed.clear()
                await self._changed.wait()

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.all]


@requirement(
    "resources.subscribe",
    "resources.unsubscribe",
    "tools.list-changed",
    "prompts.list-changed",
    "resources.list-changed",
)
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_sessions_are_told_of_lists_and_of_resources_they_subscribed_to(connect: Connect) -> None:
    heard = Heard()
    async with connect(notified=heard) as client:
        await client.request("resources/subscribe", {"uri": "memo://today"})
        await client.call_tool("grow")
        await heard.wait_for("notifications/resources/updated")
        assert set(heard.methods) >= LISTS
        assert [params for method, params in heard.all if method.endswith("updated")] == [{"uri": "memo://today"}]
        await client.request("resources/unsubscribe", {"uri": "memo://today"})
        heard.all.clear()
        await client.call_tool("grow")
        await heard.wait_for("notifications/resources/list_changed")
        assert "notifications/resources/updated" not in heard.methods


@requirement("listen.acknowledged", "listen.only-wanted", "listen.tagged")
@pytest.mark.parametrize("revision", MODERN.values(), ids=str)
async def test_a_listening_stream_gets_what_it_asked_for_and_nothing_else(connect: Connect) -> None:
    heard = Heard()
    wanted = {"promptsListChanged": True, "toolsListChanged": False, "resourceSubscriptions": ["memo://today"]}
    async with connect(notified=heard) as client:
        listening = asyncio.ensure_future(
            client.request("subscriptions/listen", {"notifications": wanted}, timeout=None)
        )
        await heard.wait_for("notifications/subscriptions/acknowledged")
        await client.call_tool("grow")
        await heard.wait_for("notifications/resources/updated")
        listening.cancel()
        await asyncio.wait([listening])
    assert heard.methods[0] == "notifications/subscriptions/acknowledged"
    assert heard.all[0][1]["notifications"] == {"promptsListChanged": True, "resourceSubscriptions": ["memo://today"]}
    assert set(heard.methods[1:]) == {"notifications/prompts/list_changed", "notifications/resources/updated"}
    assert len({params["_meta"][META_SUBSCRIPTION] for _, params in heard.all}) == 1


@requirement("cancel.stop")
async def test_a_cancelled_call_ends_its_handler_and_the_next_one_is_served(connect: Connect) -> None:
    started = asyncio.Event()
    async with connect() as client:
        call = asyncio.ensure_future(client.call_tool("wait_for_ever", progress=lambda _: started.set()))
        async with asyncio.timeout(TIMEOUT):
            await started.wait()
        call.cancel()
        await asyncio.wait([call])
        assert (await client.call_tool("add", {"a": 1}))["content"][0]["text"] == "3"
