"""Those who want a token that is not theirs: with codes, states and cookies of others, other addresses, tokens that were used."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.client.http import fetch_public
from mcpfactory_runtime.oauth_proxy import OAuthProxy, google
from mcpfactory_runtime.oauth_proxy.clients import (
    OAuthRequestError,
    is_client_metadata_url,
    is_registered_redirect,
    read_client_metadata,
    read_client_registration,
)
from mcpfactory_runtime.oauth_proxy.grants import TokenKeys
from tests.runtime.auth.conftest import books
from tests.runtime.client.peer import Asked, peer, reply
from tests.runtime.oauth_proxy.conftest import BACK, SECRET, Attempt, answer_of, guarded, hashed
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.anyio


# --- codes ---


async def test_a_code_is_of_no_use_without_all_that_belongs_to_it() -> None:
    lacking: tuple[dict[str, Any], ...] = (
        {"code_verifier": None},
        {"code_verifier": secrets.token_urlsafe(48)},
        {"code_verifier": ""},
        {"redirect_uri": "http://127.0.0.1:2/callback"},
        {"redirect_uri": None},
    )
    async with guarded() as at:
        app = await at.client()
        for changes in lacking:
            code = await app.code()
            refused = await app.redeem(code, **changes)
            assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant"), changes
            assert (await app.redeem(code)).status_code == 400, "there is one try"
        assert (await app.redeem("invented")).json()["error"] == "invalid_grant"


async def test_a_code_that_is_shown_twice_ends_what_it_gave() -> None:
    async with guarded() as at:
        app = await at.client()
        code = await app.code()
        tokens = (await app.redeem(code)).json()
        assert (await at.call("whoami", tokens["access_token"])).status_code == 200
        assert (await app.redeem(code)).json()["error"] == "invalid_grant"
        assert (await at.call("whoami", tokens["access_token"])).status_code == 401
        assert (await app.refresh(tokens["refresh_token"])).status_code == 400


# --- refresh tokens ---


async def test_a_refresh_token_that_is_used_twice_ends_the_grant() -> None:
    async with guarded() as at:
        app = await at.client()
        first = await app.tokens()
        second = (await app.refresh(first["refresh_token"])).json()
        assert (await app.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await app.refresh(second["refresh_token"])).status_code == 400
        assert (await at.call("whoami", second["access_token"])).status_code == 401


async def test_a_refresh_token_is_for_its_client_and_no_other_token_is_one() -> None:
    async with guarded() as at:
        app, thief = await at.client(), await at.client("https://other.example/back")
        tokens = await app.tokens()
        assert (await thief.refresh(tokens["refresh_token"])).status_code == 400
        assert (await app.refresh(tokens["access_token"])).status_code == 400
        assert (await at.call("whoami", tokens["refresh_token"])).status_code == 401
        assert (await at.call("whoami", app.client_id)).status_code == 401
        at.now[0] += 31 * 86_400
        assert (await app.refresh(tokens["refresh_token"])).status_code == 400


# --- where the answer goes ---


WRONG: list[tuple[dict[str, Any], int, str | None]] = [
    ({"redirect_uri": "https://evil.example/"}, 400, None),
    ({"redirect_uri": BACK + "/more"}, 400, None),
    ({"redirect_uri": BACK + "?a=b"}, 400, None),
    ({"redirect_uri": "http://127.0.0.1.evil.example:1/callback"}, 400, None),
    ({"redirect_uri": "http://127.0.0.1@evil.example/callback"}, 400, None),
    ({"redirect_uri": None}, 400, None),
    ({"client_id": "invented"}, 400, None),
    ({"code_challenge": None}, 303, "invalid_request"),
    ({"code_challenge_method": "plain"}, 303, "invalid_request"),
    ({"code_challenge": "short"}, 303, "invalid_request"),
    ({"response_type": "token"}, 303, "unsupported_response_type"),
    ({"resource": "https://other.example/mcp"}, 303, "invalid_target"),
]


async def test_a_request_that_is_wrong_goes_nowhere_it_should_not() -> None:
    async with guarded() as at:
        app = await at.client()
        for changes, status, error in WRONG:
            answer = await at.http.get(app.url(**changes))
            assert answer.status_code == status, changes
            if error is None:
                assert "location" not in answer.headers
            else:
                said = answer_of(answer.headers["location"])
                assert (said["error"], said["state"], said["iss"]) == (error, "mine", at.origin)
        assert at.provider.visits == []


@parametrize_subtests(
    "registered, uri, same",
    [
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:65000/cb", True),
        ("http://localhost/cb", "http://localhost:9/cb", True),
        ("http://[::1]:1/cb", "http://[::1]:2/cb", True),
        ("http://127.0.0.1:1/cb", "http://localhost:1/cb", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb/", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb?x", False),
        ("http://127.0.0.1:1/cb", "http://evil@127.0.0.1:1/cb", False),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:99999/cb", False),
        ("http://127.0.0.1:1/cb", "https://127.0.0.1:1/cb", False),
        ("https://app.example/cb", "https://app.example:444/cb", False),
        ("https://app.example/cb", "https://app.example/CB", False),
        ("https://app.example/cb", "https://APP.example/cb", False),
        ("https://a.example/cb", "https://a.example/cb", True),
        ("cursor://x/cb", "cursor://x/cb", True),
    ],
)
def test_addresses_are_compared_exactly_but_for_ports_of_this_machine(registered: str, uri: str, same: bool) -> None:
    assert is_registered_redirect([registered], uri) is same


@parametrize_subtests(
    "uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "JavaScript:alert(1)",
        "http://app.example/cb",
        "https://app.example/cb#part",
        "https://user@app.example/cb",
        "https:///cb",
        "https://app.example/c\r\nSet-Cookie: x",
        "https://app.example/ü",
        'https://app.example/"onload',
        "/cb",
        "",
        "https://app.example/" + "x" * 600,
    ],
    name=lambda uri: uri[:24],
)
def test_addresses_that_no_code_may_go_to_are_not_registered(uri: str) -> None:
    with pytest.raises(OAuthRequestError) as caught:
        read_client_registration({"redirect_uris": [BACK, uri]})
    assert caught.value.code == "invalid_redirect_uri"


async def test_registrations_are_bounded_and_leave_nothing_behind() -> None:
    async with guarded() as at:
        refused = await at.register(*(f"https://a.example/{n}" for n in range(11)))
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")
        assert (await at.register(*(f"https://a.example/{n}{'x' * 400}" for n in range(6)))).status_code == 400
        place = f"{at.origin}/register"
        assert (await at.http.post(place, json=["x"])).json()["error"] == "invalid_client_metadata"
        assert (await at.http.post(place, content=b"x" * 70_000)).status_code == 413
        assert (await at.http.get(place)).status_code == 405
        long = (await at.register(BACK, client_name="<b>x" + "y" * 500)).json()
        assert len(long["client_name"]) == 80
        page = (await at.http.get(Attempt(at, long["client_id"]).url())).text
        assert "&lt;b&gt;x" in page
        assert "<b>" not in page


# --- the browser ---


def browser() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=TIMEOUT)


async def test_nothing_reaches_the_provider_without_a_yes() -> None:
    async with guarded() as at:
        said = answer_of(await at.browse((await at.client()).url(), decision="deny"))
        assert (said["error"], said["state"]) == ("access_denied", "mine")
        assert at.provider.visits == []


async def test_a_page_agrees_only_in_the_browser_that_was_shown_it() -> None:
    """Another site cannot press the button: it has neither the page nor the cookie of the victim."""
    async with guarded() as at, browser() as victim:
        page = await at.http.get((await at.client()).url())
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["x-frame-options"] == "DENY"
        assert re.search("HttpOnly; SameSite=Lax", page.headers["set-cookie"])
        assert (await at.decide(page, "allow", victim)).status_code == 400
        await victim.get((await at.client()).url())  # which has a cookie of its own now
        assert (await at.decide(page, "allow", victim)).status_code == 400
        sealed = re.search(r'name="request" value="([^"]+)"', page.text)
        assert sealed
        form = {"request": sealed[1], "decision": "allow"}
        other = {"Origin": "https://evil.example"}
        assert (await at.http.post(f"{at.origin}/auth/consent", data=form, headers=other)).status_code == 403
        at.now[0] += 601
        assert (await at.decide(page, "allow", at.http)).status_code == 400
        assert at.provider.visits == []


async def test_the_way_back_must_end_in_the_browser_where_it_began() -> None:
    """An attacker agrees to a client of his own and sends a victim, who is logged in at the provider, on the rest of the way."""
    async with guarded() as at, browser() as victim:
        page = await at.http.get((await at.client()).url())
        onward = (await at.decide(page, "allow", at.http)).headers["location"]
        back = (await victim.get(onward)).headers["location"]
        assert back.startswith(f"{at.origin}/auth/callback")
        assert (await victim.get(back)).status_code == 400
        await victim.get((await at.client()).url())
        assert (await victim.get(back)).status_code == 400
        assert at.provider.exchanges == []
        assert (await at.http.get(back)).status_code == 303, "and it was not used up"


async def test_a_state_counts_once_and_for_a_time() -> None:
    async with guarded() as at:
        page = await at.http.get((await at.client()).url())
        back = (await at.http.get((await at.decide(page, "allow", at.http)).headers["location"])).headers["location"]
        assert (await at.http.get(back.replace("state=", "state=x"))).status_code == 400
        assert "code" in answer_of((await at.http.get(back)).headers["location"])
        assert (await at.http.get(back)).status_code == 400
        assert len(at.provider.exchanges) == 1
        page = await at.http.get((await at.client()).url())
        back = (await at.http.get((await at.decide(page, "allow", at.http)).headers["location"])).headers["location"]
        at.now[0] += 1201
        assert (await at.http.get(back)).status_code == 400


@pytest.mark.parametrize("bound", ["_LOGINS", "_LOGINS_OF_ONE"])
async def test_logins_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(f"mcpfactory_runtime.oauth_proxy.proxy.{bound}", 2)
    async with guarded() as at:
        app = await at.client()
        for status in (303, 303, 503):
            page = await at.http.get(app.url())
            assert (await at.decide(page, "allow", at.http)).status_code == status
        at.now[0] += 601
        page = await at.http.get(app.url())
        assert (await at.decide(page, "allow", at.http)).status_code == 303


# --- clients that are described by a document ---

APP = "https://app.example/client.json"
ABOUT: dict[str, Any] = {"client_id": APP, "client_name": "an app", "redirect_uris": [BACK]}


class Web:
    """Documents by their URL; counts who asks."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents, self.asked = documents, 0

    async def __call__(self, url: str) -> bytes:
        self.asked += 1
        if url not in self.documents:
            raise OSError(f"{url} answered 404")
        return json.dumps(self.documents[url]).encode()


