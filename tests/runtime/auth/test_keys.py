"""Rotation, caching and failure of an issuer's keys: the state machine alone, then over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.auth.jwks import COOLDOWN, FAMILIES, LIFETIME, MAX_STALE, RETRY, KeyCache
from mcpfactory_runtime.types import Json
from tests.runtime.auth.conftest import challenge, protected
from tests.runtime.auth.issuer import make_key
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests


def jwks(*names: str) -> Json:
    return {"keys": [make_key(name).public() for name in names]}


def seen(cache: KeyCache, kid: str | None, now: float) -> tuple[int, bool, bool]:
    found = cache.find(kid, "ES256", now)
    return len(found.keys), found.fetch, found.known


@parametrize_subtests("document", [None, [], {}, {"keys": {}}, "keys"])
def test_what_is_no_key_set_counts_as_failure(document: Any) -> None:
    cache = KeyCache()
    assert not cache.store(document, 0)
    assert seen(cache, "one", 1) == (0, False, False)


GOOD = make_key("one").public()
RSA = make_key("r", "RS256").public()


@parametrize_subtests(
    "jwk, algorithm",
    [
        ({**GOOD, "use": "enc"}, "ES256"),
        ({**GOOD, "key_ops": ["encrypt"]}, "ES256"),
        ({**GOOD, "alg": "ES384"}, "ES256"),
        ({**GOOD, "crv": "P-384"}, "ES256"),
        ({**GOOD, "kty": "oct", "k": "AAAA"}, "ES256"),
        ({**GOOD, "kid": 7}, "ES256"),
        (RSA, "PS256"),
        ({**RSA, "n": RSA["n"][:170]}, "RS256"),
        ("not an object", "ES256"),
    ],
)
def test_keys_for_other_purposes_are_not_used(jwk: Any, algorithm: str) -> None:
    good = KeyCache({"keys": [GOOD, RSA]})
    assert good.find("one", "ES256", 0).keys
    assert good.find("r", "RS256", 0).keys
    assert KeyCache({"keys": [jwk]}).find(None, algorithm, 0).keys == ()


@requirement("auth.signature")
def test_no_symmetric_algorithm_is_known() -> None:
    assert {kind for kind, _ in FAMILIES.values()} == {"RSA", "EC", "OKP"}
    assert KeyCache({"keys": [{"kty": "oct", "k": "AAAA", "kid": "one"}]}).find("one", "ES256", 0).keys == ()


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@requirement("auth.signature")
@pytest.mark.anyio
async def test_a_rotated_key_is_found_by_one_fetch() -> None:
    async with protected() as at:
        assert (await at.call("whoami", at.issuer.signed())).status_code == 200
        at.issuer.clock.now += COOLDOWN
        at.issuer.published = [make_key("new")]
        for _ in range(3):
            assert (await at.call("whoami", at.issuer.signed())).status_code == 200
        assert at.issuer.fetched == 2
        old = await at.call("whoami", make_key("one").sign(at.issuer.claims()))
        assert challenge(old)["error"] == "invalid_token"
        assert at.issuer.fetched == 2


@pytest.mark.anyio
async def test_made_up_key_ids_do_not_make_the_server_fetch_all_day() -> None:
    async with protected() as at:
        assert (await at.call("whoami", at.issuer.signed())).status_code == 200
        for count in range(20):
            at.issuer.clock.now += 3
            assert (await at.call("whoami", make_key("x").sign(at.issuer.claims(), kid=f"k{count}"))).status_code == 401
        assert at.issuer.fetched == 1 + 60 // COOLDOWN


@pytest.mark.anyio
async def test_requests_that_come_together_wait_for_one_fetch() -> None:
    async with protected() as at:
        answers = await asyncio.gather(*(at.call("whoami", at.issuer.signed()) for _ in range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert at.issuer.fetched == 1


@pytest.mark.anyio
async def test_while_keys_cannot_be_had_tokens_are_neither_good_nor_bad(caplog: pytest.LogCaptureFixture) -> None:
    async with protected() as at:
        at.issuer.broken = True
        token = at.issuer.signed()
        response = await at.call("whoami", token)
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert "www-authenticate" not in response.headers
        assert at.issuer.jwks_url in caplog.text
        at.issuer.broken = False
        assert (await at.call("whoami", token)).status_code == 503
        at.issuer.clock.now += RETRY
        assert (await at.call("whoami", token)).status_code == 200
        at.issuer.broken = True
        at.issuer.clock.now += LIFETIME
        assert (await at.call("whoami", at.issuer.signed())).status_code == 200


def test_a_clock_that_was_set_back_does_not_make_keys_eternal() -> None:
    cache = KeyCache()
    cache.store(jwks("one"), MAX_STALE * 9)
    assert seen(cache, "one", 0) == (0, True, False)
