"""Authorization servers that people have: where their keys are, and what those that check tokens themselves are asked."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.auth import Authorization, AuthorizationError, providers
from mcpfactory_runtime.upstream.stub import StubUpstream
from tests.runtime.auth.conftest import Protected, books, listen, serving
from tests.runtime.auth.issuer import issuer
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio

PLACE = "https://mcp.example/mcp"
BASIC = {"kind": "basic", "in": "header", "name": "Authorization", "variables": ["ID", "SECRET"]}
ENVIRON = {"ID": "app", "SECRET": "s3cret"}
TOKEN = "opaque-token"


def asked(path: str, body: dict[str, Any], *answers: tuple[int, Any], basic: bool = True) -> dict[str, Any]:
    """A question to a provider, and its answers."""
    responses = [{"status": status, "content_type": "application/json", "body": answer} for status, answer in answers]
    request = {"method": "POST", "path": path, **body, **({"credentials": [BASIC]} if basic else {})}
    return {"request": request, "response": responses}


@asynccontextmanager
async def guarded(auth: Authorization, at: tuple[Any, str]) -> Any:
    port, url = at
    with port:
        async with (
            issuer(audience=url) as source,
            httpx.AsyncClient(trust_env=False, timeout=TIMEOUT) as http,
            serving(books(), port, auth=auth),
        ):
            yield Protected(url, http, source)


async def said(at: Protected, token: str = TOKEN) -> Any:
    """What `whoami` answers, or the status of the refusal."""
    answer = await at.call("whoami", token)
    return answer.json()["result"]["structuredContent"]["result"] if answer.status_code == 200 else answer.status_code


@pytest.mark.parametrize(
    ("auth", "name", "keys"),
    [
        (providers.keycloak("https://id.example/", "acme", PLACE), "https://id.example/realms/acme", "https://id.example/realms/acme/protocol/openid-connect/certs"),
        (providers.auth0("acme.eu.auth0.com", PLACE), "https://acme.eu.auth0.com/", "https://acme.eu.auth0.com/.well-known/jwks.json"),
        (providers.okta("acme.okta.com", PLACE), "https://acme.okta.com/oauth2/default", "https://acme.okta.com/oauth2/default/v1/keys"),
        (providers.entra("tenant", PLACE, client_id="app"), "https://login.microsoftonline.com/tenant/v2.0", "https://login.microsoftonline.com/tenant/discovery/v2.0/keys"),
    ],
    ids=["keycloak", "auth0", "okta", "entra"],
)  # fmt: skip
def test_issuers_of_jwts_have_their_keys_at_known_places(auth: Authorization, name: str, keys: str) -> None:
    assert (auth.issuers, auth.key_urls, auth.resource) == ((name,), {name: keys}, PLACE)


def test_a_tenant_that_stands_for_all_of_them_is_refused() -> None:
    assert providers.entra("tenant", PLACE, client_id="app", audiences=("x",)).audiences == ("app", "api://app", "x")
    with pytest.raises(AuthorizationError, match="the tenant 'common' would accept"):
        providers.entra("common", PLACE, client_id="app")


async def test_github_is_asked_whether_a_token_is_of_its_own_application() -> None:
    user = {"user": {"id": 7, "login": "ada"}, "scopes": ["books:write"]}
    case = asked("/applications/app/token", {"json": {"access_token": TOKEN}}, (200, user))
    at = listen()
    async with StubUpstream([case], environ=ENVIRON) as stub:
        auth = providers.github(at[1], client_id="app", client_secret="s3cret", api_url=stub.base_url)
        async with guarded(auth, at) as here:
            assert await said(here) == ["https://github.com/login/oauth", "7", "app", "books:write"]
            assert await said(here) == ["https://github.com/login/oauth", "7", "app", "books:write"]
            assert len(stub.requests) == 1, "it is asked once a minute for each token"
            stub.expect(asked("/applications/app/token", {}, (404, {})))
            assert await said(here, "of-another-application") == 401
            stub.expect(asked("/applications/app/token", {}, (500, {})))
            assert await said(here, "unlucky") == 503
        assert stub.mismatches == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, {"aud": "app", "sub": "7", "scope": "books:write", "exp": "9999999999"}), ["https://accounts.google.com", "7", "app", "books:write"]),
        ((200, {"aud": "another", "sub": "7", "exp": "9999999999"}), 401),
        ((200, {"aud": "app", "sub": "7", "exp": "1"}), 401),
        ((200, {"aud": "app", "sub": "7"}), 401),
        ((400, {"error": "invalid_token"}), 401),
        ((500, {}), 503),
    ],
    ids=["good", "of another client", "expired", "without an end", "unknown", "out of order"],
)  # fmt: skip
async def test_google_is_asked_whether_a_token_is_of_its_own_client(answer: tuple[int, Any], expected: Any) -> None:
    at = listen()
    async with StubUpstream([asked("/tokeninfo", {"form": [["access_token", TOKEN]]}, answer, basic=False)]) as stub:
        auth = providers.google(at[1], client_id="app", check_url=f"{stub.base_url}/tokeninfo")
        async with guarded(auth, at) as here:
            assert await said(here) == expected
        assert stub.mismatches == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"active": True, "sub": "ada", "aud": "{url}", "scope": "books:write"}, ["https://login.example", "ada", "", "books:write"]),
        ({"active": True, "sub": "ada", "aud": "https://other.example"}, 401),
        ({"active": True, "sub": "ada"}, 401),
        ({"active": False}, 401),
        ({}, 503),
    ],
    ids=["active", "for another server", "for nobody", "not active", "no answer"],
)  # fmt: skip
async def test_introspection_says_whether_a_token_is_active(answer: dict[str, Any], expected: Any) -> None:
    at = listen()
    answer = {name: at[1] if value == "{url}" else value for name, value in answer.items()}
    form = {"form": [["token", TOKEN], ["token_type_hint", "access_token"]]}
    async with StubUpstream([asked("/introspect", form, (200, answer))], environ=ENVIRON) as stub:
        auth = providers.introspection(
            "https://login.example", f"{stub.base_url}/introspect", at[1], client_id="app", client_secret="s3cret"
        )
        async with guarded(auth, at) as here:
            assert await said(here) == expected
        assert stub.mismatches == []


async def test_api_keys_let_in_who_has_one() -> None:
    at = listen()
    ada, bob = "ada-has-a-long-key-of-her-own", "bob-has-a-long-key-of-his-own"
    keys = {"ada": ada, "bob": f"sha256:{providers.sha256(bob.encode()).hexdigest()}"}
    async with guarded(providers.api_keys(at[1], keys, scopes={"ada": "books:write"}), at) as here:
        origin = at[1].removesuffix("/mcp")
        assert await said(here, ada) == [origin, "ada", "", "books:write"]
        assert await said(here, bob) == [origin, "bob", ""]
        assert await said(here, keys["bob"].removeprefix("sha256:")) == 401, "a digest is no key"
        assert (await here.call("write", bob)).status_code == 403
        assert (await here.call("whoami")).status_code == 401


@pytest.mark.parametrize(
    ("keys", "scopes", "words"),
    [
        ({"ada": "short"}, {}, "too easy to guess"),
        ({"ada": "x" * 24, "bob": "x" * 24}, {}, "ada and bob have the same key"),
        ({"ada": "x" * 24}, {"eve": "books:write"}, "eve has scopes but no key"),
    ],
    ids=["short", "shared", "scopes of nobody"],
)
def test_keys_that_protect_nothing_are_refused(keys: dict[str, str], scopes: dict[str, str], words: str) -> None:
    with pytest.raises(AuthorizationError, match=words):
        providers.api_keys(PLACE, keys, scopes=scopes)
