"""Clients without a person: by their own key, by their platform's word, by the company's login."""

from __future__ import annotations

from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.oauth import IdentityProvider, OAuth, OAuthError, PrivateKey, Workload
from tests.runtime.client.authority import Authority, authority, basic

pytestmark = pytest.mark.anyio

SIGNED = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
JAG = "urn:ietf:params:oauth:token-type:id-jag"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@cache
def keys() -> tuple[str, str]:
    """A private key and its public half, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


async def call(at: Authority, login: OAuth) -> None:
    assert at.server is not None
    async with Client.connect_http(at.server.url, oauth=login) as mcp:
        await mcp.call_tool("t")


async def test_a_client_with_a_key_signs_for_the_authorization_server_alone() -> None:
    async with authority(metadata=SIGNED) as at:
        key = PrivateKey(keys()[0], key_id="k1")
        await call(at, OAuth(client_id="robot", private_key=key))
        (form,) = at.exchanges
        assert form["grant_type"] == "client_credentials"
        assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        claims = jwt.decode(form["client_assertion"], keys()[1], algorithms=["ES256"], audience=at.base)
        assert (claims["iss"], claims["sub"], claims["exp"] - claims["iat"]) == ("robot", "robot", 300)
        assert jwt.get_unverified_header(form["client_assertion"])["kid"] == "k1"
        assert at.proofs == [""]


async def test_each_statement_is_used_once() -> None:
    key, now = PrivateKey(keys()[0]), 1e9
    first, second = (
        jwt.decode(
            key.proof("robot", "https://as.example", now)["client_assertion"], options={"verify_signature": False}
        )
        for _ in range(2)
    )
    assert first["jti"] != second["jti"]


@pytest.mark.parametrize(
    ("metadata", "key", "code"),
    [
        ({"token_endpoint_auth_methods_supported": ["client_secret_basic"]}, None, "unsupported_method"),
        (SIGNED, PrivateKey("no key"), "bad_key"),
        (SIGNED, PrivateKey(keys()[0], "RS256"), "bad_key"),
    ],
    ids=["a server that takes none", "no key", "a key of another kind"],
)
async def test_a_key_that_cannot_be_used_is_named(metadata: dict[str, Any], key: PrivateKey | None, code: str) -> None:
    async with authority(metadata=metadata) as at:
        with pytest.raises(OAuthError) as caught:
            await call(at, OAuth(client_id="robot", private_key=key or PrivateKey(keys()[0])))
        assert (caught.value.code, at.exchanges) == (code, [])


async def test_a_workload_shows_the_word_of_its_platform() -> None:
    asked: list[str] = []
    async with authority(resource={"scopes_supported": ["read"]}) as at:

        def token(issuer: str) -> str:
            asked.append(issuer)
            return "platform-jwt"

        await call(at, OAuth(client_id="job", issuer=at.base, assertion=Workload(token)))
        assert asked == [at.base]
        resource = f"{at.base}/mcp"
        assert at.exchanges == [
            {"grant_type": BEARER, "assertion": "platform-jwt", "client_id": "job", "resource": resource}
        ]
        assert at.visits == []


async def test_what_was_refused_is_neither_tried_again_nor_in_another_way() -> None:
    async with authority(token={"error": "invalid_grant"}) as at:
        with pytest.raises(OAuthError) as caught:
            await call(at, OAuth(client_id="job", issuer=at.base, assertion=Workload(lambda _: "expired")))
        assert (caught.value.code, len(at.exchanges)) == ("invalid_grant", 1)


async def test_an_assertion_goes_to_the_authorization_server_that_it_is_for() -> None:
    with pytest.raises(ValueError, match="hint: give issuer"):
        OAuth(client_id="job", assertion=Workload(lambda _: "secret"))
    async with authority() as at:
        login = OAuth(client_id="", issuer="https://as.example", assertion=Workload(lambda _: "secret"))
        with pytest.raises(OAuthError) as caught:
            await call(at, login)
        assert (caught.value.code, at.exchanges) == ("issuer_mismatch", [])


async def test_the_companys_login_decides_which_servers_its_people_may_use() -> None:
    granted = {"access_token": "grant", "issued_token_type": JAG, "token_type": "N_A"}
    async with authority(token=granted) as provider, authority() as at:
        company = IdentityProvider(f"{provider.base}/token", lambda: "id-token", "desktop", "s")
        await call(at, OAuth(client_id="mcp", client_secret="t", issuer=at.base, assertion=company))
        assert provider.exchanges == [
            {
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "requested_token_type": JAG,
                "audience": at.base,
                "resource": f"{at.base}/mcp",
                "subject_token": "id-token",
                "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            }
        ]
        assert at.exchanges == [{"grant_type": BEARER, "assertion": "grant", "resource": f"{at.base}/mcp"}]
        assert (basic(provider.proofs[0]), basic(at.proofs[0])) == ("desktop:s", "mcp:t")


@pytest.mark.parametrize(
    ("answer", "code"),
    [({"error": "access_denied"}, "access_denied"), ({"issued_token_type": "other"}, "bad_response")],
    ids=["refused", "something else"],
)
async def test_without_the_companys_grant_nobody_else_is_asked(answer: dict[str, str], code: str) -> None:
    async with authority(token=answer) as provider, authority() as at:
        company = IdentityProvider(f"{provider.base}/token", lambda: "id-token", "desktop")
        with pytest.raises(OAuthError) as caught:
            await call(at, OAuth(client_id="mcp", issuer=at.base, assertion=company))
        assert (caught.value.code, at.exchanges) == (code, [])
