"""Bad tokens of one address are refused unseen after a while, and nobody else pays for them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.auth import Authorization, AuthorizationError
from mcpfactory_runtime.server.access import read_access
from mcpfactory_runtime.transports.http.failures import FailureLimit
from tests.rows import rows
from tests.runtime.auth.conftest import protected

pytestmark = pytest.mark.anyio


async def test_bad_tokens_are_refused_unseen_and_those_that_were_good_go_on() -> None:
    async with protected(failures="3/h") as at:
        known = at.issuer.signed()
        assert (await at.call("whoami", known)).status_code == 200
        for number in range(3):
            assert (await at.call("whoami", f"guess-{number}")).status_code == 401
        refused = await at.call("whoami", "guess-4")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 1200
        assert "www-authenticate" not in refused.headers
        assert (await at.call("whoami", at.issuer.signed(sub="ben"))).status_code == 429  # unseen, good as it is
        assert (await at.call("whoami", known)).status_code == 200
        assert (await at.call("whoami")).status_code == 401  # no token is no guess


async def test_opaque_tokens_are_not_asked_about_beyond_the_limit() -> None:
    asked: list[str] = []

    def verify(token: str) -> dict[str, Any] | None:
        asked.append(token)
        return None

    async with protected(verify=verify, failures="5/h") as at:
        codes = [(await at.call("whoami", f"guess-{number}")).status_code for number in range(40)]
    assert codes == [401] * 5 + [429] * 35
    assert len(asked) == 5


async def test_what_nobody_can_check_does_not_count() -> None:
    def verify(_: str) -> dict[str, Any]:
        raise ConnectionError

    async with protected(verify=verify, failures="2/h") as at:
        assert [(await at.call("whoami", f"t{number}")).status_code for number in range(6)] == [503] * 6


async def test_good_tokens_do_not_count_however_many_there_are() -> None:
    async with protected(failures="2/h") as at:
        codes = [(await at.call("whoami", at.issuer.signed(sub=f"u{number}"))).status_code for number in range(8)]
    assert codes == [200] * 8


def test_a_count_goes_down_with_time_and_each_address_has_its_own() -> None:
    now = [0.0]
    limit = FailureLimit("2/m", clock=lambda: now[0])
    assert [limit.attempt("a", b"%d" % number) for number in range(3)] == [0, 0, 30]
    assert limit.attempt("b", b"t") == 0
    now[0] = 29.0
    assert limit.attempt("a", b"t") == pytest.approx(1)
    now[0] = 30.0
    assert limit.attempt("a", b"t") == 0
    assert limit.attempt("a", b"t") > 0


def test_a_token_that_was_good_and_is_bad_now_counts_again() -> None:
    limit = FailureLimit("1/m", clock=lambda: 0.0)
    assert limit.attempt("a", b"was good") == 0
    limit.good("a", b"was good")
    assert [limit.attempt("a", b"was good") for _ in range(5)] == [0] * 5
    limit.bad(b"was good")
    assert [limit.attempt("a", b"was good") > 0 for _ in range(2)] == [False, True]


def test_what_is_remembered_is_bounded() -> None:
    limit = FailureLimit("1/m", clock=lambda: 0.0)
    for number in range(10_050):
        limit.attempt(f"a{number}", b"t")
        limit.good("x", b"%d" % number)
    assert len(limit._counts) <= 10_000
    assert len(limit._good) <= 10_000


def test_off_is_no_limit() -> None:
    limit = FailureLimit("off")
    assert not any(limit.attempt("a", b"%d" % number) for number in range(2000))


@rows("rate", ["", "600", "0/m", "-1/m", "5/d", "1e3/m", "٣/m"])
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(AuthorizationError, match="hint: 600/m"):
        Authorization(issuer="https://a.example", resource="https://b.example/mcp", jwks={"keys": []}, failures=rate)


@pytest.mark.parametrize(
    "variables",
    [
        {"ISSUER": "https://a.example", "JWKS_URL": "https://a.example/jwks"},
        {"PROVIDER": "auth0", "DOMAIN": "acme.eu.auth0.com"},
        {"PROVIDER": "keys", "KEYS": "ada=0123456789abcdef0123456789abcdef"},
        {"PROVIDER": "github", "CLIENT_ID": "i", "CLIENT_SECRET": "0123456789abcdef0123", "ALLOW": "ada"},
    ],
)
def test_the_environment_sets_it_for_every_provider(variables: dict[str, str]) -> None:
    given = {"RESOURCE": "https://b.example/mcp", "FAILURES": "7/h", **variables}
    made = read_access({f"MCPFACTORY_AUTH_{name}": value for name, value in given.items()})
    assert made is not None
    assert (made if isinstance(made, Authorization) else made.authorization).failures == "7/h"
