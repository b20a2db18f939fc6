"""Which name was probably meant."""

from __future__ import annotations

from mcpfactory_codegen.text import listed, nearest, unknown_field
from tests.rows import rows

KNOWN = ("pypi", "production", "include_tags", "Weather")


@rows(
    "word, meant",
    [
        ("pipy", "pypi"),  # letters in another order
        ("producton", "production"),
        ("prod", "production"),  # begun
        ("include_tag", "include_tags"),
        ("weather", "Weather"),
        ("kubernetes", ""),
        ("", ""),
    ],
)
def test_the_name_that_was_probably_meant(word, meant):
    assert nearest(word, KNOWN) == meant


def test_a_hint_names_what_there_is_and_not_more_than_a_person_reads():
    assert listed("x", [], "servers") == "servers: none"
    assert listed("s7", [f"s{n}" for n in range(30)], "servers").endswith("s19 and 10 more")


def test_a_field_that_nobody_reads():
    assert unknown_field({"a": 1}, ("a", "b"), "[x]") is None
    assert unknown_field({"aa": 1}, ("a", "b"), "[x]") == (
        "[x] has an unknown field 'aa'",
        "did you mean 'a'? fields: a, b",
    )
