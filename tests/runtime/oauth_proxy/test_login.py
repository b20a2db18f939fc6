"""A login through the proxy: by our client, by the official one, by hand; what a token then is, and how it goes on."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client as OfficialClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.oauth_proxy import OAuthProxy, github
from mcpfactory_runtime.storage.base import MemoryStore
from mcpfactory_runtime.storage.sqlite import SqliteStore
from tests.runtime.auth.conftest import books
from tests.runtime.oauth_proxy.conftest import BACK, SECRET, StubProvider, answer_of, guarded
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


async def test_our_client_registers_logs_in_and_calls() -> None:
    async with guarded(required_scopes=("books:read",)) as at:
        login = OAuth(at.browse, redirect_uri=BACK)
        async with Client.connect_http(at.url, oauth=login) as mcp:
            (issuer, person, client, *scopes) = (await mcp.call_tool("whoami"))["structuredContent"]["result"]
            assert (issuer, person, scopes) == (at.origin, "7", ["books:read"])
            assert len(client) == 24
            await mcp.call_tool("write")  # asks for one scope more
        assert len(at.provider.visits) == 2


class Kept:
    """What the official client remembers."""

    tokens: Any = None
    info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.info

    async def set_client_info(self, info: Any) -> None:
        self.info = info


async def test_the_official_client_registers_logs_in_and_calls() -> None:
    async with guarded() as at:
        came_back: list[dict[str, str]] = []

        async def show(url: str) -> None:
            came_back.append(answer_of(await at.browse(url)))

        async def wait() -> AuthorizationCodeResult:
            last = came_back[-1]
            return AuthorizationCodeResult(code=last["code"], state=last["state"], iss=last["iss"])

        about = OAuthClientMetadata(client_name="official", redirect_uris=[AnyUrl(BACK)])
        auth = OAuthClientProvider(at.url, about, Kept(), show, wait)
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False, timeout=TIMEOUT) as http,
            OfficialClient(streamable_http_client(at.url, http_client=http)) as mcp,
        ):
            result = await mcp.call_tool("whoami", {})
            assert result.structured_content["result"][1] == "7"


async def test_the_metadata_name_the_endpoints_and_the_scopes() -> None:
    async with guarded() as at:
        said = (await at.http.get(f"{at.origin}/.well-known/oauth-authorization-server")).json()
        assert said["issuer"] == at.origin
        assert said["code_challenge_methods_supported"] == ["S256"]
        assert said["scopes_supported"] == ["books:write", "books:burn"]
        resource = (await at.http.get(f"{at.origin}/.well-known/oauth-protected-resource/mcp")).json()
        assert resource["authorization_servers"] == [at.origin]


async def test_the_providers_token_is_for_handlers_alone() -> None:
    store = MemoryStore()
    async with guarded(http_options={"store": store}) as at:
        tokens = await (await at.client()).tokens()
        said = (await at.call("ask_provider", tokens["access_token"])).json()["result"]["structuredContent"]["result"]
        assert said == "theirs-1"
        assert "theirs-1" not in json.dumps(tokens)
        assert b"theirs-1" not in b"".join(urlsafe_b64decode(part + "==") for part in tokens["access_token"].split("."))
        kept = repr(vars(store))
        assert "oauth/grant/" in kept
        assert "theirs-1" not in kept


async def test_the_providers_token_is_renewed_when_it_is_over() -> None:
    async with guarded(provider=StubProvider(seconds=1000), access_seconds=10_000) as at:
        tokens = await (await at.client()).tokens()
        at.now[0] += 1000
        said = (await at.call("ask_provider", tokens["access_token"])).json()["result"]["structuredContent"]["result"]
        assert said == "theirs-2"
        assert at.provider.exchanges[-1]["refresh_token"] == "theirs-again-1"
        again = (await at.call("ask_provider", tokens["access_token"])).json()["result"]["structuredContent"]["result"]
        assert again == "theirs-2"


async def test_a_refresh_token_gives_new_tokens_while_the_person_may_call() -> None:
    async with guarded() as at:
        app = await at.client()
        first = await app.tokens()
        at.now[0] += 960
        assert (await at.call("whoami", first["access_token"])).status_code == 401
        second = (await app.refresh(first["refresh_token"])).json()
        assert (await at.call("whoami", second["access_token"])).status_code == 200
        at.provider.gone.add("theirs-1")
        refused = await app.refresh(second["refresh_token"])
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
        assert (await at.call("whoami", second["access_token"])).status_code == 401, "the grant has ended"


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_a_revoked_token_ends_both(which: str) -> None:
    async with guarded() as at:
        app, other = await at.client(), await at.client("https://other.example/back")
        tokens = await app.tokens()
        place = f"{at.origin}/revoke"
        await at.http.post(place, data={"client_id": other.client_id, "token": tokens[which]})
        assert (await at.call("whoami", tokens["access_token"])).status_code == 200, "it is not the other client's"
        assert (await at.http.post(place, data={"client_id": app.client_id, "token": tokens[which]})).status_code == 200
        assert (await at.call("whoami", tokens["access_token"])).status_code == 401
        assert (await app.refresh(tokens["refresh_token"])).status_code == 400


VERIFIED = {"sub": "7", "email_verified": True}


@parametrize_subtests(
    "person, allow, may",
    [
        ({"sub": "7", "login": "Ada"}, "ada", True),
        ({**VERIFIED, "email": "ada@example.com"}, "@example.com", True),
        ({**VERIFIED, "email": "ada@example.com"}, "ADA@example.com", True),
        ({"sub": "A7"}, "sub:A7", True),
        ({"sub": "7"}, "*", True),
        ({"sub": "7", "email": "ada@example.com", "email_verified": False}, "ada@example.com", False),
        ({"sub": "7", "email": "ada@example.com"}, "@example.com", False),
        ({**VERIFIED, "email": "eve@example.com.evil"}, "@example.com", False),
        ({"sub": "7", "name": "ada"}, "ada", False),
        ({"sub": "7"}, "7", False),
        ({"sub": "ABC"}, "sub:abc", False),
        ({"sub": "8", "login": "7"}, "sub:7", False),
        ({"sub": "8", "login": "sub:7"}, "sub:7", False),
        ({"sub": "8", "login": "@example.com"}, "@example.com", False),
    ],
)
def test_those_whom_the_server_names_may_call(person: dict[str, Any], allow: str, may: bool) -> None:
    login = github(client_id="app", client_secret=SECRET)
    assert OAuthProxy(login, "https://mcp.example/mcp", allow=(allow,))._may_call(person) is may


async def test_any_process_with_the_store_and_the_secret_goes_on_with_a_login(tmp_path: Path) -> None:
    stores = [SqliteStore(str(tmp_path / "shared.db")) for _ in range(2)]
    async with guarded(http_options={"store": stores[0]}) as at:
        app = await at.client()
        code = await app.code()
        assert at.proxy is not None
        at.proxy.bind(stores[1], "books", lambda: ())  # from here on it is another process
        tokens = (await app.redeem(code)).json()
        at.proxy.bind(stores[0], "books", lambda: ())
        assert (await at.call("whoami", tokens["access_token"])).status_code == 200
        at.proxy.bind(stores[1], "books", lambda: ())
        assert (await app.redeem(code)).status_code == 400
        at.proxy.bind(stores[0], "books", lambda: ())
        assert (await at.call("whoami", tokens["access_token"])).status_code == 401
    for store in stores:
        await store.aclose()


def test_a_route_of_ones_own_does_not_stand_where_logins_are() -> None:
    server = books()
    server.route("/token", methods=["POST"])(lambda request: "mine")
    proxy = OAuthProxy(github(client_id="app", client_secret=SECRET), "https://mcp.example/mcp", allow=("ada",))
    with pytest.raises(ValueError, match="/token is already used"):
        server.http_app(auth=proxy)


async def test_others_are_sent_back_without_a_code() -> None:
    async with guarded(allow=("ada",)) as at:
        for person in ({"sub": "7", "login": "ada"}, {"sub": ""}, {}):  # who chose the name, and nobody
            at.provider.person = person
            said = answer_of(await at.browse((await at.client()).url()))
            assert (said["error"], said["state"], said["iss"]) == ("access_denied", "mine", at.origin)
