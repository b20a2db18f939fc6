"""Completion on the wire of each revision."""

from __future__ import annotations

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak

pytestmark = pytest.mark.anyio


@requirement("completion.bad-argument", "completion.validate", "completion.not-offered")
async def test_malformed_questions_for_completion_are_refused(revision: Revision) -> None:
    reference = {"type": "ref/prompt", "name": "ask_for"}
    async with speak(sample, revision) as client:
        for params in (
            {},
            {"ref": reference},
            {"ref": {"type": "ref/tool", "name": "x"}, "argument": {"name": "a", "value": ""}},
            {"ref": reference, "argument": {"name": "a"}},
            {"ref": reference, "argument": {"name": 5, "value": ""}},
            {"ref": {"type": "ref/resource"}, "argument": {"name": "a", "value": ""}},
        ):
            assert await client.code("completion/complete", params) == INVALID_PARAMS
    async with speak(Server("empty"), revision) as client:
        params = {"ref": reference, "argument": {"name": "a", "value": ""}}
        assert await client.code("completion/complete", params) == METHOD_NOT_FOUND


@requirement("completion.bad-reference")
async def test_what_does_not_exist_is_not_completed(revision: Revision) -> None:
    argument = {"name": "topic", "value": ""}
    async with speak(sample, revision) as client:
        reference = {"type": "ref/prompt", "name": "nothing"}
        assert await client.code("completion/complete", {"ref": reference, "argument": argument}) == INVALID_PARAMS


@requirement("completion.complete", "completion.at-most-100", "completion.context")
async def test_prompts_and_templates_are_completed_with_what_is_settled(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        template = {"type": "ref/resource", "uri": "book://{shelf}/{number}{?lang}"}
        context = {"arguments": {"shelf": "a"}}
        params = {"ref": template, "argument": {"name": "number", "value": "4"}, "context": context}
        assert (await client.ask("completion/complete", params))["result"]["completion"]["values"] == [
            "ref/resource/4/a"
        ]
        params = {"ref": {"type": "ref/prompt", "name": "ask_for"}, "argument": {"name": "many", "value": ""}}
        completion = (await client.ask("completion/complete", params))["result"]["completion"]
        assert (len(completion["values"]), completion["total"], completion["hasMore"]) == (100, 150, True)
