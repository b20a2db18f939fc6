"""Texts for regular expressions: each matches, and what nobody can say anything of has none."""

from __future__ import annotations

import re
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.schemas.patterns import MAX_TEXT_LENGTH, matching_texts
from tests.subtest_table import parametrize_subtests

FUNCTION = r"(arn:(aws[a-zA-Z-]*)?:lambda:)?([a-z]{2}(-gov)?-[a-z]+-\d{1}:)?(\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\$LATEST|[a-zA-Z0-9-_]+))?"


@parametrize_subtests(
    "pattern, first",
    [
        ("^[a-z]+$", "a"),
        (r"^\d{4}-\d{2}$", "1111-11"),
        ("^(get|put)$", "get"),
        ("^(?:|no)$", "no"),
        (r"^arn:aws[a-z-]*:iam::\d{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+$", "arn:aws:iam::111111111111:rolea"),
        (f"^{FUNCTION}$", "a"),
        ("^([A-Z]{3},)*[A-Z]{3}$", "AAA"),
        (r"^\[.\]{1,2}?$", "[a]"),
        ("^[^a1A0f]$", "_"),
        ("a{2,}", "aa"),
        ("^$", ""),
        ("^(?!^[0-9]+$)([a-zA-Z0-9-_]+)$", "a"),
        (r"^(?=a).{2,}(?<!-)$", "aa"),
    ],
)
def test_the_shortest_text_of_a_pattern(pattern: str, first: str) -> None:
    assert next(matching_texts(pattern)) == first


@parametrize_subtests(
    "pattern",
    ["(?!a)a", "(?<=a)b", "(?i)b", r"(a)\1", "(", "[", "*", "a{99999}", "(" * 99 + ")" * 99, r"\p{L}", "^[^\\s\\S]$"],
)
def test_what_is_not_understood_has_no_text(pattern: str) -> None:
    assert list(matching_texts(pattern)) == []


PIECES = st.sampled_from(["a", "[b-d]", r"\d", ".", "(x|yz)", "(?:q)", "-", r"\."])
COUNTS = st.sampled_from(["", "*", "+", "?", "{2}", "{0,3}", "{1,}", "+?"])


@given(st.lists(st.tuples(PIECES, COUNTS), max_size=6))
def test_every_text_matches_by_another_engine_too(parts: list[tuple[str, str]]) -> None:
    pattern = f"^{''.join(piece + count for piece, count in parts)}$"
    found = list(islice(matching_texts(pattern), 9))
    assert found
    assert all(re.search(pattern, text) and len(text) <= MAX_TEXT_LENGTH for text in found)
