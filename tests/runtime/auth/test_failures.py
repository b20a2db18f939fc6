"""Bad tokens of one address are refused unseen after a while, and nobody else pays for them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.auth import Authorization, AuthorizationError
from mcpfactory_runtime.server.auth_environment import read_auth_environment
from mcpfactory_runtime.transports.http.authentication import FailureLimit
from tests.runtime.auth.conftest import protected
from tests.subtest_table import parametrize_subtests

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


def test_what_is_remembered_is_bounded() -> None:
    limit = FailureLimit("1/m", clock=lambda: 0.0)
    for number in range(10_050):
        limit.attempt(f"a{number}", b"t")
        limit.record_success("x", b"%d" % number)
    assert limit._addresses is not None
    assert len(limit._addresses) <= 10_000
    assert len(limit._good) <= 10_000


@parametrize_subtests("rate", ["", "600", "0/m", "-1/m", "5/d", "1e3/m", "٣/m"])
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(AuthorizationError, match=f"failures={rate!r} is not a valid rate\nhint: use 600/m"):
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
    made = read_auth_environment({f"MCPFACTORY_AUTH_{name}": value for name, value in given.items()})
    assert made is not None
    assert (made if isinstance(made, Authorization) else made.authorization).failures == "7/h"


async def test_opaque_tokens_are_not_asked_about_beyond_the_limit() -> None:
    asked: list[str] = []

    def verify(token: str) -> dict[str, Any] | None:
        asked.append(token)
        return None

    async with protected(verify=verify, failures="5/h") as at:
        codes = [(await at.call("whoami", f"guess-{number}")).status_code for number in range(40)]
    assert codes == [401] * 5 + [429] * 35
    assert len(asked) == 5
