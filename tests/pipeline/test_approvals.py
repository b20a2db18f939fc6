"""Approvals and rejections: who may say that a candidate may go on, and of which bytes."""

from __future__ import annotations

from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.staged_workspace import refused


def test_verified_in_staging_is_not_approved_for_production(books):
    with refused("cannot be promoted to production: 1 of 1 approval missing") as caught:
        books.promote()
    assert caught.value.hint == (
        f"mcpfactory pipeline approve books --channel production --candidate {books.state.candidate}"
    )
    assert not (books.workspace.pipeline / "channels" / "production").exists()
    books.decide("approve", reason="looked at it")
    assert "production" not in books.state.channels, "an approval moves nothing"
    books.promote()
    assert books.offered("production") == [b"one"]
    said, moved = Store(books.workspace).history("books")[-2:]
    assert (said["event"], said["actor"], said["reason"]) == ("approved", "tester", "looked at it")
    assert moved["event"] == "promoted"
    assert verify(books.workspace) == []


def test_an_approval_is_for_these_bytes_and_no_others(books):
    books.decide("approve")
    books.next("two")
    with refused("1 of 1 approval missing"):
        books.promote()


def test_so_many_different_people_must_approve_as_the_policy_says(books, set_actor):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 2\n')
    books.decide("approve")
    with refused("tester has already approved candidate .* for production") as caught:
        books.decide("approve")
    assert (
        caught.value.hint
        == "mcpfactory inbox books shows what is missing: 1 of 2 approvals missing, from anyone but tester"
    )
    with refused("1 of 2 approvals missing"):
        books.promote()
    set_actor("ada")
    books.decide("approve")
    with refused("ada has already approved") as caught:
        books.decide("approve")
    assert caught.value.hint == "mcpfactory pipeline promote books --channel production"
    books.promote()
    assert books.offered("production") == [b"one"]


def test_only_those_whom_the_policy_names_may_approve_and_reject(books, set_actor):
    table = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\napprovers = ["ada"]\n'
    books.configure(table)
    for what, options in (("approve", {}), ("reject", {"reason": "no"})):
        with refused(f"tester has no permission to {what} for production") as caught:
            books.decide(what, **options)
        assert "ask an approver: ada" in caught.value.hint
    set_actor("ada")
    books.decide("approve")
    set_actor("tester")
    books.promote()


def test_an_approval_of_somebody_who_may_no_longer_approve_does_not_count(books):
    books.decide("approve")
    table = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\napprovers = ["ada"]\n'
    books.configure(table)
    with refused("1 of 1 approval missing"):
        books.promote()


def test_a_rejection_takes_the_approvals_away_and_a_later_approval_lifts_it(books):
    books.decide("approve")
    books.decide("reject", reason="the README lies")
    with refused("rejected by tester: the README lies; 1 of 1 approval missing"):
        books.promote()
    made = books.decide("approve", reason="corrected")
    assert made["lifted"] == ["tester: the README lies"], "whoever approves is told what that takes back"
    books.promote()


def test_what_is_in_a_channel_is_rolled_back_not_rejected(books):
    books.decide("approve")
    books.promote()
    with refused("is already in production") as caught:
        books.decide("reject", reason="no")
    assert "mcpfactory pipeline rollback books --channel production" in caught.value.hint


def test_what_did_not_pass_or_never_was_in_staging_cannot_be_approved(books):
    (books.folder / "tests" / "outcome.txt").write_text("failed")
    books.next("two")
    with refused("cannot be approved yet: test failed"):
        books.decide("approve", candidate=books.state.candidate)
    (books.folder / "tests" / "outcome.txt").write_text("passed")
    (books.folder / "source.txt").write_text("three")
    books.run("books", until="test")
    with refused("was never in staging"):
        books.decide("approve", candidate=books.state.candidate)
    with refused("it was never in staging"):
        books.promote(candidate=books.state.candidate)


def test_a_channel_that_asks_for_no_approval_takes_none(books):
    with refused("channel staging requires no approval"):
        books.decide("approve", "staging")
