"""Servers that leave their channels."""

from __future__ import annotations

from tests.pipeline.staged_workspace import refused, two_in_production


def test_a_retired_server_is_in_no_channel_and_no_run_touches_it(books):
    books.decide("retire", reason="replaced by library")
    assert books.state.channels == {}
    assert not (books.workspace.pipeline / "channels/staging/simple/books").exists()
    (books.folder / "source.txt").write_text("two")
    outcome = books.run("books")
    assert (outcome.ran, outcome.failed, outcome.servers) == (0, False, {"books": "held"})
    for call in (books.promote, lambda: books.decide("approve"), lambda: books.decide("retire", reason="again")):
        with refused("retired by tester: replaced by library") as caught:
            call()
        assert caught.value.hint == "mcpfactory pipeline revive books"
    books.decide("revive")
    books.run("books")
    assert books.offered("staging") == [b"two"]
    with refused("books is not retired"):
        books.decide("revive")


def test_a_server_can_leave_one_channel_which_is_then_held(books):
    two_in_production(books)
    books.decide("retire", "production", reason="leaks")
    assert (list(books.state.channels), list(books.state.holds)) == (["staging"], ["production"])
    assert not (books.workspace.pipeline / "channels/production/simple/books").exists()
    assert books.offered("staging") == [b"two"]
    with refused("books has no release in production"):
        books.decide("retire", "production", reason="again")
