"""Clients without a person: by their own key, by their platform's word, by the company's login."""

from __future__ import annotations

from functools import cache

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.oauth.grants import IdentityProvider, PrivateKey, Workload
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
