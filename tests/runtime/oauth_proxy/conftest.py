"""Server behind an OAuth proxy, provider, browser with cookies, and hand-written client, on real sockets."""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx

from mcpfactory_runtime import Context
from mcpfactory_runtime.oauth_proxy import OAuthProxy, oidc
from mcpfactory_runtime.types import Json
from tests.runtime.auth.conftest import Protected, books, listen, serving
from tests.runtime.client.peer import Asked, peer, reply
from tests.timeouts import TIMEOUT

BACK = "http://127.0.0.1:1/callback"
SECRET = "a-secret-that-is-long-enough"


@dataclass
class StubProvider:
    """Provider that logs in everybody as `person`. `refuses`: status of the token endpoint; `seconds`: token life."""

    person: Json = field(default_factory=lambda: {"sub": "7", "email": "ada@example.com", "email_verified": True})
    refuses: int = 0
    seconds: int = 0
    base: str = ""
    visits: list[dict[str, str]] = field(default_factory=list)
    exchanges: list[dict[str, str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    async def answer(self, asked: Asked, _send: Any) -> Any:
        path = urlsplit(asked.path).path
        if path == "/authorize":
            visit = dict(parse_qsl(urlsplit(asked.path).query))
            self.visits.append(visit)
            back = {"code": f"code-{len(self.visits)}", "state": visit["state"]}
            return 302, {"Location": f"{visit['redirect_uri']}?{urlencode(back)}"}, b""
        if path == "/token":
            form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
            self.exchanges.append(form)
            if self.refuses:
                return reply({"error": "invalid_grant"} if self.refuses == 400 else {}, self.refuses)
            if form["grant_type"] == "authorization_code":
                challenge = self.visits[int(form["code"].removeprefix("code-")) - 1]["code_challenge"]
                assert challenge == hashed(form["code_verifier"])
            number = len(self.exchanges)
            ends = {"expires_in": self.seconds, "refresh_token": f"theirs-again-{number}"} if self.seconds else {}
            return reply({"access_token": f"theirs-{number}", "token_type": "Bearer", **ends})
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        return (401, {}, b"") if token in self.gone else reply(self.person)


def hashed(verifier: str) -> str:
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


@dataclass
class Guarded(Protected):
    """A running server, with its proxy and provider. `http` is one browser."""

    provider: StubProvider = field(default_factory=StubProvider)
    proxy: OAuthProxy | None = None
    now: list[float] = field(default_factory=lambda: [1_800_000_000.0])

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    async def register(self, *uris: str, **more: Any) -> httpx.Response:
        return await self.http.post(f"{self.origin}/register", json={"redirect_uris": uris or (BACK,), **more})

    async def client(self, *uris: str) -> Attempt:
        """Return a registered client that has no token yet."""
        return Attempt(self, (await self.register(*uris, client_name="books app")).json()["client_id"])

    async def browse(self, url: str, decision: str = "allow", http: httpx.AsyncClient | None = None) -> str:
        """Follow the redirects of a browser from `url` to the client's redirect URL."""
        http = http or self.http
        answer = await http.get(url)
        while True:
            if answer.status_code == 200:
                answer = await self.decide(answer, decision, http)
            assert answer.is_redirect, (answer.status_code, answer.text)
            target = answer.headers["location"]
            if not target.startswith((self.origin, self.provider.base)):
                return target
            answer = await http.get(target)

    async def decide(self, page: httpx.Response, decision: str, http: httpx.AsyncClient) -> httpx.Response:
        """Submit the consent page with this decision."""
        action = re.search(r'action="([^"]+)"', page.text)
        sealed = re.search(r'name="request" value="([^"]+)"', page.text)
        assert action
        assert sealed
        form = {"request": sealed[1], "decision": decision}
        return await http.post(f"{self.origin}{action[1]}", data=form, headers={"Origin": self.origin})


@dataclass
class Attempt:
    """One login of one client, in which the test can change every value."""

    at: Guarded
    client_id: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def url(self, **changes: Any) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": BACK,
            "code_challenge": hashed(self.verifier),
            "code_challenge_method": "S256",
            "state": "mine",
            "resource": self.at.url,
            **changes,
        }
        return (
            f"{self.at.origin}/authorize?{urlencode({key: value for key, value in asked.items() if value is not None})}"
        )

    async def code(self, **changes: Any) -> str:
        return answer_of(await self.at.browse(self.url(**changes)))["code"]

    async def redeem(self, code: str, **changes: Any) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": BACK,
            "code_verifier": self.verifier,
            "resource": self.at.url,
            **changes,
        }
        sent = {key: value for key, value in form.items() if value is not None}
        return await self.at.http.post(f"{self.at.origin}/token", data=sent)

    async def tokens(self, **changes: Any) -> Json:
        answer = await self.redeem(await self.code(**changes))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refresh(self, token: str, **changes: Any) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id, **changes}
        return await self.at.http.post(f"{self.at.origin}/token", data=form)


def answer_of(url: str) -> dict[str, str]:
    """Return the parameters of the client's redirect URL."""
    return dict(parse_qsl(urlsplit(url).query))


@asynccontextmanager
async def guarded(
    *, http_options: Json | None = None, provider: StubProvider | None = None, **options: Any
) -> AsyncIterator[Guarded]:
    """Yield a running server behind a proxy; `options` are arguments of OAuthProxy."""
    stub = provider or StubProvider()
    port, url = listen()
    server = books()
    with port:
        async with peer(stub.answer) as there, httpx.AsyncClient(trust_env=False, timeout=TIMEOUT) as http:
            stub.base = there.url.removesuffix("/mcp")
            ends = {f"{name}_url": f"{stub.base}/{name}" for name in ("authorize", "token", "userinfo")}
            login = oidc(**ends, client_id="app", client_secret=SECRET)
            here = Guarded(url, http, None, stub)  # type: ignore[arg-type] # - there is no issuer but the proxy
            options = {"allow": ("@example.com",), "clock": lambda: here.now[0], **options}
            here.proxy = proxy = OAuthProxy(login, url, **options)

            @server.tool
            async def ask_provider(ctx: Context) -> str:
                """Say what the provider would be asked with."""
                assert ctx.principal is not None
                return await proxy.provider_token(ctx.principal)

            async with serving(server, port, auth=proxy, **(http_options or {})):
                yield here
