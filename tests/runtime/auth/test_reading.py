"""Reading headers and tokens, whatever they are: never another error than the one that is declared."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_runtime.auth.jwks import FAMILIES
from mcpfactory_runtime.auth.tokens import (
    BearerChallenge,
    ClaimRules,
    TokenError,
    check_claims,
    read_token,
    read_token_header,
)
from tests.runtime.auth.issuer import b64

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = ("iss", "aud", "sub", "exp", "nbf", "scope", "scp", "client_id", "azp", "cnf", "active")
RULES = ClaimRules(("https://a",), frozenset({"https://b"}))


@settings(deadline=None, max_examples=300)
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_header_is_a_token_or_a_challenge(header: str) -> None:
    assert isinstance(read_token(header), str | BearerChallenge)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(), st.lists(JSON, min_size=3, max_size=3), st.lists(st.binary(), min_size=3, max_size=3)))
def test_any_token_is_read_or_refused(parts: Any) -> None:
    token = parts if isinstance(parts, str) else ".".join(
        b64(part if isinstance(part, bytes) else json.dumps(part).encode("utf-8", "surrogatepass")) for part in parts
    )  # fmt: skip
    with suppress(TokenError):
        assert read_token_header(token, FAMILIES).algorithm in FAMILIES


GOOD = {"iss": "https://a", "aud": "https://b", "sub": "s", "exp": 100}


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(NAMES), JSON), st.booleans())
def test_any_claims_lead_to_a_principal_or_a_reason(changed: dict[str, Any], signed: bool) -> None:
    claims = {**GOOD, **changed}
    try:
        principal = check_claims(claims, RULES, 50.0, signed=signed)
    except TokenError:
        pass
    else:
        assert principal.issuer == "https://a"
        assert claims["aud"] == "https://b" or "https://b" in claims["aud"]
        assert principal.subject or principal.client
