"""What belongs to a principal: sessions, sealed states, and nothing that could be used in its name."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.testing import connect
from mcpfactory_runtime.upstream import Operation
from mcpfactory_runtime.upstream.client import Upstream
from tests.runtime.auth.conftest import books, protected, request
from tests.runtime.client.peer import Asked, peer, reply
from tests.runtime.requirements import requirement

pytestmark = pytest.mark.anyio

BOB = {"sub": "bob"}


@requirement("session.foreign", "auth.session-owner")
@pytest.mark.parametrize("other", [BOB, {"client_id": "client-2"}, {"sub": "client-1", "client_id": "ada"}])
async def test_the_session_of_another_principal_does_not_exist(other: dict[str, str]) -> None:
    async with protected() as at:
        begun = await at.begin(at.issuer.signed())
        own = {"Mcp_Session_Id": begun.headers["mcp-session-id"]}
        listing = request("tools/list", {})
        raw = {
            "Mcp-Session-Id": begun.headers["mcp-session-id"],
            "Authorization": f"Bearer {at.issuer.signed(**other)}",
        }
        assert (await at.post(listing, at.issuer.signed(**other), **own)).status_code == 404
        assert (await at.http.get(at.url, headers=raw)).status_code == 404
        assert (await at.http.delete(at.url, headers=raw)).status_code == 404
        assert (await at.post(listing, at.issuer.signed(jti="another token"), **own)).status_code == 200


@requirement("input-required.principal", "elicitation.identity")
async def test_a_sealed_state_is_of_use_to_the_principal_it_was_given_to_and_to_nobody_else() -> None:
    async with protected() as at:
        asked = (await at.call("ask", at.issuer.signed())).json()["result"]
        key = next(iter(asked["inputRequests"]))
        retry = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "decline"}}}
        stolen = await at.call("ask", at.issuer.signed(**BOB), **retry)
        assert stolen.json()["error"]["code"] == INVALID_PARAMS
        done = await at.call("ask", at.issuer.signed(jti="renewed"), **retry)
        assert done.json()["result"]["structuredContent"] == {"result": "decline"}


async def test_a_code_that_agrees_is_of_use_to_the_principal_it_was_given_to_and_to_nobody_else() -> None:
    async with protected() as at:

        async def pulp(confirm: str, **who: str) -> str:
            begun = await at.begin(at.issuer.signed(**who))
            own = {"Mcp_Session_Id": begun.headers["mcp-session-id"], "Accept": "application/json"}
            call = request("tools/call", {"name": "pulp", "arguments": {"confirm": confirm}})
            text: str = (await at.post(call, at.issuer.signed(**who), **own)).json()["result"]["content"][0]["text"]
            return text

        code = (await pulp("")).rpartition('confirm="')[2].partition('"')[0]
        assert "Nothing was done" in await pulp(code, **BOB)
        assert await pulp(code) == "pulped"
        assert "Nothing was done" in await pulp(code)


async def test_without_authorization_there_is_no_principal() -> None:
    server = Server("open")

    @server.tool
    async def whoami(ctx: Context) -> bool:
        return ctx.principal is None

    async with connect(server) as client:
        assert (await client.call_tool("whoami"))["structuredContent"] == {"result": True}


def reachable(start: Any, depth: int = 6) -> Iterator[str]:
    """The text of everything that can be reached from an object by attributes, items and slots."""
    seen: set[int] = set()
    waiting = [(start, 0)]
    while waiting:
        item, level = waiting.pop()
        if id(item) in seen or level > depth or isinstance(item, type) or callable(item):
            continue
        seen.add(id(item))
        if isinstance(item, str):
            yield item
        elif isinstance(item, bytes | bytearray):
            yield bytes(item).decode("latin-1")
        if isinstance(item, dict):
            waiting += [(part, level + 1) for pair in list(item.items()) for part in pair]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += [(part, level + 1) for part in item]
        else:
            slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
            names = [*getattr(item, "__dict__", {}), *slots]
            waiting += [(getattr(item, name, None), level + 1) for name in names]


@requirement("auth.no-passthrough")
async def test_the_token_reaches_neither_handlers_nor_logs_nor_the_upstream(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcpfactory_runtime")
    server = books()
    found: list[str] = []
    sent: list[Asked] = []

    async def answer(asked: Asked, _send: Any) -> Any:
        sent.append(asked)
        return reply({"ok": True})

    async with (
        peer(answer) as api,
        Upstream(api.url.removesuffix("/mcp"), {}, environ={"MCPFACTORY_ALLOW_PRIVATE": "1"}) as upstream,
    ):

        @server.tool
        async def nosy(ctx: Context) -> str:
            frame: Any = sys._getframe()
            while frame is not None:
                found.extend(reachable(dict(frame.f_locals), 4))
                frame = frame.f_back
            found.extend(reachable(ctx))
            await upstream.send(Operation("GET", "/x"), {})
            raise RuntimeError("logged with its traceback")

        async with protected(server) as at:
            at.issuer.audience = at.url
            canary = at.issuer.signed(jti="canary")
            body = (await at.call("nosy", canary)).json()
            assert body["result"]["isError"]
            begun = await at.begin(canary)
            own = {"Mcp_Session_Id": begun.headers["mcp-session-id"], "Accept": "application/json"}
            await at.post(request("tools/call", {"name": "nosy", "arguments": {}}), canary, **own)
    assert len(sent) == 2
    assert "tools/call" in found
    assert any(text == "nosy" for text in found)
    signature = canary.split(".")[2]
    assert [text for text in found if signature in text] == []
    told = repr([asked.headers for asked in sent]) + repr(body) + caplog.text
    assert "logged with its traceback" in told
    assert signature not in told
    assert "authorization" not in repr([asked.headers for asked in sent]).lower()
