"""Where a thing that waits is decided: beside its evidence where it is about a candidate for a channel."""

from __future__ import annotations

from mcpfactory_pipeline.views.inbox import InboxItem
from mcpfactory_pipeline.views.inbox_notifications import decision_page_channel, decision_path
from tests.subtest_table import parametrize_subtests

PLACES = {
    ("approval", "production", "mcpfactory pipeline approve books --channel production"): "servers/books/decide/production/",
    ("ready", "production", "mcpfactory pipeline promote books --channel production"): "servers/books/decide/production/",
    ("approval", "review", "mcpfactory pipeline approve books --stage review"): "servers/books/",
    ("approval", "production", "mcpfactory pipeline approve books --stage production"): "servers/books/",
    ("approval", "gone-channel", "mcpfactory pipeline approve books"): "servers/books/",
    ("failed", "production", "mcpfactory pipeline history books test"): "servers/books/",
    ("drift", "gone", "mcpfactory pipeline retire books"): "",
}  # fmt: skip


@parametrize_subtests("item, path", PLACES.items())
def test_a_thing_leads_to_where_it_is_decided(item: tuple[str, str, str], path: str) -> None:
    kind, about, command = item
    waits = InboxItem(kind, "books", about, "", command)
    assert decision_path("books", about, decision_page_channel(waits, {"staging", "production"})) == path
