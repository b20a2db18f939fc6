"""Authorization server and protected MCP server on one real socket, which record their requests."""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.types import Json
from tests.runtime.client.peer import Asked, Peer, peer, reply, result

CALLBACK = "http://127.0.0.1:1/callback"


@dataclass
class Authority:
    """Both servers: settings first, recorded requests last.

    `resource` and `metadata` are merged over the documents (None leaves a document out); `needs` are the scopes of
    tools/call; `redirect` is merged over the parameters of the redirect, `token` over token responses.
    """

    resource: Json | None = field(default_factory=dict)
    metadata: Json | None = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)
    redirect: Json = field(default_factory=dict)
    token: Json = field(default_factory=dict)
    registered: Json = field(default_factory=lambda: {"client_id": "client-1"})
    grants_scopes: bool = True
    refresh_tokens: bool = False

    server: Peer | None = None
    visits: list[dict[str, str]] = field(default_factory=list)
    registrations: list[Json] = field(default_factory=list)
    exchanges: list[dict[str, str]] = field(default_factory=list)
    proofs: list[str] = field(default_factory=list)
    valid: dict[str, set[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        assert self.server is not None
        return self.server.url.removesuffix("/mcp")

    async def browse(self, url: str) -> str:
        """Agree as the person in the browser."""
        asked = dict(parse_qsl(urlsplit(url).query))
        self.visits.append({**asked, "page": url.split("?", 1)[0]})
        back = {"code": f"code-{len(self.visits)}", "state": asked["state"], **self.redirect}
        return (
            f"{asked['redirect_uri']}?{urlencode({name: value for name, value in back.items() if value is not None})}"
        )

    async def answer(self, asked: Asked, _send: Any) -> Any:
        path = urlsplit(asked.path).path
        if path == "/mcp":
            return self.mcp(asked)
        if path == "/.well-known/oauth-protected-resource/mcp" and self.resource is not None:
            document = {"resource": f"{self.base}/mcp", "authorization_servers": [self.base]}
            return reply({**document, **self.resource})
        if path == "/.well-known/oauth-authorization-server" and self.metadata is not None:
            return reply({**self.document(), **self.metadata})
        if path == "/register":
            self.registrations.append(asked.json)
            return reply(self.registered, 201 if "client_id" in self.registered else 400)
        if path == "/token":
            return self.exchange(asked)
        return 404, {}, b""

    def document(self) -> Json:
        ends = {f"{name}_endpoint": f"{self.base}/{path}" for name, path in ENDPOINTS.items()}
        return {"issuer": self.base, **ends, "code_challenge_methods_supported": ["S256"]}

    def exchange(self, asked: Asked) -> Any:
        form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        self.exchanges.append(form)
        self.proofs.append(asked.headers.get("authorization", ""))
        if form["grant_type"] == "authorization_code":
            visit = self.visits[-1]
            challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
            assert (visit["code_challenge"], visit["code_challenge_method"]) == (challenge, "S256")
            assert (form["code"], form["redirect_uri"]) == (f"code-{len(self.visits)}", visit["redirect_uri"])
        if form.get("refresh_token") == "used-up":
            return reply({"error": "invalid_grant"}, 400)
        name = f"token-{len(self.exchanges)}"
        asked_for = form.get("scope") or (self.visits[-1].get("scope", "") if self.visits else "")
        self.valid[name] = set(asked_for.split()) if self.grants_scopes else set()
        refresh = {"refresh_token": f"refresh-{len(self.exchanges)}"} if self.refresh_tokens else {}
        answer = {"access_token": name, "token_type": "Bearer", "expires_in": 3600, **refresh, **self.token}
        return reply(answer, 400 if "error" in answer else 200)

    def mcp(self, asked: Asked) -> Any:
        held = asked.headers.get("authorization", "").removeprefix("Bearer ")
        place = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
        head = f"Bearer {place}" if self.resource is not None else "Bearer"
        if held not in self.valid:
            return 401, {"WWW-Authenticate": f'Basic realm="x", {head}'}, b""
        method = asked.json["method"]
        wanted = self.needs.get(method, "")
        if not set(wanted.split()) <= self.valid[held]:
            told = f'{head}, error="insufficient_scope", scope="{wanted}"'
            return 403, {"WWW-Authenticate": told}, b""
        self.calls.append(method)
        if method == "server/discover":
            return result(asked, {"supportedVersions": [LATEST.name], "capabilities": {}})
        return result(asked, {"content": [], "resultType": "complete"})


ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@asynccontextmanager
async def authority(**knobs: Any) -> AsyncIterator[Authority]:
    """Yield running servers."""
    running = Authority(**knobs)
    async with peer(running.answer) as server:
        running.server = server
        yield running


def basic(header: str) -> str:
    """Return the decoded value of a Basic header."""
    return b64decode(header.removeprefix("Basic ")).decode()


def dumps(value: Any) -> str:
    """Return canonical JSON, for comparisons."""
    return json.dumps(value, sort_keys=True)
