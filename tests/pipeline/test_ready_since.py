"""Since when a candidate is ready for a channel: since the last of what made it ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mcpfactory_pipeline.base.ids import format_time
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.staged_workspace import StagedWorkspace, shipped_at
from tests.pipeline.test_timeline import event

TO_PRODUCTION = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n'


def waiting(books: StagedWorkspace) -> InboxItem | None:
    """What is ready at the server; None where nothing is."""
    items = read_inbox(books.workspace, ["books"], stages=STAGES, clock=books.clock)
    return next((item for item in items if item.kind == "ready"), None)


def moment(books: StagedWorkspace, **time: int) -> str:
    """Let time pass; when it is then."""
    books.clock.pass_(**time)
    return format_time(books.clock())


def test_it_is_ready_since_the_last_approval_that_was_needed(books: StagedWorkspace, set_actor: Any) -> None:
    books.configure(f"{TO_PRODUCTION}approvals = 2\n")
    moment(books, hours=1)
    set_actor("Ada")
    books.decide("approve")
    second = moment(books, hours=2)
    set_actor("Grace")
    books.decide("approve")
    item = waiting(books)
    assert item
    assert (item.since, item.waited) == (second, 0.0)
    moment(books, hours=3)
    set_actor("Linus")
    books.decide("approve")  # one more than needed
    item = waiting(books)
    assert item
    assert (item.since, item.waited) == (second, 3 * 3600.0)


def test_it_is_ready_since_its_soak_time_was_over_whenever_that_is_asked(books: StagedWorkspace) -> None:
    books.configure(f'{TO_PRODUCTION}soak = "24h"\n')
    over = shipped_at(books) + timedelta(days=1)
    books.clock.at = over - timedelta(seconds=1)
    assert waiting(books) is None
    for passed in (1, 90, 86_400):
        moment(books, seconds=passed)
        item = waiting(books)
        assert item
        assert item.since == format_time(over)


def test_a_new_candidate_is_ready_since_it_came_whatever_was_decided_before(books: StagedWorkspace) -> None:
    books.clock.at = shipped_at(books)
    books.decide("hold", reason="wait")
    books.decide("unhold")
    books.configure(TO_PRODUCTION)
    books.next("two")
    item = waiting(books)
    assert item
    assert item.since == format_time(shipped_at(books))


def said(second: int, who: str, kind: str = "approved", **about: Any) -> dict[str, Any]:
    return event(second, kind, actor=who, **(about or {"channel": "production", "candidate": "one"}))
