"""Resources on the wire of each revision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS
from mcpfactory_runtime.revisions import R2025_06_18, Revision
from mcpfactory_runtime.server.remote.relay import relayed_resource
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak
from tests.runtime.wire.revision_ranges import HANDSHAKES, since

pytestmark = pytest.mark.anyio


@requirement("resources.validate-uri", "resources.template-read", "resources.no-empty-contents")
async def test_only_uris_that_something_serves_are_read(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for uri in ("memo://none", "book://", "book://a", "book://a/1/2", "book://a/b", "", "no uri", "BOOK://a/1"):
            answer = await client.ask("resources/read", {"uri": uri})
            assert answer["error"]["code"] == revision.resource_not_found, uri
        wrong: Any
        for wrong in (5, None, [], {}):
            assert await client.code("resources/read", {"uri": wrong}) == INVALID_PARAMS


@requirement("resources.validate-uri")
async def test_a_uri_is_read_and_followed_in_any_form(revision: Revision) -> None:
    server = Server("forms")

    @server.resource("memo://zum café")
    async def memo() -> str:
        """A memo."""
        return "tea"

    forms = ("memo://zum café", "memo://zum%20caf%C3%A9", "memo://zum%20caf%c3%a9", "memo://%7Aum%20café")
    async with speak(server, revision) as client:
        assert [item["uri"] for item in (await client.ask("resources/list"))["result"]["resources"]] == [forms[1]]
        for uri in forms:
            contents = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"]
            assert [(part["uri"], part["text"]) for part in contents] == [(uri, "tea")]
        if revision.modern:
            wanted = {"notifications": {"resourceSubscriptions": [forms[2]]}}
            await client.say(client.make("subscriptions/listen", wanted))
            await client.until("notifications/subscriptions/acknowledged")
        else:
            await client.ask("resources/subscribe", {"uri": forms[2]})
        server.notify_resource_updated(forms[0])
        assert (await client.until("notifications/resources/updated"))["params"]["uri"] == forms[1]
        if not revision.modern:
            await client.ask("resources/unsubscribe", {"uri": forms[3]})
            server.notify_resource_updated(forms[0])
            assert await client.silence() == []
    server.remove_resource(forms[0])


def test_a_relayed_resource_is_found_in_any_form_and_listed_unchanged() -> None:
    pass_on: Any = None
    resource = relayed_resource({"uri": "memo://zum café", "name": "memo"}, pass_on)
    registry = Server("relay").registry
    registry.resources[resource.uri] = resource
    assert registry.resource("memo://zum%20caf%c3%a9") is resource
    assert resource.wire["uri"] == "memo://zum café"


@pytest.mark.parametrize("uri", ["memo://100%", "http://", "http://[::1/a", "memo://a:port", "https://a b/c"])
async def test_a_uri_that_clients_refuse_is_refused_at_registration(uri: str) -> None:
    server = Server("invalid")
    with pytest.raises(ValueError, match=r"URI(.|\n)*hint:"):
        server.resource(uri)(lambda: "")
    assert not server.registry.resources


@requirement("resources.traversal")
async def test_no_variable_of_a_template_takes_a_slash_unless_it_says_so(revision: Revision) -> None:
    server = Server("files")

    @server.resource("file:///notes/{name}")
    async def note(name: str) -> str:
        """A note."""
        return name

    async with speak(server, revision) as client:
        for uri in ("file:///notes/../secret", "file:///notes/a/b", "file:///notes/../../etc/passwd"):
            assert await client.code("resources/read", {"uri": uri}) == revision.resource_not_found, uri
        plain = await client.ask("resources/read", {"uri": "file:///notes/today"})
        assert plain["result"]["contents"][0]["text"] == "today"


@requirement("resources.read-text", "resources.read-blob", "resources.mime-type", "resources.metadata")
async def test_text_and_bytes_are_read_with_their_type(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        listed = {item["uri"]: item for item in (await client.ask("resources/list"))["result"]["resources"]}
        assert listed["memo://today"]["size"] == 10 or "size" not in revision.fields["Resource"]
        assert listed["memo://today"]["annotations"] == {"priority": 1}
        for uri, kind, value in (("memo://today", "text", "a fine day"), ("memo://picture", "blob", "iVBORw==")):
            contents = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"]
            assert [(part["uri"], part["mimeType"], part[kind]) for part in contents] == [
                (uri, listed[uri]["mimeType"], value)
            ]


@requirement("resources.title", "prompts.title")
@since(R2025_06_18)
async def test_titles_are_listed(revision: Revision) -> None:
    server = Server("titles")
    marks = {"lastModified": "2025-01-01T00:00:00Z"}

    @server.resource("a://b", title="A", annotations=marks)
    async def some() -> str:
        """Some."""
        return ""

    @server.prompt(title="P")
    async def say(word: str) -> str:
        """Say."""
        return word

    async with speak(server, revision) as client:
        resource = (await client.ask("resources/list"))["result"]["resources"][0]
        assert (resource["title"], resource["annotations"]) == ("A", marks)
        assert (await client.ask("prompts/list"))["result"]["prompts"][0]["title"] == "P"


@requirement("resources.internal-error", "prompts.internal-error", "message.internal-error")
async def test_failures_of_resources_and_prompts_are_internal_errors_without_their_text(revision: Revision) -> None:
    server = Server("broken")

    @server.resource("a://b")
    async def broken() -> str:
        """Break."""
        raise RuntimeError("the password")

    @server.prompt
    async def broken_prompt() -> str:
        """Break."""
        raise RuntimeError("the password")

    async with speak(server, revision) as client:
        for method, params in (("resources/read", {"uri": "a://b"}), ("prompts/get", {"name": "broken_prompt"})):
            answer = await client.ask(method, params)
            assert answer["error"]["code"] == INTERNAL_ERROR
            assert "password" not in json.dumps(answer)


@requirement("resources.subscribe", "resources.unsubscribe", "resources.not-subscribed")
@HANDSHAKES
async def test_only_subscribers_are_told_and_only_as_long_as_they_are(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.call("grow")
        assert [m for m in await client.silence() if m["method"].endswith("updated")] == []
        await client.ask("resources/subscribe", {"uri": "memo://today"})
        await client.call("grow")
        told = await client.silence()
        assert [m["params"]["uri"] for m in told if m["method"].endswith("updated")] == ["memo://today"]
        await client.ask("resources/unsubscribe", {"uri": "memo://today"})
        await client.call("grow")
        assert [m for m in await client.silence() if m["method"].endswith("updated")] == []
