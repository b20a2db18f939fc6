"""Tokens that are bound to the client's key: a fresh proof for each request, with the nonces that servers want."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import jwt
import pytest

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.oauth import OAuth, OAuthError
from tests.runtime.client.authority import CALLBACK, Authority
from tests.runtime.client.peer import Asked, peer, reply

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@dataclass
class Bound(Authority):
    """One whose tokens are bound to a key; `nonces` are wanted by the token endpoint, and by the MCP server."""

    nonces: tuple[str, str] = ("", "")
    endless: bool = False
    proved: list[Json] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def document(self) -> Json:
        return {**super().document(), "dpop_signing_alg_values_supported": ["ES256"]}

    def read(self, asked: Asked) -> Json:
        """What a proof says, whose signature is that of the key in it."""
        proof = asked.headers["dpop"]
        head = jwt.get_unverified_header(proof)
        assert (head["typ"], head["alg"], set(head["jwk"])) == ("dpop+jwt", "ES256", {"kty", "crv", "x", "y"})
        claims: Json = jwt.decode(proof, jwt.PyJWK(head["jwk"]).key, algorithms=["ES256"])
        assert abs(claims["iat"] - time.time()) < 300
        assert claims["jti"] not in {one["jti"] for one in self.proved}
        self.proved.append(claims)
        self.keys.add(head["jwk"]["x"])
        return claims

    def exchange(self, asked: Asked) -> Any:
        claims = self.read(asked)
        assert (claims["htm"], claims["htu"], "ath" in claims) == ("POST", f"{self.base}/token", False)
        if self.nonces[0] and claims.get("nonce") != self.nonces[0]:
            return 400, {"DPoP-Nonce": self.nonces[0]}, b'{"error": "use_dpop_nonce"}'
        return super().exchange(asked)

    def mcp(self, asked: Asked) -> Any:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if not token:
            return (
                401,
                {"WWW-Authenticate": f'DPoP resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'},
                b"",
            )
        assert scheme == "DPoP"
        claims = self.read(asked)
        digest = urlsafe_b64encode(sha256(token.encode()).digest()).rstrip(b"=").decode()
        assert (claims["htm"], claims["htu"], claims["ath"]) == ("POST", f"{self.base}/mcp", digest)
        wanted = f"n{len(self.proved)}" if self.endless else self.nonces[1]
        if claims.get("nonce", "") != wanted:
            return 401, {"WWW-Authenticate": 'DPoP error="use_dpop_nonce"', "DPoP-Nonce": wanted}, b""
        asked.headers["authorization"] = f"Bearer {token}"
        return super().mcp(asked)


@asynccontextmanager
async def bound(**knobs: Any) -> AsyncIterator[Bound]:
    running = Bound(**{"token": {"token_type": "DPoP"}, **knobs})
    async with peer(running.answer) as server:
        running.server = server
        yield running


async def use(at: Bound, store: dict[str, Any] | None = None) -> None:
    assert at.server is not None
    login = OAuth(at.browse, redirect_uri=CALLBACK, store=store)
    async with Client.connect_http(at.server.url, oauth=login) as mcp:
        await mcp.call_tool("t")
        await mcp.call_tool("t")


async def test_each_request_has_a_fresh_proof_of_the_key_that_the_token_is_bound_to() -> None:
    async with bound() as at:
        await use(at)
        assert at.calls == ["server/discover", "tools/call", "tools/call"]
        assert (len(at.exchanges), len(at.proved), len(at.keys)) == (1, 4, 1)


async def test_the_nonces_of_both_servers_are_used() -> None:
    async with bound(nonces=("of the login", "of the server")) as at:
        await use(at)
        assert at.calls == ["server/discover", "tools/call", "tools/call"]
        assert len(at.exchanges) == 1
        origin = [one.get("nonce", "") for one in at.proved]
        assert origin == ["", "of the login", "of the login", "of the server", "of the server", "of the server"]


async def test_a_bound_token_that_nobody_asked_for_is_refused() -> None:
    class Odd(Authority):
        def exchange(self, asked: Asked) -> Any:
            assert "dpop" not in asked.headers
            return reply({"access_token": "x", "token_type": "DPoP"})

    running = Odd()
    async with peer(running.answer) as server:
        running.server = server
        with pytest.raises(OAuthError) as caught:
            async with Client.connect_http(server.url, oauth=OAuth(running.browse, redirect_uri=CALLBACK)):
                pass
        assert caught.value.code == "bad_response"
