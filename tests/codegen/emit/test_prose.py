from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_codegen.text import markup_to_plain_text, one_line, shorten_text, strip_controls
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "text, expected",
    [
        ("# Title\n\nText", "Title\nText"),
        ("see [the docs](https://x.example) now", "see the docs now"),
        ("an ![image](a.png)here", "an here"),
        ("**bold** and _soft_ and `code_with_marks`", "bold and soft and `code_with_marks`"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("<p>para</p><br/>graph", "para graph"),
        ("a < b and c > d", "a < b and c > d"),
        ("&lt;id&gt; &amp;lt;", "<id> &lt;"),
        ("```\ncode\n```\nafter", "after"),
        ("a\r\nb\t c", "a\nb c"),
    ],
)
def test_markdown_and_html_become_plain_text(text: str, expected: str) -> None:
    assert markup_to_plain_text(text) == expected


@given(st.text(), st.integers(10, 300))
def test_what_is_fitted_is_never_longer_and_hides_nothing(text: str, limit: int) -> None:
    assert len(shorten_text(text, limit)) <= limit
    assert "\n" not in one_line(text, limit)
    assert strip_controls(shorten_text(text, limit)) == shorten_text(text, limit)