async def test_a_client_may_be_described_by_the_document_at_its_id() -> None:
    web = Web({APP: ABOUT})
    async with guarded(fetch=web) as at:
        app = Attempt(at, APP)
        page = (await at.http.get(app.url())).text
        assert "an app" in page
        assert APP in page
        tokens = await app.tokens()
        assert (await at.call("whoami", tokens["access_token"])).status_code == 200
        assert (await app.refresh(tokens["refresh_token"])).status_code == 200
        assert (await at.http.get(app.url(redirect_uri="https://evil.example/"))).status_code == 400
        assert web.asked == 1
        at.now[0] += 301
        del web.documents[APP]
        assert (await at.http.get(app.url())).status_code == 400, "the document is gone"
        assert web.asked == 2


@parametrize_subtests(
    "changes",
    [
        {"client_id": "https://app.example/other.json"},
        {"client_id": None},
        {"client_secret": "x"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": None},
    ],
)
def test_a_document_that_does_not_fit_describes_nobody(changes: dict[str, Any]) -> None:
    assert read_client_metadata(APP, ABOUT) == ("an app", (BACK,))
    with pytest.raises(OAuthRequestError):
        read_client_metadata(APP, {**ABOUT, **changes})


@parametrize_subtests(
    "client_id, fits",
    [
        (APP, True),
        ("https://app.example:8443/client", True),
        ("http://app.example/client", False),
        ("https://app.example", False),
        ("https://app.example/", False),
        ("https://app.example/a/../b", False),
        ("https://app.example/a#b", False),
        ("https://me@app.example/a", False),
        ("https://APP.example/a", False),
        ("https://app.example:/a", False),
        ("https://app.example:x/a", False),
        ("https:///a", False),
    ],
)
def test_the_url_of_a_document_has_one_spelling(client_id: str, fits: bool) -> None:
    assert is_client_metadata_url(client_id) is fits


async def test_strangers_cannot_make_the_server_fetch_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpfactory_runtime.oauth_proxy.clients._MOST_FETCHES", 2)
    web = Web({APP: ABOUT})
    async with guarded(fetch=web) as at:
        assert (await at.http.get(Attempt(at, APP).url())).status_code == 200
        for number in range(3):
            assert (await at.http.get(Attempt(at, f"{APP}?{number}").url())).status_code == 400
        assert web.asked == 2
        at.now[0] += 61
        await at.http.get(Attempt(at, f"{APP}?more").url())
        assert web.asked == 3


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://169.254.169.254/x"]
)
async def test_documents_of_private_addresses_are_not_fetched(url: str) -> None:
    with pytest.raises(OSError, match="private or local"):
        await fetch_public(url)


