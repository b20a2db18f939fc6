from __future__ import annotations

from mcpfactory_runtime.oauth.steps_and_metadata import read_challenges
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
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
