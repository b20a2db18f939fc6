"""Pages of lists: a list that is too long for one message is cut, and nothing of it is lost."""

from __future__ import annotations

import pytest

from mcpfactory_runtime.server.lists import page

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("count", "length", "pages"),
    [(2_000, 10, 1), (2_001, 10, 1), (2_100, 8_000, 3), (3, 9 * MEBIBYTE, 1)],
    ids=["few", "many small", "too much for a message", "few and large"],
)
def test_a_list_without_a_size_is_cut_where_no_client_would_read_it(count: int, length: int, pages: int) -> None:
    text = "x" * length
    items = {f"item-{number}": {"name": f"item-{number}", "text": text} for number in range(count)}
    seen, found, cursor = [], 0, None
    while cursor is not None or not found:
        chosen, cursor = page(items, {} if cursor is None else {"cursor": cursor}, None)
        seen += chosen
        found += 1
        assert count < 10 or sum(len(one["text"]) for one in chosen) < 8 * MEBIBYTE
    assert seen == list(items.values())
    assert found == pages
