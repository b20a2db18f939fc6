"""What a server offers, on the wire of each revision."""

from __future__ import annotations

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import R2025_03_26, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak
from tests.runtime.wire.revision_ranges import before, since

pytestmark = pytest.mark.anyio


@requirement("tools.capability", "resources.capability", "prompts.capability", "logging.capability", "initialize.offer")
async def test_capabilities_are_offered_for_what_is_there(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
    offered = greeting["result"]["capabilities"]
    assert {"tools", "resources", "prompts", "logging"} <= set(offered)
    async with speak(Server("empty"), revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
        assert not {"tools", "resources", "prompts", "completions"} & set(greeting["result"]["capabilities"])
        assert await client.code("tools/list") == METHOD_NOT_FOUND


@requirement("completion.capability")
@since(R2025_03_26)
async def test_completions_is_a_capability(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        greeting = client.greeting or await client.ask("server/discover")
    assert greeting["result"]["capabilities"]["completions"] == {}


@requirement("completion.no-capability")
@before(R2025_03_26)
async def test_completions_is_no_capability_yet_but_served(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        assert "completions" not in client.greeting["result"]["capabilities"]
        params = {"ref": {"type": "ref/prompt", "name": "ask_for"}, "argument": {"name": "topic", "value": "x"}}
        assert (await client.ask("completion/complete", params))["result"]["completion"]["values"]
