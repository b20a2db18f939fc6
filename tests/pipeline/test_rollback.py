"""Rollbacks and holds: automation keeps away from what is held."""

from __future__ import annotations

from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.fake_stages import STAGES
from tests.pipeline.staged_workspace import refused, two_in_production
from tests.timeouts import TIMEOUT


def test_a_rollback_brings_the_older_bytes_back_and_holds_the_channel(books):
    first, second = two_in_production(books)
    assert books.rollback()["candidate"] == first
    assert books.offered("production") == [b"one"]
    assert books.state.holds["production"] == {"actor": "tester", "reason": "it is bad"}
    with refused("production is held by tester: it is bad") as caught:
        books.promote()
    assert caught.value.hint == "mcpfactory pipeline unhold books --channel production --reason '…'"
    books.decide("unhold")
    with refused("it was rolled back by tester: it is bad out of production; 1 of 1 approval missing"):
        books.promote(candidate=second)
    books.decide("approve", candidate=second)
    books.promote(candidate=second)
    assert books.offered("production") == [b"two"]


def test_a_rollback_of_staging_is_not_undone_by_the_next_run_until_the_hold_is_released(books):
    books.next("two")
    books.rollback("staging")
    assert books.offered("staging") == [b"one"]
    for source in ("three", "four"):
        (books.folder / "source.txt").write_text(source)
        outcome = books.run("books")
        assert (outcome.servers, outcome.failed) == ({"books": "held"}, False), "a hold is no failure"
        assert books.offered("staging") == [b"one"]
    assert books.run("books", force=True).servers == {"books": "held"}
    assert books.offered("staging") == [b"one"], "not even by force"
    (step,) = [step for step in plan_servers(books.workspace, stages=STAGES) if step.stage == "staging"]
    assert (step.verdict, step.reasons) == ("held", ("held by tester: it is bad",))
    books.decide("unhold", "staging")
    books.run("books")
    assert books.offered("staging") == [b"four"]


def test_when_the_hold_of_a_rollback_is_released_the_run_brings_the_newest_back(books):
    books.next("two")
    books.rollback("staging")
    books.decide("unhold", "staging")
    assert books.run("books").ran == 1
    assert books.offered("staging") == [b"two"]


def test_a_rollback_needs_something_that_was_there_before(books):
    with refused("books has no release in production"):
        books.rollback()
    with refused("staging has no older candidate of books") as caught:
        books.rollback("staging")
    assert "mcpfactory pipeline retire books --channel staging" in caught.value.hint
    first, second = two_in_production(books)
    with refused("is not an earlier release of production"):
        books.rollback(candidate=second)
    books.rollback()
    with refused("production has no older candidate"):
        books.rollback()
    with refused("cannot return to production: the candidate was rolled back by tester"):
        books.rollback(candidate=second)
    assert books.state.channels["production"].candidate == first


def test_a_rollback_to_bytes_that_are_gone_or_changed_is_refused_and_changes_nothing(books):
    first, _ = two_in_production(books)
    wheel = books.workspace.artifacts / "books" / first / "books-1.0-py3-none-any.whl"
    for spoil, words in (
        (lambda: wheel.write_bytes(b"evil"), "differs from the checked file"),
        (wheel.unlink, "not on this machine"),
    ):
        spoil()
        with refused(words) as caught:
            books.rollback()
        assert "mcpfactory pipeline restore books" in caught.value.hint
        assert books.offered("production") == [b"two"]
        assert books.state.holds == {}


def test_a_hold_that_is_set_while_staging_runs_is_seen_before_anything_moves(books, start_pipeline_process):
    from filelock import FileLock

    (books.folder / "source.txt").write_text("two")
    (books.workspace.root / "held.txt").write_text("")
    with FileLock(books.workspace.root / "ship.lock"):
        process = start_pipeline_process("books")
        for line in process.stdout:
            if '"step.started"' in line and '"staging"' in line:
                break
        books.decide("hold", "staging", reason="stop")
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (1, ""), out
    assert books.offered("staging") == [b"one"]
    assert books.state.stages["staging"].outcome == "inconclusive"
    assert "held by tester: stop" in books.state.stages["staging"].message
    assert verify(books.workspace) == []
