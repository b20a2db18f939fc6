from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.oauth.challenge import bearer_challenge, read_challenges
from tests.rows import rows


@rows(
    "header, expected",
    [
        ("", []),
        ("Bearer", [("bearer", {})]),
        ('Bearer realm="a, b", scope="x y"', [("bearer", {"realm": "a, b", "scope": "x y"})]),
        (
            'bearer ERROR=invalid_token,  error_description="say \\"hi\\""',
            [("bearer", {"error": "invalid_token", "error_description": 'say "hi"'})],
        ),
        (
            'Negotiate YWJj==, Basic realm="r", Bearer scope=x',
            [("negotiate", {}), ("basic", {"realm": "r"}), ("bearer", {"scope": "x"})],
        ),
        ("Negotiate, Bearer scope = x", [("negotiate", {}), ("bearer", {"scope": "x"})]),
        ('Bearer scope="x", realm="open', [("bearer", {"scope": "x"})]),
    ],
)
def test_challenges_are_read_with_their_parameters(header: str, expected: object) -> None:
    assert [(found.scheme, found.parameters) for found in read_challenges(header)][: len(expected)] == expected  # type: ignore[arg-type]


@given(st.text())
def test_no_header_breaks_the_reader(header: str) -> None:
    list(read_challenges(header))


def test_only_the_bearer_challenge_counts() -> None:
    assert bearer_challenge('Basic scope="x"').scopes == ()
    assert bearer_challenge('Basic realm="x", Bearer scope="a b"').scopes == ("a", "b")
