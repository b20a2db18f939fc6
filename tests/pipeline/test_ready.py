"""Since when a candidate is ready for a channel: since the last of what made it ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mcpfactory_pipeline.base.ids import format_time
from mcpfactory_pipeline.plan.approval import ApprovalPolicy
from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from mcpfactory_pipeline.views.ready import ready_since
from tests.pipeline.cheap import STAGES, nothing
from tests.pipeline.space import Space, shipped_at
from tests.pipeline.test_timeline import at, event
from tests.rows import rows

TO_PRODUCTION = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n'


def waiting(books: Space) -> InboxItem | None:
    """What is ready at the server; None where nothing is."""
    items = read_inbox(books.workspace, ["books"], stages=STAGES, clock=books.clock)
    return next((item for item in items if item.kind == "ready"), None)


def moment(books: Space, **time: int) -> str:
    """Let time pass; when it is then."""
    books.clock.pass_(**time)
    return format_time(books.clock())


def test_it_is_ready_since_the_last_approval_that_was_needed(books: Space, act: Any) -> None:
    books.configure(f"{TO_PRODUCTION}approvals = 2\n")
    moment(books, hours=1)
    act("Ada")
    books.decide("approve")
    second = moment(books, hours=2)
    act("Grace")
    books.decide("approve")
    item = waiting(books)
    assert item
    assert (item.since, item.waited) == (second, 0.0)
    moment(books, hours=3)
    act("Linus")
    books.decide("approve")  # one more than needed
    item = waiting(books)
    assert item
    assert (item.since, item.waited) == (second, 3 * 3600.0)


def test_it_is_ready_since_the_hold_was_released(books: Space) -> None:
    moment(books, hours=1)
    books.decide("approve")
    books.decide("hold", reason="wait")
    assert waiting(books) is None
    released = moment(books, hours=1)
    books.decide("release")
    moment(books, hours=1)
    item = waiting(books)
    assert item
    assert item.since == released


def test_it_is_ready_since_its_soak_time_was_over_whenever_that_is_asked(books: Space) -> None:
    books.configure(f'{TO_PRODUCTION}soak = "24h"\n')
    over = shipped_at(books) + timedelta(days=1)
    books.clock.at = over - timedelta(seconds=1)
    assert waiting(books) is None
    for passed in (1, 90, 86_400):
        moment(books, seconds=passed)
        item = waiting(books)
        assert item
        assert item.since == format_time(over)


def test_a_new_candidate_is_ready_since_it_came_whatever_was_decided_before(books: Space) -> None:
    books.clock.at = shipped_at(books)
    books.decide("hold", reason="wait")
    books.decide("release")
    books.configure(TO_PRODUCTION)
    books.next("two")
    item = waiting(books)
    assert item
    assert item.since == format_time(shipped_at(books))


def test_what_was_rejected_is_ready_since_it_was_approved_after_all(books: Space) -> None:
    books.decide("approve")
    moment(books, hours=1)
    books.decide("reject", reason="no")
    assert waiting(books) is None
    again = moment(books, hours=1)
    books.decide("approve")
    item = waiting(books)
    assert item
    assert item.since == again


CHANNEL = ChannelPolicy("production", source="staging", approvals=1, approvers=("Ada", "Grace"))
CAME = event(1, "stage.finished", stage="staging", channel="staging", candidate="one", outcome="passed")


def said(second: int, who: str, kind: str = "approved", **about: Any) -> dict[str, Any]:
    return event(second, kind, actor=who, **(about or {"channel": "production", "candidate": "one"}))


@rows("events, second", [
        ([CAME], 1),
        ([CAME, said(2, "Linus"), said(3, "ADA"), said(4, "Grace")], 3),
        ([CAME, said(2, "Ada", channel="production", candidate="two")], 1),
        ([CAME, said(2, "Ada", channel="mirror", candidate="one"), event(3, "released", channel="mirror")], 1),
        ([said(0, "Ada"), CAME], 1),
        ([CAME, said(2, "Ada"), event(3, "promoted", channel="production", candidate="one"),
          event(4, "rolled-back", channel="production", candidate="zero"), said(5, "Ada")], 5),
        ([CAME, said(2, "Ada"), event(3, "retired", kept=True), event(4, "revived")], 4),
        ([CAME, said(2, "Ada", stage="review", shown={"candidate": "x"}), said(3, "Ada"),
          said(5, "Grace", stage="review", shown={"candidate": "one"})], 5),
    ])  # fmt: skip
def test_only_what_was_about_this_candidate_and_channel_counts(events: list[dict[str, Any]], second: int) -> None:
    review = Stage("review", (), ("candidate",), (), 1, nothing, approval=ApprovalPolicy())
    assert ready_since(CHANNEL, "one", events, [review]) == at(second)