async def test_a_document_is_fetched_from_the_address_that_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is resolved once: it cannot lead elsewhere a moment later."""
    names: list[str] = []

    async def resolve(url: str) -> list[str]:
        names.append(url)
        return ["127.0.0.1"]

    async def answer(asked: Asked, _send: Any) -> Any:
        return reply({"host": asked.headers["host"]})

    monkeypatch.setattr("mcpfactory_runtime.client.http._addresses", resolve)
    monkeypatch.setattr("mcpfactory_runtime.client.http.is_public", lambda address: address == "127.0.0.1")
    async with peer(answer) as there:
        url = there.url.replace("127.0.0.1", "app.example")
        assert json.loads(await fetch_public(url)) == {"host": url.split("/")[2]}
        assert names == [url]


# --- keys and configuration ---


async def test_over_https_the_cookie_is_for_its_host_alone_and_its_own_page_may_send_the_form() -> None:
    """Below a path, too: the endpoints answer there, and at the root for a proxy that takes the path away."""
    proxy = OAuthProxy(google(client_id="app", client_secret=SECRET), "https://tools.example/books/mcp", allow=("*",))
    assert proxy.issuer == "https://tools.example/books"
    transport = httpx.ASGITransport(books().http_app(auth=proxy))
    async with httpx.AsyncClient(transport=transport, base_url="https://tools.example") as http:
        said = (await http.get("/.well-known/oauth-authorization-server/books")).json()
        registered = await http.post(said["registration_endpoint"], json={"redirect_uris": [BACK]})
        asked = {
            "response_type": "code",
            "client_id": registered.json()["client_id"],
            "redirect_uri": BACK,
            "code_challenge": hashed("v" * 43),
            "code_challenge_method": "S256",
        }
        page = await http.get("/authorize", params=asked)
        assert re.fullmatch(
            r"__Host-[\w-]+=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax; Max-Age=1200; Secure", page.headers["set-cookie"]
        )
        assert 'action="/books/auth/consent"' in page.text
        sealed = re.search(r'name="request" value="([^"]+)"', page.text)
        assert sealed
        form = {"request": sealed[1], "decision": "allow"}
        for origin, status in (("https://tools.example", 303), ("https://evil.example", 403)):
            sent = await http.post("/books/auth/consent", data=form, headers={"Origin": origin})
            assert sent.status_code == status


async def test_a_code_is_for_the_client_that_asked() -> None:
    async with guarded() as at:
        app, thief = await at.client(), await at.client()
        thief = Attempt(at, (await at.register(client_name="thief")).json()["client_id"], app.verifier)
        assert (await thief.redeem(await app.code())).json()["error"] == "invalid_grant"
        assert (await app.redeem(await app.code(), client_id="invented")).json()["error"] == "invalid_client"
        assert (await app.redeem(await app.code(), resource="https://other.example/mcp")).status_code == 400


def test_each_kind_of_token_and_each_server_has_its_own_key() -> None:
    keys = TokenKeys(SECRET, "https://a.example")
    token = keys.sign("refresh", {"exp": 10})
    assert keys.read("refresh", token) == {"exp": 10}
    assert keys.read("at+jwt", token) is None
    assert keys.read("refresh", token, 10.0) is None
    assert TokenKeys(SECRET, "https://b.example").read("refresh", token) is None
    assert TokenKeys(SECRET + "x", "https://a.example").read("refresh", token) is None
    assert keys.read("refresh", f"eyJhbGciOiJub25lIn0.{token.split('.')[1]}.") is None
    vault = keys.encrypt({"access": "theirs"}, "grant-1")
    assert keys.decrypt(vault, "grant-1") == {"access": "theirs"}
    assert keys.decrypt(vault, "grant-2") is None


async def test_of_two_who_redeem_a_code_at_once_one_gets_tokens_at_most() -> None:
    async with guarded() as at:
        app = await at.client()
        code = await app.code()
        answers = await asyncio.gather(*(app.redeem(code) for _ in range(5)))
        given = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
        assert len(given) <= 1
        for token in given:
            assert (await at.call("whoami", token)).status_code == 401


async def test_a_parameter_that_is_there_twice_is_refused() -> None:
    async with guarded() as at:
        app = await at.client()
        assert (await at.http.get(f"{app.url()}&state=another")).status_code == 400
        assert (await at.http.get(app.url())).status_code == 200
