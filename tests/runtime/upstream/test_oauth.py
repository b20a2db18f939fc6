"""OAuth for calls to an API: against an authorization server of oauthlib on loopback."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mcpfactory_runtime.oauth import Loopback, OAuthError, Visit
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import OAuthFlow, Operation, SecurityScheme, Upstream
from mcpfactory_runtime.upstream.login import log_in
from tests.runtime.upstream.provider import Provider, agree, provider
from tests.system import free_port

pytestmark = pytest.mark.anyio

READ = Operation("GET", "/api/things", security=(("oauth",),), scopes=(("oauth", ("read",)),))
WRITE = Operation("POST", "/api/things", security=(("oauth",),), scopes=(("oauth", ("write",)),))
VARIABLES = ("SHOP_TOKEN", "SHOP_CLIENT_ID", "SHOP_CLIENT_SECRET", "SHOP_REFRESH_TOKEN", "SHOP_SERVICE_ACCOUNT")
OWN = OAuthFlow("clientCredentials", token_url="/token")
CODE = OAuthFlow("authorizationCode", token_url="/token", authorization_url="/authorize")
DEVICE = OAuthFlow("deviceAuthorization", token_url="/token", device_url="/device")
OIDC = OAuthFlow("discovery", metadata_url="/.well-known/openid-configuration")
ACCOUNT = OAuthFlow("serviceAccount", token_url="/token")
ROBOT = {"SHOP_CLIENT_ID": "robot", "SHOP_CLIENT_SECRET": "robot-secret"}
APP = {"SHOP_CLIENT_ID": "app"}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # the library refuses http otherwise, also on loopback
    with provider() as running:
        yield running


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@asynccontextmanager
async def api(at: Provider, *flows: OAuthFlow, **environ: str) -> AsyncIterator[Upstream]:
    known = 5 if any(one.grant == "serviceAccount" for one in flows) else environ.pop("variables", 4)
    scheme = SecurityScheme("oauth", "oauth2", VARIABLES[: int(known)], flows=flows, scopes=("read", "write"))
    settings = {"MCPFACTORY_BASE_URL": at.url, **environ}
    async with Upstream("https://shop.invalid", [scheme], environ=settings, name="shop", clock=at.clock) as upstream:
        yield upstream


def stored(tokens: Path) -> Any:
    (file,) = tokens.glob("*.json")
    return json.loads(file.read_text())


def modes(tokens: Path) -> dict[str, int]:
    return {path.suffix or ".": stat.S_IMODE(path.stat().st_mode) for path in (tokens, *tokens.iterdir())}


async def login(upstream: Upstream, **options: Any) -> tuple[str, ...]:
    """The whole of it: the page is opened in a browser of the test, which comes back to our loopback."""
    pages: list[asyncio.Future[str]] = []
    loop = asyncio.get_running_loop()
    loopback = Loopback(
        options.pop("port", 0) or free_port(), lambda url: pages.append(loop.run_in_executor(None, agree, url))
    )

    async def visit(page: Visit) -> str:
        return await loopback(page.url)

    granted = await log_in(upstream.token_managers["oauth"], visit=visit, redirect_uri=loopback.redirect_uri, **options)
    assert "You can close this page" in await pages[0]
    return granted


async def refused(upstream: Upstream, operation: Operation = READ) -> str:
    with pytest.raises(ToolError) as caught:
        await upstream.send(operation, {})
    return str(caught.value)


async def test_login_a_person_agrees_in_a_browser_and_the_token_is_used(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        assert "mcpfactory login shop" in await refused(upstream)
        assert await login(upstream) == ("read", "write")
        result = await upstream.send(READ, {})
        await upstream.send(WRITE, {})
    assert result.structured == {"echo": "Bearer [redacted]"}
    assert at.grants == ["authorization_code"]
    assert {token for _, token in at.calls} == {stored(tokens)["access_token"]}
    assert "code_verifier" in at.exchanges[0]


async def test_refresh_a_login_outlives_its_token_with_rotated_refresh_tokens(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await login(upstream)
        first = stored(tokens)
        for _ in range(2):
            at.now += 61
            await upstream.send(READ, {})
    last = stored(tokens)
    assert at.grants == ["authorization_code", "refresh_token", "refresh_token"]
    assert at.refusals.total() == 0
    assert len({first["refresh_token"], last["refresh_token"], at.exchanges[-1]["refresh_token"]}) == 3
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as another:  # another process, say
        await another.send(READ, {})
    assert len(at.grants) == 3


@pytest.mark.parametrize("flow", [CODE, OWN], ids=["a login", "client credentials"])
@pytest.mark.parametrize("known", [True, False], ids=["known to us", "known to the API alone"])
async def test_expiry_under_32_parallel_calls_refreshes_once(
    at: Provider, tokens: Path, flow: OAuthFlow, known: bool
) -> None:
    who = APP if flow is CODE else ROBOT
    async with api(at, flow, MCPFACTORY_TOKEN_STORE=str(tokens), **who) as upstream:
        if flow is CODE:
            await login(upstream)
        await upstream.send(READ, {})
        if known:
            at.now += 61
        else:
            at.tokens.clear()
        before = len(at.grants)
        results = await asyncio.gather(*(upstream.send(READ, {}) for _ in range(32)))
    assert len(results) == 32
    assert at.grants[before:] == ["refresh_token" if flow is CODE else "client_credentials"]
    assert len(at.calls) == 33
    assert (at.refusals["GET"] == 0) is known


async def test_processes_that_share_a_login_refresh_once_between_them(at: Provider, tokens: Path) -> None:
    environ = {"MCPFACTORY_TOKEN_STORE": str(tokens), **APP}
    async with api(at, CODE, **environ) as one, api(at, CODE, **environ) as two:
        await login(one)
        await asyncio.gather(one.send(READ, {}), two.send(READ, {}))
        at.now += 61
        await asyncio.gather(*(each.send(READ, {}) for each in (one, two) * 4))
    assert at.grants == ["authorization_code", "refresh_token"]


async def test_a_call_that_may_act_twice_is_repeated_only_when_the_token_was_the_reason(at: Provider) -> None:
    async with api(at, OWN, **ROBOT) as upstream:
        await upstream.send(WRITE, {})
        at.tokens.clear()
        await upstream.send(WRITE, {})
        assert at.refusals["POST"] == 1
        at.tokens.clear()
        at.challenge = "Bearer"
        await refused(upstream, WRITE)
        assert at.refusals["POST"] == 2
        await upstream.send(WRITE, {})  # with the token that was got meanwhile
    assert at.grants == ["client_credentials"] * 3


async def test_a_client_asks_for_the_scopes_of_the_operation_and_keeps_those_it_had(at: Provider) -> None:
    async with api(at, OWN, **ROBOT) as upstream:
        await upstream.send(READ, {})
        await upstream.send(WRITE, {})
        await upstream.send(READ, {})
    assert [form["scope"] for form in at.exchanges] == ["read", "read write"]


async def test_a_login_without_the_scope_is_told_which_to_ask_for(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        assert await login(upstream, scopes=["read"]) == ("read",)
        told = await refused(upstream, WRITE)
    assert "write" in told
    assert "mcpfactory login shop` with `--scope`" in told


async def test_a_login_that_was_revoked_is_over_and_says_so(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await login(upstream)
        at.refresh_tokens.clear()
        at.now += 61
        told = await refused(upstream)
        assert "no_login" in told
        assert "mcpfactory login shop" in told
        with pytest.raises(ValueError, match="unpack"):
            stored(tokens)
        await login(upstream)
        await upstream.send(READ, {})


async def test_logging_out_forgets_the_login(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await login(upstream)
        await upstream.send(READ, {})
        assert await upstream.token_managers["oauth"].delete_login()
        assert not await upstream.token_managers["oauth"].delete_login()
        await refused(upstream)


async def test_openid_discovery_finds_the_endpoints(at: Provider, tokens: Path) -> None:
    async with api(at, OIDC, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await login(upstream)
        at.now += 61
        await upstream.send(READ, {})
    assert at.grants == ["authorization_code", "refresh_token"]


async def test_a_device_without_a_browser_is_logged_in_by_a_code(at: Provider, tokens: Path) -> None:
    shown: list[Visit] = []

    async def visit(page: Visit) -> str:
        shown.append(page)
        return ""

    async with api(at, DEVICE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await log_in(upstream.token_managers["oauth"], visit=visit, redirect_uri="", device=True)
        await upstream.send(READ, {})
    assert shown[0].url == f"{at.url}/device-page"
    assert shown[0].code
    assert len(at.exchanges) == 2  # the first time the person had not agreed yet


async def test_a_token_made_elsewhere_is_used_before_anything_else(at: Provider) -> None:
    at.tokens["by-hand"] = (at.now + 60, ["read"])
    async with api(at, OWN, SHOP_TOKEN="by-hand", **ROBOT) as upstream:
        await upstream.send(READ, {})
    assert at.grants == []


async def test_tokens_are_kept_where_only_their_owner_can_read_them(at: Provider, tokens: Path) -> None:
    async with api(at, CODE, MCPFACTORY_TOKEN_STORE=str(tokens), **APP) as upstream:
        await login(upstream)
    assert modes(tokens) == {".": 0o700, ".json": 0o600, ".lock": 0o600}


async def test_no_secret_is_in_any_error_or_repr(at: Provider, tokens: Path) -> None:
    environ = {"MCPFACTORY_TOKEN_STORE": str(tokens), "SHOP_CLIENT_ID": "robot", "SHOP_CLIENT_SECRET": "canary-secret"}
    async with api(at, OWN, CODE, **environ) as upstream:
        told = await refused(upstream)
        assert "invalid_client" in told
        keeper = upstream.token_managers["oauth"]
        with pytest.raises(OAuthError) as caught:
            await login(upstream)
        assert "canary-secret" not in told + repr(caught.value) + repr(keeper) + repr(keeper._grant)


async def test_an_authorization_server_must_be_public_or_permitted(at: Provider) -> None:
    elsewhere = OAuthFlow("clientCredentials", token_url=at.url.replace("127.0.0.1", "localhost") + "/token")
    async with api(at, elsewhere, **ROBOT) as upstream:
        assert "private or local address" in await refused(upstream)
    async with api(at, OAuthFlow("clientCredentials", token_url="http://8.8.8.8/token"), **ROBOT) as upstream:
        assert "unsafe_url" in await refused(upstream)
    assert at.exchanges == []


async def test_a_refresh_token_of_the_environment_needs_no_login(at: Provider, tokens: Path) -> None:
    at.refresh_tokens["from-elsewhere"] = ["read", "write"]
    given = {**ROBOT, "SHOP_REFRESH_TOKEN": "from-elsewhere", "MCPFACTORY_TOKEN_STORE": str(tokens)}
    async with api(at, CODE, OWN, **given) as upstream:
        await asyncio.gather(*(upstream.send(READ, {}) for _ in range(8)))
        await upstream.send(WRITE, {})
        assert at.grants == ["refresh_token"]
        at.now += 100
        result = await upstream.send(READ, {})  # with the one that was given in place of the first
        assert at.grants == ["refresh_token"] * 2
        assert [form["refresh_token"] == "from-elsewhere" for form in at.exchanges] == [True, False]
        assert result.structured == {"echo": "Bearer [redacted]"}
    assert list(tokens.parent.glob("tokens/*")) == []


@pytest.fixture(scope="module")
def account() -> tuple[str, str]:
    """A key pair: the private one and the public one, as PEM."""
    key = generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode(), key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.mark.parametrize("where", ["key", "document"])
async def test_the_key_of_a_service_account_is_exchanged_for_tokens(
    at: Provider, tmp_path: Path, account: tuple[str, str], where: str
) -> None:
    private, at.account_key = account
    data = {"type": "service_account", "client_email": "robot@x.test", "private_key": private, "private_key_id": "k1"}
    path = tmp_path / "key.json"
    path.write_text(json.dumps(data | ({"token_uri": f"{at.url}/token"} if where == "key" else {}), indent=2))
    async with api(at, CODE, ACCOUNT, SHOP_SERVICE_ACCOUNT_FILE=str(path)) as upstream:
        await asyncio.gather(*(upstream.send(READ, {}) for _ in range(8)))
        await upstream.send(WRITE, {})
        at.now += 100
        result = await upstream.send(READ, {})
    assert [(one["iss"], one["scope"], one["kid"]) for one in at.statements] == [
        ("robot@x.test", scope, "k1") for scope in ("read", "read write", "read write")
    ]
    assert {one["exp"] - one["iat"] for one in at.statements} == {3600}
    assert [sorted(form) for form in at.exchanges] == [["assertion", "grant_type"]] * 3
    assert result.structured == {"echo": "Bearer [redacted]"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "JSON key of a service account"),
        ('{"client_email": "a@b.test"}', "JSON key of a service account"),
        ('{"client_email": "a@b.test", "private_key": "never-shown"}', "cannot be read"),
        ('{"client_email": "a@b.test", "private_key": "x", "token_uri": "http://elsewhere.test/"}', "token_uri"),
    ],
)
async def test_a_key_that_cannot_be_used_is_named_and_not_shown(at: Provider, text: str, said: str) -> None:
    async with api(at, ACCOUNT, SHOP_SERVICE_ACCOUNT=text) as upstream:
        message = await refused(upstream)
    assert said in message
    assert "never-shown" not in message
    assert at.exchanges == []
