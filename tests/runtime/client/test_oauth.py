"""Authorization of the client: with an authorization server on a real socket, and a person who always agrees."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.client import Client, http
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from mcpfactory_runtime.types import Json
from tests.runtime.client.authority import CALLBACK, Authority, authority, basic

pytestmark = pytest.mark.anyio


def oauth(at: Authority, **options: Any) -> OAuth:
    return OAuth(options.pop("visit", at.browse), **{"redirect_uri": CALLBACK, **options})


def client(at: Authority, **options: Any) -> Client:
    assert at.server is not None
    return Client.connect_http(at.server.url, oauth=options.pop("oauth", None) or oauth(at), **options)


async def test_a_token_is_got_at_the_first_refusal_and_used_from_then_on() -> None:
    async with authority() as at, client(at) as mcp:
        await mcp.call_tool("t")
        assert at.calls == ["server/discover", "tools/call"]
        assert "token-1" not in repr(mcp.transcript.to_list())
    assert len(at.visits) == len(at.exchanges) == len(at.registrations) == 1
    assert at.visits[0]["resource"] == at.exchanges[0]["resource"] == f"{at.base}/mcp"
    assert "scope" not in at.visits[0]
    assert at.registrations[0]["redirect_uris"] == [CALLBACK]
    assert at.registrations[0]["application_type"] == "native"
    assert at.exchanges[0]["client_id"] == "client-1"


async def test_a_missing_scope_is_asked_for_together_with_those_asked_for_before() -> None:
    scopes: Json = {"scopes_supported": ["read"]}
    async with authority(resource=scopes, needs={"tools/call": "write"}) as at, client(at) as mcp:
        await mcp.call_tool("t")
    assert [visit.get("scope") for visit in at.visits] == ["read", "read write"]


async def test_a_refresh_token_spares_the_person_and_a_used_up_one_does_not() -> None:
    now = 1_000.0
    store: dict[str, Json] = {}
    async with authority(refresh_tokens=True) as at:
        login = oauth(at, store=store, clock=lambda: now)
        async with client(at, oauth=login) as mcp:
            now += 3595
            await mcp.call_tool("t")
            assert [form["grant_type"] for form in at.exchanges] == ["authorization_code", "refresh_token"]
            assert at.exchanges[-1]["refresh_token"] == "refresh-1"
            assert len(at.visits) == 1
            store[f"tokens {at.base}/mcp"]["refresh_token"] = "used-up"
            now += 3600
            await mcp.call_tool("t")
        assert len(at.visits) == 2
        async with client(at, oauth=oauth(at, store=store, clock=lambda: now)):
            assert len(at.visits) == 2  # the store is all there is to it
        assert len(at.registrations) == 1


async def test_an_authorization_server_never_sees_the_registration_of_another() -> None:
    async with authority(registered={"client_id": "first"}) as one, authority(registered={"client_id": "other"}) as two:
        async with client(one) as mcp:
            one.valid.clear()
            one.resource = {"authorization_servers": [two.base]}
            two.redirect = {"iss": two.base}

            async def other(url: str) -> str:
                back = await (two if url.startswith(two.base) else one).browse(url)
                one.valid["token-1"] = set()
                return back

            mcp.channel.oauth._visit = other  # type: ignore[attr-defined]
            await mcp.call_tool("t")
        assert two.registrations
        assert two.visits[0]["client_id"] == two.exchanges[0]["client_id"] == "other"


@pytest.mark.parametrize(
    ("methods", "registered", "proof", "sent"),
    [
        (["client_secret_basic"], {"client_secret": "s:1"}, "client-1:s%3A1", {}),
        (["client_secret_post"], {"client_secret": "s1"}, "", {"client_id": "client-1", "client_secret": "s1"}),
        (["none"], {"client_secret": "s1"}, "", {"client_id": "client-1"}),
        (None, {"client_secret": "s1"}, "client-1:s1", {}),
        (None, {}, "", {"client_id": "client-1"}),
        (
            ["client_secret_basic", "client_secret_post"],
            {"client_secret": "s1", "token_endpoint_auth_method": "client_secret_post"},
            "",
            {"client_id": "client-1", "client_secret": "s1"},
        ),
    ],
)
async def test_the_client_proves_itself_as_the_authorization_server_wants(
    methods: Any, registered: Json, proof: str, sent: Json
) -> None:
    metadata = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
    async with authority(metadata=metadata, registered={"client_id": "client-1", **registered}) as at, client(at):
        assert basic(at.proofs[0]) == proof
        form = {name: at.exchanges[0][name] for name in ("client_id", "client_secret") if name in at.exchanges[0]}
        assert form == sent


async def test_without_a_browser_the_client_acts_on_its_own_behalf() -> None:
    async with authority(resource={"scopes_supported": ["read"]}) as at:
        login = OAuth(client_id="robot", client_secret="s", issuer=at.base)
        async with client(at, oauth=login) as mcp:
            await mcp.call_tool("t")
        assert at.exchanges == [{"grant_type": "client_credentials", "scope": "read", "resource": f"{at.base}/mcp"}]
        assert basic(at.proofs[0]) == "robot:s"


async def test_given_scopes_replace_those_of_the_metadata_and_scopes_of_a_refusal_are_added() -> None:
    async with authority(resource={"scopes_supported": ["read", "burn"]}, needs={"tools/call": "write"}) as at:
        login = OAuth(client_id="robot", client_secret="s", issuer=at.base, scopes=["read"])
        async with client(at, oauth=login) as mcp:
            await mcp.call_tool("t")
        assert [form["scope"] for form in at.exchanges] == ["read", "read write"]


@pytest.mark.parametrize("listed", ["", "/"])
async def test_a_slash_instead_of_an_empty_path_does_not_make_another_issuer(listed: str) -> None:
    """Google's issuer has no slash, and many servers list it with a slash."""
    other = "" if listed else "/"
    async with authority() as at:
        at.resource = {"authorization_servers": ["https://as.example", f"{at.base}{listed}"]}
        at.metadata = {"issuer": f"{at.base}{other}"}
        at.redirect = {"iss": f"{at.base}{other}"}
        login = oauth(at, client_id="me", client_secret="s", issuer=f"{at.base}{listed}")
        async with client(at, oauth=login) as mcp:
            await mcp.call_tool("t")
        at.redirect = {"iss": f"{at.base}{listed}"}
        with pytest.raises(OAuthError, match="RFC 9207"):  # the parameter must equal the issuer exactly
            await client(at, oauth=oauth(at, issuer=at.base)).__aenter__()
        at.metadata = {"issuer": f"{at.base}/tenant"}
        with pytest.raises(OAuthError, match="has another issuer"):
            await client(at, oauth=oauth(at, issuer=at.base)).__aenter__()


