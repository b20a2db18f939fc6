"""Who is let in, over real HTTP, with keys fetched from a real issuer."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from mcpfactory_runtime.auth.tokens import REASONS
from mcpfactory_runtime.revisions import LATEST_LEGACY
from tests.runtime.auth.conftest import challenge, protected, request
from tests.runtime.auth.issuer import NOW, Issuer, b64, compact, make_key
from tests.runtime.requirements import requirement

pytestmark = pytest.mark.anyio


async def text_of(response: Any) -> Any:
    assert response.status_code == 200, response.text
    return response.json()["result"]["structuredContent"]["result"]


@requirement("origin.authentication")
async def test_a_good_token_is_let_in_and_the_handler_learns_who_calls() -> None:
    async with protected() as at:
        said = await text_of(await at.call("whoami", at.issuer.signed(scope="books:read  books:write")))
        assert said == [at.issuer.base, "ada", "client-1", "books:read", "books:write"]


@requirement("auth.signature")
@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"])
async def test_signatures_of_every_kind_are_checked_by_another_implementation(algorithm: str) -> None:
    async with protected() as at:
        at.issuer.published = [make_key("k", algorithm)]
        token = at.issuer.signed()
        assert (await at.call("whoami", token)).status_code == 200
        head, payload, signature = token.split(".")
        flipped = "A" if signature[20] != "A" else "B"
        broken = await at.call("whoami", f"{head}.{payload}.{signature[:20]}{flipped}{signature[21:]}")
        assert challenge(broken)["error_description"] == REASONS["signature"]


@requirement(
    "auth.missing-token",
    "auth.query",
    "auth.challenge-scope",
    "auth.challenge",
    "auth.metadata",
    "auth.metadata-issuers",
    "auth.both-lifecycles",
)
async def test_without_a_token_a_client_is_told_where_to_get_one_and_nothing_is_called_wrong() -> None:
    async with protected(required_scopes=("books:read",)) as at:
        for response in (
            await at.call("whoami"),
            await at.begin(),
            await at.http.get(at.url),
            await at.http.delete(at.url),
            await at.http.post(at.url, content=b"not json"),
            await at.http.get(f"{at.url}?access_token={at.issuer.signed()}"),
            await at.modern("tools/list", Authorization="Basic YTpi"),
        ):
            assert response.status_code == 401
            told = challenge(response)
            assert told["scope"] == "books:read"
            assert "error" not in told
            document = (await at.http.get(told["resource_metadata"])).json()
            assert document["resource"] == at.url
            assert document["authorization_servers"] == [at.issuer.base]


@requirement("auth.malformed-token")
@pytest.mark.parametrize("header", ["Bearer", "Bearer a b", "Bearer a, Bearer b", "Bearer ä", f"Bearer {'a' * 20_000}"])
async def test_a_malformed_header_is_a_bad_request(header: str) -> None:
    async with protected() as at:
        response = await at.http.post(at.url, json={}, headers={b"Authorization": header.encode("latin-1")})
        assert (response.status_code, challenge(response)["error"]) == (400, "invalid_request")


def none_algorithm(at: Issuer) -> str:
    return compact({"alg": "none", "typ": "at+jwt"}, at.claims()) + ".e30"


def hmac_with_the_public_key(at: Issuer) -> str:
    text = compact({"alg": "HS256", "kid": "one"}, at.claims())
    secret = json.dumps(at.published[0].public()).encode()
    return f"{text}.{b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


# what is wrong → (a token, the reason)
WRONG: dict[str, tuple[Any, str]] = {
    "signed by somebody else": (lambda at: make_key("other").sign(at.claims(), kid="one"), "signature"),
    "unknown key": (lambda at: make_key("other").sign(at.claims()), "key"),
    "another algorithm than the key's": (lambda at: make_key("r", "RS256").sign(at.claims(), kid="one"), "key"),
    "alg none": (none_algorithm, "algorithm"),
    "alg none in capitals": (
        lambda at: none_algorithm(at).replace(b64(b'{"alg": "n'), b64(b'{"alg": "N')),
        "algorithm",
    ),
    "hmac with the public key": (hmac_with_the_public_key, "algorithm"),
    "key in the header": (
        lambda at: make_key("x").sign(at.claims(), jwk=make_key("x").public(), kid=None),
        "signature",
    ),
    "critical extension": (lambda at: at.published[0].sign(at.claims(), crit=["b64"], b64=False), "malformed"),
    "an id-jag": (lambda at: at.published[0].sign(at.claims(), typ="oauth-id-jag+jwt"), "type"),
    "another audience": (lambda at: at.signed(aud="https://elsewhere.example/mcp"), "audience"),
    "our host with another path": (lambda at: at.signed(aud=at.audience + "/more"), "audience"),
    "no audience": (lambda at: at.signed(aud=None), "audience"),
    "an object as audience": (lambda at: at.signed(aud={"x": at.audience}), "audience"),
    "another issuer": (lambda at: at.signed(iss="https://elsewhere.example"), "issuer"),
    "our issuer with a slash": (lambda at: at.signed(iss=at.base + "/"), "issuer"),
    "no issuer": (lambda at: at.signed(iss=None), "issuer"),
    "expired": (lambda at: at.signed(exp=int(NOW) - 31), "expired"),
    "no expiry": (lambda at: at.signed(exp=None), "times"),
    "expiry true": (lambda at: at.signed(exp=True), "times"),
    "expiry as text": (lambda at: at.signed(exp="9999999999"), "times"),
    "not valid yet": (lambda at: at.signed(nbf=int(NOW) + 31), "early"),
    "nobody": (lambda at: at.signed(sub=None, client_id=None), "identity"),
    "bound to a key": (lambda at: at.signed(cnf={"jkt": "x"}), "bound"),
    "opaque": (lambda at: "opaque-token", "malformed"),
    "five parts": (lambda at: "a.b.c.d.e", "malformed"),
    "claims that are a list": (lambda at: compact({"alg": "ES256"}, []) + ".AAAA", "malformed"),
    "claims that nest for ever": (lambda at: f"{b64(b'{}')}.{b64(b'[' * 9000)}.AAAA", "malformed"),
    "expiry not a number": (lambda at: f"{b64(b'{}')}.{b64(b'NaN')}.AAAA", "malformed"),
}


@requirement("auth.invalid-token", "auth.audience", "auth.issuer", "auth.expiry", "auth.signature")
async def test_a_bad_token_is_refused_with_its_reason(subtests: pytest.Subtests) -> None:
    async with protected() as at:
        for wrong, (make, reason) in WRONG.items():
            with subtests.test(wrong):
                assert (await at.call("whoami", at.issuer.signed())).status_code == 200
                response = await at.call("whoami", make(at.issuer))
                told = challenge(response)
                assert (response.status_code, told["error"], told["error_description"]) == (
                    401,
                    "invalid_token",
                    REASONS[reason],
                )
                assert told["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")


async def test_clocks_may_differ_by_half_a_minute() -> None:
    async with protected() as at:
        for times in ({"exp": int(NOW) - 29}, {"nbf": int(NOW) + 29}, {"exp": NOW + 0.5}):
            assert (await at.call("whoami", at.issuer.signed(**times))).status_code == 200
        token = at.issuer.signed()
        at.issuer.clock.now += 331
        assert challenge(await at.call("whoami", token))["error"] == "invalid_token"


async def test_several_audiences_and_further_names_are_understood() -> None:
    async with protected(audiences=("api://books",)) as at:
        for audience in ("api://books", ["https://elsewhere.example", at.url]):
            assert (await at.call("whoami", at.issuer.signed(aud=audience))).status_code == 200


@requirement("origin.first")
async def test_origin_and_host_come_before_the_token() -> None:
    async with protected() as at:
        foreign = await at.modern("tools/list", token="x", Origin="https://evil.example")
        rebound = await at.modern("tools/list", token="x", Host="evil.example")
        assert (foreign.status_code, rebound.status_code) == (403, 403)
        assert "www-authenticate" not in foreign.headers
        hidden = await at.http.get(
            f"{at.url.removesuffix('/mcp')}/.well-known/oauth-protected-resource",
            headers={"Origin": "https://evil.example"},
        )
        assert hidden.status_code == 403


@requirement("auth.before-anything")
async def test_the_token_comes_before_everything_else() -> None:
    async with protected() as at:
        messages: list[Any] = [{"jsonrpc": "1"}, [], request("no/such", {}), None]
        for message in messages:
            assert (await at.post(message)).status_code == 401
        large = await at.http.post(at.url, content=b"x" * 100, headers={"Mcp-Session-Id": "unknown"})
        assert large.status_code == 401


@requirement("auth.every-request", "auth.session-owner")
async def test_each_request_of_a_session_needs_its_token() -> None:
    async with protected() as at:
        begun = await at.begin(at.issuer.signed())
        assert begun.status_code == 200
        session = {"Mcp_Session_Id": begun.headers["mcp-session-id"], "MCP_Protocol_Version": LATEST_LEGACY.name}
        listing = request("tools/list", {})
        assert (await at.post(listing, at.issuer.signed(), **session)).status_code == 200
        assert (await at.post(listing, None, **session)).status_code == 401
        assert (await at.post(listing, at.issuer.signed(exp=1), **session)).status_code == 401


async def test_opaque_tokens_are_vouched_for_by_the_callable() -> None:
    asked = []

    async def introspect(token: str) -> Any:
        asked.append(token)
        if token == "late":
            raise TimeoutError("late is the token")
        return {
            "good": GOOD,
            "dead": {"active": False},
            "theirs": {**GOOD, "aud": "x"},
            "old": {**GOOD, "exp": 1},
            "foreign": {**GOOD, "iss": "https://x.example"},
        }.get(token)

    GOOD: dict[str, Any] = {"active": True, "sub": "bob", "scope": "a"}  # noqa: N806 - a constant of the test
    async with protected(verify=introspect) as at:
        GOOD["aud"] = at.url
        assert (await text_of(await at.call("whoami", "good")))[1:] == ["bob", "", "a"]
        reasons = {
            "dead": "inactive",
            "unknown": "inactive",
            "theirs": "audience",
            "old": "expired",
            "foreign": "issuer",
        }
        for token, reason in reasons.items():
            assert challenge(await at.call("whoami", token))["error_description"] == REASONS[reason]
        late = await at.call("whoami", "late")
        assert (late.status_code, late.headers["retry-after"]) == (503, "5")
        assert asked == ["good", *reasons, "late"]


async def test_keys_can_be_given_as_they_are() -> None:
    async with protected(jwks={"keys": [make_key().public()]}) as at:
        assert (await at.call("whoami", at.issuer.signed())).status_code == 200
        assert at.issuer.fetched == 0


@requirement("auth.issuer")
async def test_two_issuers_cannot_sign_for_each_other() -> None:
    from tests.runtime.auth.issuer import issuer

    async with issuer(published=[make_key("two")]) as second:
        port_of: dict[str, Any] = {}

        async def fetch(url: str) -> bytes:
            from mcpfactory_runtime.client.http import fetch as real

            port_of[url] = True
            return await real(url)

        first_base = "https://first.example"
        urls = {first_base: f"{second.base}/nothing", second.base: second.jwks_url}
        async with protected(issuer=tuple(urls), jwks_url=urls, fetch=fetch) as at:
            good = {**at.issuer.claims(), "iss": second.base}
            assert (await at.call("whoami", make_key("two").sign(good))).status_code == 200
            forged = await at.call("whoami", make_key("two").sign({**good, "iss": first_base}))
            assert (
                forged.status_code == 503
            )  # the first issuer's keys cannot be had; the second one's are no substitute
            assert len(port_of) == 2
