"""What was rolled back or rejected does not come back by itself, what is due is not promoted, and nothing is promoted twice."""

from __future__ import annotations

from mcpfactory_pipeline.decisions.precondition import describe_check_results
from mcpfactory_pipeline.decisions.promote import promote_due
from mcpfactory_pipeline.state.state import Candidate
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.staged_workspace import refused, two_in_production


def test_a_rollback_skips_what_was_rejected_and_says_so(books):
    first, second = two_in_production(books)
    third = books.next("three")
    books.decide("approve")
    books.promote()
    books.decide("reject", candidate=second, reason="worse")
    back = books.rollback()
    assert (back["candidate"], back["skipped"]) == (first, {second: "rejected by tester: worse"})
    with refused("no older candidate of books for a rollback"):
        books.rollback()
    with refused(
        f"candidate {second} of books cannot return to production: the candidate was rejected by tester: worse"
    ):
        books.rollback(candidate=second)
    assert third != second


def test_approvals_from_before_a_rollback_do_not_count_after_it(books, set_actor):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 2\n')
    for who in ("Ada", "Grace"):
        set_actor(who)
        books.decide("approve")
    books.promote()
    books.next("two")
    for who in ("Ada", "Grace"):
        set_actor(who)
        books.decide("approve")
    second = books.promote()["candidate"]
    books.rollback()
    books.decide("unhold")
    books.decide("approve", candidate=second)
    with refused("1 of 2 approvals missing"):
        books.promote(candidate=second)
    set_actor("Ada")
    books.decide("approve", candidate=second)
    assert books.promote(candidate=second)["candidate"] == second


def test_a_timer_does_not_bring_back_what_was_rolled_back(books):
    two_in_production(books)
    books.rollback()
    books.decide("unhold")
    (waits,) = promote_due(books.workspace, "production", stages=STAGES, clock=books.clock)
    assert "approval" in waits["waits_for"]


def test_a_channel_without_approvals_takes_back_what_was_rolled_back_when_somebody_approves_it(books):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n')
    books.promote()
    second = books.next("two")
    books.promote()
    books.rollback()
    books.decide("unhold")
    with refused("it was rolled back by tester: it is bad out of production"):
        books.promote(candidate=second)
    books.decide("approve", candidate=second)
    assert books.promote(candidate=second)["candidate"] == second


def test_promoting_what_is_there_records_nothing_and_mends_the_channel(books):
    books.decide("approve")
    books.promote()
    before = Store(books.workspace).history("books")
    wheel = next((books.workspace.pipeline / "channels/production/files").rglob("*.whl"))
    wheel.write_bytes(b"other")
    assert books.promote()["candidate"] == books.state.candidate
    assert Store(books.workspace).history("books") == before
    assert books.offered("production") == [b"one"]


def test_one_person_in_several_spellings_is_one(books, set_actor):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 2\n')
    set_actor("Grace")
    books.decide("approve")
    set_actor("GRACE\u200b")
    with refused("has already approved candidate"):
        books.decide("approve")


def test_a_failed_test_of_a_released_candidate_is_pending_until_the_test_passes(books):
    books.decide("approve")
    books.promote()
    outcome = books.folder / "tests/outcome.txt"
    before = outcome.read_text()
    outcome.write_text("failed")
    books.run("books")
    (found,) = read_inbox(books.workspace, stages=STAGES)
    assert (found.kind, found.about, f"production offers this candidate, 1.0 ({books.state.candidate})" in found.message) == (
        "failed", "test", True,
    )  # fmt: skip
    outcome.write_text(before)
    (found,) = read_inbox(books.workspace, stages=STAGES)
    assert found.command == "mcpfactory pipeline run books"
    books.next("two")
    assert [item.kind for item in read_inbox(books.workspace, stages=STAGES)] == ["approval"]


def test_who_approves_is_told_what_the_tests_show_and_what_was_waived():
    tested = {"passed": 4, "tool_tests": 3, "tools_run": 1, "skipped": 1, "deselected": 0}
    rules = [f"family.rule-{number}" for number in range(7)]
    checks = {
        "test": {"outcome": "passed", "summary": tested},
        "validate": {"outcome": "passed", "summary": {"score": 97, "waived": 9, "waived_rules": rules}},
    }
    tests, score = describe_check_results(Candidate("1.0", 1, {}, checks=checks))
    assert tests == "tests: 4 passed, 3 ran a tool (1 tool in all), 1 skipped, 0 deselected"
    assert score == f"score 97; 9 findings waived: {', '.join(rules[:5])} and 2 more"
    assert describe_check_results(Candidate("1.0", 1, {})) == []
