"""Tasks belong to the principal that made them, in both forms; nobody else learns that they exist."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.types import Json
from tests.runtime.auth.conftest import Protected, protected, request
from tests.runtime.requirements import requirement
from tests.runtime.tasks import sample
from tests.runtime.tasks.conftest import EXTENDED, YES

pytestmark = pytest.mark.anyio

BOB = {"sub": "bob"}


async def modern(at: Protected, token: str, method: str, **params: Any) -> Json:
    """The response in the per-request lifecycle."""
    name = params.get("name") or params.get("taskId")
    headers = {"MCP-Protocol-Version": LATEST.name, "Mcp-Method": method, "Mcp-Name": name or ""}
    full = {**params, "_meta": {META_VERSION: LATEST.name, META_CAPABILITIES: EXTENDED}}
    response: Json = (await at.post(request(method, full), token, **headers)).json()
    return response


async def session(at: Protected, token: str) -> dict[str, str]:
    """The header of a new session."""
    begun = await at.begin(token)
    assert "list" in begun.json()["result"]["capabilities"]["tasks"]
    return {"Mcp_Session_Id": begun.headers["mcp-session-id"], "Accept": "application/json"}


@requirement("task.owner")
async def test_nobody_else_can_see_answer_or_cancel_a_task_of_the_extension() -> None:
    async with protected(sample.make()) as at:
        ann, bob = at.issuer.signed(), at.issuer.signed(**BOB)
        task = (await modern(at, ann, "tools/call", name="work", arguments={}))["result"]["taskId"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            refused = await modern(at, bob, method, taskId=task, inputResponses={"go": YES})
            unknown = await modern(at, bob, method, taskId="unknown", inputResponses={"go": YES})
            assert refused["error"]["code"] == INVALID_PARAMS
            assert refused == unknown
        renewed = at.issuer.signed(jti="another token of the same user")
        seen = (await modern(at, renewed, "tasks/get", taskId=task))["result"]
        assert seen["status"] in ("working", "input_required")


@requirement("task-core.owner", "task-core.listed-to-known", "task-core.list")
async def test_nobody_else_can_see_list_or_cancel_a_task_of_the_core_feature() -> None:
    async with protected(sample.make()) as at:
        ann, bob = at.issuer.signed(), at.issuer.signed(**BOB)
        of_ann, of_bob = await session(at, ann), await session(at, bob)
        call = request("tools/call", {"name": "count", "arguments": {}, "task": {}})
        task = (await at.post(call, ann, **of_ann)).json()["result"]["task"]["taskId"]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            refused = (await at.post(request(method, {"taskId": task}), bob, **of_bob)).json()
            assert refused["error"]["code"] == INVALID_PARAMS
        assert (await at.post(request("tasks/list", {}), bob, **of_bob)).json()["result"]["tasks"] == []
        again = await session(at, ann)  # another session of the same user
        listed = (await at.post(request("tasks/list", {}), ann, **again)).json()["result"]["tasks"]
        assert [item["taskId"] for item in listed] == [task]


@requirement("task-core.listed-to-known")
async def test_without_authorization_tasks_over_http_are_not_listed_but_found_by_their_id(sample_url: str) -> None:
    from mcpfactory_runtime.client import Client
    from tests.runtime.tasks.conftest import begin, code, core, get

    async with Client.connect_http(sample_url, **core()) as one, Client.connect_http(sample_url, **core()) as two:
        task = await begin(one, "count")
        assert await code(two, "tasks/list", {}) == METHOD_NOT_FOUND
        assert (await get(two, task))["taskId"] == task["taskId"]
