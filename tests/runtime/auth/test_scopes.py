"""What a principal may do: scopes of the server and of tools, hierarchies, batches, and servers without authorization."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.auth.tokens import read_granted
from mcpfactory_runtime.revisions import REVISIONS
from tests.runtime.auth.conftest import Protected, books, challenge, listen, protected, request, serving
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests

ROLES = {"librarian": ("books:write", "reader"), "reader": ("books:read",), "admin": ("librarian", "books:burn")}


@parametrize_subtests(
    "claims, granted",
    [
        ({"scope": "a b"}, "ab"),
        ({"scp": ["a", "b"]}, "ab"),
        ({"scp": "a"}, "a"),
        ({"scope": "", "scp": "a"}, ""),
        ({}, ""),
        ({"scope": 7}, ""),
        ({"scope": ["a", 7, None]}, "a"),
    ],
)
def test_scopes_are_read_as_issuers_write_them(claims: Any, granted: str) -> None:
    assert read_granted(claims) == frozenset(granted)


@pytest.mark.parametrize(
    ("scopes", "error"), [("books:write", TypeError), (("a b",), ValueError), (('"',), ValueError)]
)
def test_a_tool_with_impossible_scopes_is_refused_when_it_is_made(scopes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="hint:"):
        Server("x").tool(scopes=scopes)(lambda_tool)


async def lambda_tool() -> str:
    return ""


@requirement("auth.insufficient-scope", "auth.insufficient-scope-challenge", "tools.access-control")
@pytest.mark.anyio
async def test_a_tool_says_what_it_needs_all_at_once() -> None:
    async with protected(required_scopes=("books:read",)) as at:
        refused = await at.call("burn", at.issuer.signed(scope="books:write"))
        told = challenge(refused)
        assert (refused.status_code, told["error"]) == (403, "insufficient_scope")
        assert told["scope"] == "books:read books:write books:burn"
        assert told["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")
        assert (await at.call("write", at.issuer.signed())).status_code == 403
        assert (await at.call("write", at.issuer.signed(scope="books:write books:read"))).status_code == 200
        assert (await at.modern("tools/list", token=at.issuer.signed())).status_code == 200


@requirement("auth.insufficient-scope")
@pytest.mark.anyio
async def test_what_every_request_needs_is_needed_by_every_request() -> None:
    async with protected(required_scopes=("books:read",)) as at:
        poor = at.issuer.signed(scope="other")
        for response in (await at.modern("tools/list", token=poor), await at.begin(poor)):
            assert (response.status_code, challenge(response)["scope"]) == (403, "books:read")
        for method in ("GET", "DELETE"):
            response = await at.http.request(method, at.url, headers={"Authorization": f"Bearer {poor}"})
            assert challenge(response)["error"] == "insufficient_scope"


@requirement("auth.hierarchies")
@pytest.mark.anyio
async def test_hierarchies_are_honoured() -> None:
    async with protected(required_scopes=("books:read",), scope_hierarchy=ROLES) as at:
        statuses = {
            role: [
                (await at.call(tool, at.issuer.signed(scope=role))).status_code for tool in ("whoami", "write", "burn")
            ]
            for role in ("reader", "librarian", "admin")
        }
        assert statuses == {"reader": [200, 403, 403], "librarian": [200, 200, 403], "admin": [200, 200, 200]}
        said = await at.call("whoami", at.issuer.signed(scope="librarian"))
        assert said.json()["result"]["structuredContent"]["result"][3:] == [
            "books:read",
            "books:write",
            "librarian",
            "reader",
        ]


async def session(at: Protected, token: str, revision: str | None = None) -> dict[str, str]:
    info = {"name": "raw", "version": "0"}
    newest = revision or [name for name, one in REVISIONS.items() if not one.modern][-1]
    hello = {"protocolVersion": newest, "capabilities": {}, "clientInfo": info}
    begun = await at.post(request("initialize", hello), token)
    return {"Mcp_Session_Id": begun.headers["mcp-session-id"]}


LEGACY = [name for name, revision in REVISIONS.items() if not revision.modern]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LEGACY)
async def test_scopes_of_tools_hold_in_sessions_of_every_revision(revision: str) -> None:
    async with protected() as at:
        own = await session(at, at.issuer.signed(), revision)
        call = request("tools/call", {"name": "write", "arguments": {}})
        refused = await at.post(call, at.issuer.signed(), **own)
        assert (refused.status_code, challenge(refused)["scope"]) == (403, "books:write")
        allowed = await at.post(call, at.issuer.signed(scope="books:write"), Accept="application/json", **own)
        assert "written" in allowed.text


@requirement("tools.access-control")
@pytest.mark.anyio
async def test_a_tool_that_another_one_calls_needs_its_scopes_of_whoever_calls() -> None:
    async with protected() as at:
        own = await session(at, at.issuer.signed())
        call = request("tools/call", {"name": "pass_on", "arguments": {}})
        for refused in (
            await at.call("pass_on", at.issuer.signed()),
            await at.post(call, at.issuer.signed(), Accept="application/json", **own),
        ):
            assert refused.status_code == 200
            assert refused.json()["result"]["isError"] is True
            assert "The access token lacks: books:write" in refused.text
            assert "written" not in refused.text
        allowed = await at.call("pass_on", at.issuer.signed(scope="books:write"))
        assert "written" in allowed.text
        burn = await at.call("pass_on", at.issuer.signed(scope="books:write"), arguments={"tool": "burn"})
        assert "The access token lacks: books:burn" in burn.text


@requirement("auth.every-request")
@pytest.mark.anyio
async def test_a_batch_cannot_hide_a_call_and_is_told_what_all_its_calls_need() -> None:
    async with protected() as at:
        batching = next(name for name in LEGACY if REVISIONS[name].batches)
        own = await session(at, at.issuer.signed(), batching)
        batch = [request("ping", {}), *(request("tools/call", {"name": name}) for name in ("write", "burn"))]
        refused = await at.post(batch, at.issuer.signed(), **own)
        assert (refused.status_code, challenge(refused)["scope"]) == (403, "books:write books:burn")


@requirement("tools.access-control")
@pytest.mark.anyio
async def test_tools_with_scopes_are_closed_where_nobody_checks() -> None:
    port, url = listen()
    async with httpx.AsyncClient(trust_env=False) as http, serving(books(), port):
        open_server = Protected(url, http, None)  # type: ignore[arg-type] # there is no issuer here
        refused = await open_server.call("write")
        assert refused.status_code == 403
        assert "books:write" in refused.text
        passed_on = (await open_server.call("pass_on")).json()["result"]
        assert passed_on["isError"] is True
        assert "needs the scopes books:write, and this server has no authorization" in passed_on["content"][0]["text"]
        assert (await open_server.modern("tools/list")).status_code == 200