@pytest.mark.parametrize(
    ("knobs", "code"),
    [
        ({"resource": {"resource": "https://evil.example/mcp"}}, "resource_mismatch"),
        ({"resource": {"resource": None}}, "resource_mismatch"),
        ({"resource": {"authorization_servers": []}}, "bad_metadata"),
        ({"resource": {"authorization_servers": ["http://as.example"]}}, "unsafe_url"),
        ({"resource": {"authorization_servers": ["https://me@as.example"]}}, "unsafe_url"),
        ({"metadata": None}, "bad_metadata"),
        ({"metadata": {"issuer": "https://honest.example"}}, "issuer_mismatch"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "no_pkce"),
        ({"metadata": {"code_challenge_methods_supported": None}}, "no_pkce"),
        ({"metadata": {"token_endpoint": "file:///etc/passwd"}}, "unsafe_url"),
        (
            {
                "metadata": {"token_endpoint_auth_methods_supported": ["private_key_jwt"]},
                "registered": {"client_id": "a", "client_secret": "b"},
            },
            "unsupported_method",
        ),
        ({"metadata": {"registration_endpoint": None}}, "no_registration"),
        ({"registered": {"error": "invalid_redirect_uri"}}, "invalid_redirect_uri"),
        ({"redirect": {"state": "other"}}, "state_mismatch"),
        ({"redirect": {"state": None}}, "state_mismatch"),
        ({"redirect": {"iss": "https://evil.example"}}, "issuer_mismatch"),
        ({"redirect": {"iss": "https://evil.example", "error": "access_denied"}}, "issuer_mismatch"),
        ({"metadata": {"authorization_response_iss_parameter_supported": True}}, "issuer_mismatch"),
        ({"redirect": {"error": "access_denied", "code": None}}, "access_denied"),
        ({"redirect": {"code": None}}, "bad_response"),
        ({"token": {"error": "invalid_grant"}}, "invalid_grant"),
        ({"token": {"access_token": ""}}, "bad_response"),
        ({"token": {"token_type": "mac"}}, "bad_response"),
    ],
)
async def test_what_must_not_be_trusted_ends_the_login(knobs: Json, code: str) -> None:
    async with authority(**knobs) as at:
        with pytest.raises(OAuthError) as caught:
            await client(at).__aenter__()
        assert caught.value.code == code
        assert at.calls == []


@pytest.mark.parametrize("place", ["http://127.0.0.1:1/x", "https://localhost/x", "http://other.example/x", "x"])
def test_a_server_elsewhere_cannot_point_at_this_machine(place: str) -> None:
    login = OAuth(client_id="c")
    with pytest.raises(OAuthError) as caught:
        next(login.steps("https://remote.example/mcp", 401, f'Bearer resource_metadata="{place}"'))
    assert caught.value.code == "unsafe_url"


async def test_a_private_host_is_called_where_a_person_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(url: str) -> list[str]:
        return ["10.0.0.7", "10.0.0.8", "10.0.0.7"]

    monkeypatch.setattr(http, "_addresses", addresses)
    login = OAuth(client_id="c", private_hosts=["Auth.corp.example"])
    channel = http.HttpChannel("https://mcp.corp.example/mcp", oauth=login)
    assert await channel._permitted_urls("https://auth.corp.example:8443/token") == [
        "https://10.0.0.7:8443/token",
        "https://10.0.0.8:8443/token",
    ]
    with pytest.raises(OAuthError, match=r"hint: if other\.corp\.example is yours") as caught:
        await channel._permitted_urls("https://other.corp.example/token")
    assert caught.value.code == "unsafe_url"
