"""Who may call, by the variables of the environment alone."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.auth import Authorization, AuthorizationError, providers
from mcpfactory_runtime.oauth_proxy import OAuthProxy
from mcpfactory_runtime.server.auth_environment import SECRETS, read_auth_environment, remove_environment_secrets
from tests.runtime.auth.test_configuration import run
from tests.subtest_table import parametrize_subtests

PLACE = "https://mcp.example/mcp"
APPLICATION = {"CLIENT_ID": "app", "CLIENT_SECRET": "a-secret-that-is-long-enough", "ALLOW": "ada @example.com"}
ADDRESSES = {f"{name}_URL": f"https://id.example/{name}" for name in ("AUTHORIZE", "TOKEN", "USERINFO")}


def variables(provider: str, **given: str) -> dict[str, str]:
    return {
        f"MCPFACTORY_AUTH_{name}": value for name, value in {"PROVIDER": provider, "RESOURCE": PLACE, **given}.items()
    }


@pytest.mark.parametrize(
    ("provider", "given", "expected"),
    [
        ("keycloak", {"URL": "https://id.example", "REALM": "acme"}, providers.keycloak("https://id.example", "acme", PLACE)),
        ("auth0", {"DOMAIN": "acme.auth0.com"}, providers.auth0("acme.auth0.com", PLACE)),
        ("okta", {"DOMAIN": "acme.okta.com"}, providers.okta("acme.okta.com", PLACE)),
        ("entra", {"TENANT": "t", "CLIENT_ID": "app"}, providers.entra("t", PLACE, client_id="app")),
    ],
    ids=["keycloak", "auth0", "okta", "entra"],
)  # fmt: skip
def test_a_provider_is_described_by_variables(provider: str, given: dict[str, str], expected: Authorization) -> None:
    found = read_auth_environment(variables(provider, **given, SCOPES="a b", AUDIENCE="api://x"))
    assert isinstance(found, Authorization)
    assert (found.issuer, found.jwks_url, found.resource) == (expected.issuer, expected.jwks_url, PLACE)
    assert list(found.required_scopes) == ["a", "b"]
    assert set(found.audiences) == {*expected.audiences, "api://x"}


@pytest.mark.parametrize(
    ("provider", "more", "where"),
    [("github", {}, "https://github.com/login/oauth/authorize?"), ("google", {}, "https://accounts.google.com/"), ("oidc", ADDRESSES, "https://id.example/AUTHORIZE?")],
)  # fmt: skip
def test_a_login_goes_to_the_provider_that_is_named(provider: str, more: dict[str, str], where: str) -> None:
    found = read_auth_environment(variables(provider, **APPLICATION, **more, SCOPES="books:read"))
    assert isinstance(found, OAuthProxy)
    assert found._provider.login_url("back", "state", "challenge").startswith(where)
    assert found._may_call({"sub": "7", "login": "Ada"})
    assert not found._may_call({"sub": "7", "login": "eve"})
    assert list(found.authorization.required_scopes) == ["books:read"]


def test_keys_are_for_those_who_are_named() -> None:
    found = read_auth_environment(
        variables("keys", KEYS="ada=ada-has-a-long-key-of-her-own== ben=ben-has-a-long-key-of-his-own")
    )
    assert isinstance(found, Authorization)
    assert found.verify is not None
    assert found.verify("ada-has-a-long-key-of-her-own==")["sub"] == "ada"  # type: ignore[index] # - it is no coroutine
    assert found.verify("another") is None


@parametrize_subtests(
    "provider, given, words",
    [
        ("gitlab", {}, "unknown provider 'gitlab'"),
        ("github", {**APPLICATION, "ALLOW": ""}, "ALLOW is missing"),
        ("github", {**APPLICATION, "ALLOW": " "}, "permitted users are missing"),
        ("github", {"ALLOW": "ada"}, "CLIENT_ID is missing; MCPFACTORY_AUTH_CLIENT_SECRET is missing"),
        ("github", {**APPLICATION, "ISSUER": "https://x.example"}, "ISSUER is not for github"),
        ("github", {**APPLICATION, "RESOURCE": ""}, "RESOURCE is missing"),
        ("github", {**APPLICATION, "RESOURCE": "http://mcp.example/mcp"}, "without encryption"),
        ("entra", {"TENANT": "common", "CLIENT_ID": "app"}, "every tenant"),
        ("keys", {"KEYS": "ada"}, "one key for each name"),
        ("keys", {"KEYS": f"ada={'x' * 24} ada={'y' * 24}"}, "one key for each name"),
        ("keys", {"KEYS": "ada=short"}, "too easy to guess"),
        ("keys", {"KEYS": f"ada={'x' * 24}", "SCOPES": "a"}, "SCOPES cannot be used with keys"),
    ],
)
def test_half_a_provider_opens_nothing(provider: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(AuthorizationError, match=words) as caught:
        read_auth_environment(variables(provider, **given))
    assert "hint:" in str(caught.value)
    assert APPLICATION["CLIENT_SECRET"] not in str(caught.value)


def test_what_is_secret_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "x")
    remove_environment_secrets()
    assert not os.environ.keys() & set(SECRETS)


@pytest.mark.anyio
async def test_a_process_has_a_login_by_its_environment_alone() -> None:
    given: dict[str, Any] = variables("github", **APPLICATION)
    async with httpx.AsyncClient(trust_env=False) as http:
        with run(given) as process:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1].removesuffix("/mcp")
            try:
                said = await http.get(f"{url}/.well-known/oauth-authorization-server", headers={"Host": "mcp.example"})
                assert said.json()["authorization_endpoint"] == "https://mcp.example/authorize"
            finally:
                process.terminate()
