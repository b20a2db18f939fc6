"""The reason of a decision is one line that people read: too long a one is refused before anything is done."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.text import MAX_REASON_LENGTH, InvalidReasonError
from mcpfactory_pipeline.decisions.stage_decision import approve_stage, reject_stage
from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
from mcpfactory_pipeline.maintenance.remove import remove
from mcpfactory_pipeline.state.store import Store
from mcpfactory_runtime.errors import Exit
from tests.pipeline.staged_workspace import two_in_production

CHANNEL = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\n'
SEEN = '[[pipeline.stages]]\nname = "seen"\nkind = "approval"\nneeds = []\nshows = ["file:README.md"]\n'
HOME = read_user_paths({"HOME": "/nowhere"})
DECISIONS = {
    "approve": lambda books, reason: books.decide("approve", reason=reason),
    "reject": lambda books, reason: books.decide("reject", reason=reason),
    "promote": lambda books, reason: books.promote(reason=reason),
    "rollback": lambda books, reason: books.rollback(reason=reason),
    "hold": lambda books, reason: books.decide("hold", reason=reason),
    "unhold": lambda books, reason: books.decide("unhold", reason=reason),
    "retire": lambda books, reason: books.decide("retire", reason=reason),
    "revive": lambda books, reason: books.decide("revive", reason=reason),
    "approve a stage": lambda books, reason: approve_stage(books.workspace, "books", "seen", reason=reason),
    "reject a stage": lambda books, reason: reject_stage(books.workspace, "books", "seen", reason=reason),
    "remove": lambda books, reason: remove(books.workspace, "books", HOME, reason=reason, force=True),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_too_long_a_reason_is_refused_before_anything_is_done(books, decision):
    books.configure(CHANNEL + SEEN)
    (books.folder / "README.md").write_text("a server")
    two_in_production(books)
    before, offered = Store(books.workspace).history("books"), books.offered("production")
    with pytest.raises(InvalidReasonError, match="has 501 characters, but must have at most 500") as caught:
        DECISIONS[decision](books, "x" * (MAX_REASON_LENGTH + 1))
    assert (caught.value.exit_code, caught.value.hint) == (Exit.USAGE, "shorten the reason")
    assert Store(books.workspace).history("books") == before
    assert books.offered("production") == offered
    assert books.folder.is_dir()


@pytest.mark.parametrize("reason", ["\u200b\u200b", "\u3164", " \u2060\n\u115f", "\u2800", "\u034f", "\ufe0f"])
def test_a_reason_that_nobody_sees_is_none(books, reason):
    before = Store(books.workspace).history("books")
    with pytest.raises(InvalidReasonError, match="no visible characters"):
        books.decide("hold", "staging", reason=reason)
    assert Store(books.workspace).history("books") == before


def test_the_longest_reason_is_kept_whole_and_spaces_around_it_do_not_count(books):
    books.decide("hold", "staging", reason="x" * MAX_REASON_LENGTH + "\n")
    assert books.state.holds["staging"]["reason"] == "x" * MAX_REASON_LENGTH
