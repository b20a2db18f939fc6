"""What servers tell those who listen, on the wire of each revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.protocol.connection import META_SUBSCRIPTION
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.revisions import LATEST, LEGACY, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, Speaker, speak
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


async def listen(client: Speaker, **wanted: Any) -> str:
    """Begin to listen; the id of the request, after its acknowledgement."""
    message = client.make("subscriptions/listen", {"notifications": wanted})
    await client.say(message)
    return str(message["id"])


def tag(message: Json) -> Any:
    return message["params"]["_meta"][META_SUBSCRIPTION]


@requirement(
    "listen.acknowledged",
    "listen.only-wanted",
    "listen.tagged",
    "listen.resources",
    "listen.several",
    "meta.subscription-id",
    "tools.list-changed",
    "prompts.list-changed",
    "resources.list-changed",
)
async def test_listening_streams_are_acknowledged_tagged_and_kept_apart() -> None:
    async with speak(sample, LATEST) as client:
        tools = await listen(client, toolsListChanged=True, promptsListChanged=False)
        rest = await listen(
            client, promptsListChanged=True, resourcesListChanged=True, resourceSubscriptions=["memo://today"]
        )
        for name, honoured in (
            (tools, {"toolsListChanged": True}),
            (
                rest,
                {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["memo://today"]},
            ),
        ):
            first = await client.hear()
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert (tag(first), first["params"]["notifications"]) == (name, honoured)
        await client.call("grow")
        told = await client.silence()
        kinds: dict[str, set[str]] = {}
        for message in told:
            kinds.setdefault(tag(message), set()).add(message["method"].removeprefix("notifications/"))
        assert kinds == {
            tools: {"tools/list_changed"},
            rest: {"prompts/list_changed", "resources/list_changed", "resources/updated"},
        }
        assert {m["params"]["uri"] for m in told if m["method"].endswith("updated")} == {"memo://today"}


@requirement("listen.no-listen-no-news")
async def test_who_does_not_listen_is_told_nothing() -> None:
    async with speak(sample, LATEST) as client:
        await client.call("grow")
        assert await client.silence() == []


@requirement("tools.list-changed", "prompts.list-changed", "resources.list-changed")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_sessions_are_told_of_changed_lists(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.call("grow")
        told = {message["method"] for message in await client.silence()}
    assert told == {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


@requirement("listen.malformed")
@pytest.mark.parametrize("wanted", [None, [], "x", {"toolsListChanged": "yes"}, {"resourceSubscriptions": "memo://a"}])
async def test_a_malformed_filter_is_refused(wanted: Any) -> None:
    async with speak(sample, LATEST) as client:
        assert await client.code("subscriptions/listen", {"notifications": wanted}) == INVALID_PARAMS


@requirement("listen.graceful-end")
async def test_the_end_of_the_server_ends_a_listening_stream_with_a_result() -> None:
    async with speak(sample, LATEST) as client:
        name = await listen(client, toolsListChanged=True)
        await client.until("notifications/subscriptions/acknowledged")
        sample.closing.set()
        result = (await asyncio.wait_for(client.answer(name), TIMEOUT))["result"]
    assert (result["resultType"], result["_meta"][META_SUBSCRIPTION]) == ("complete", name)
