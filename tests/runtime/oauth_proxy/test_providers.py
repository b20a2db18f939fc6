"""GitHub and Google as they answer: a secret in the form, a refusal with status 200, numbers as text, a hosted domain."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from mcpfactory_runtime.oauth_proxy import OAuthProxy, github, google
from mcpfactory_runtime.oauth_proxy.login_providers import LoginProvider, ProviderRefusedError
from tests.runtime.client.peer import Asked, peer, reply
from tests.runtime.oauth_proxy.conftest import SECRET

pytestmark = pytest.mark.anyio

USER = {"user": {"id": 7, "login": "ada"}, "scopes": ["read:user"]}
TOKEN = {"aud": "app", "sub": "7", "exp": "9999999999", "email": "ada@example.com", "email_verified": "true"}
ACCOUNT = {"sub": "7", "email": "ada@example.com", "email_verified": True}
FORM = {"grant_type": "authorization_code", "code": "good"}


async def answer(asked: Asked, _send: Any) -> Any:
    if asked.path.endswith(("/login/oauth/access_token", "/token")) and "form" in asked.headers["content-type"]:
        form = dict(parse_qsl(asked.body.decode()))
        assert (form["client_id"], form["client_secret"]) == ("app", SECRET)
        assert asked.headers["accept"] == "application/json"
        return reply({"access_token": "theirs"} if form["code"] == "good" else {"error": "bad_verification_code"})
    if asked.path == "/applications/app/token":
        return reply(USER) if asked.json == {"access_token": "theirs"} else reply({}, 404)
    if asked.path.startswith("/userinfo"):  # after it, the domain of the account
        assert asked.headers["authorization"] == "Bearer theirs"
        hosted = asked.path.removeprefix("/userinfo/")
        return reply({**ACCOUNT, **({"hd": hosted} if hosted else {})})
    return reply(TOKEN if asked.body == b"access_token=theirs" else {}, 200 if b"theirs" in asked.body else 400)


async def test_github_says_who_logged_in() -> None:
    async with peer(answer) as there:
        base = there.url.removesuffix("/mcp")
        at = github(client_id="app", client_secret=SECRET, url=base, api_url=base)
        held = await at.redeem(FORM, 100.0)
        assert held == {"access": "theirs", "refresh": "", "expires": 0}
        assert await at.token_owner_claims("theirs") == {"sub": "7", "login": "ada"}
        assert await at.token_owner_claims("of-another-application") is None
        with pytest.raises(ProviderRefusedError, match="bad_verification_code"):
            await at.redeem({**FORM, "code": "bad"}, 100.0)


def google_at(url: str, hosted: str = "") -> LoginProvider:
    base = url.removesuffix("/mcp")
    places = {"token_url": f"{base}/token", "check_url": f"{base}/info", "userinfo_url": f"{base}/userinfo/{hosted}"}
    return google(client_id="app", client_secret=SECRET, **places)


async def test_google_says_who_logged_in() -> None:
    async with peer(answer) as there:
        at = google_at(there.url)
        assert (await at.redeem(FORM, 100.0))["access"] == "theirs"
        assert await at.token_owner_claims("theirs") == ACCOUNT
        assert await at.token_owner_claims("another") is None
        assert "access_type=offline" in at.login_url("back", "state", "challenge")


@pytest.mark.parametrize(
    ("hosted", "allow", "admitted"),
    [
        ("example.com", "@example.com", True),
        ("", "@example.com", False),  # a consumer account whose address was verified at that domain
        ("other.example", "@example.com", False),
        ("", "ada@example.com", True),
    ],
)
async def test_google_domain_admits_accounts_of_that_organization_only(hosted: str, allow: str, admitted: bool) -> None:
    async with peer(answer) as there:
        at = google_at(there.url, hosted)
        person = await at.token_owner_claims("theirs")
        assert person is not None
        assert OAuthProxy(at, "https://mcp.example/mcp", allow=(allow,))._may_call(person) is admitted
