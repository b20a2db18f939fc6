"""Histories only grow: what a commit has must still be there, a shortened history is never made the truth, and nobody builds on it."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.base.errors import NotFoundError, RefusedError
from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.delivery.ci.pull_request import refusals
from mcpfactory_pipeline.delivery.publish.publish import find_release
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import repair, verify
from mcpfactory_pipeline.state.view import view_text
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES
from tests.system import git


@pytest.fixture
def kept(books):
    """A server in staging with a rejection, all of it committed."""
    books.decide("reject", reason="it leaks")
    root = books.workspace.root
    git(root, "init", "-q")
    git(root, "add", "pipeline/history", "pipeline/state")
    git(root, "commit", "-qm", "kept")
    git(root, "branch", "kept")
    return books


def rewrite(space, change) -> None:
    """A history that says something else, with the state that follows from it."""
    store = Store(space.workspace)
    lines = [json.loads(line) for line in store.history_file("books").read_text().splitlines()]
    store.history_file("books").write_text("".join(json.dumps(event) + "\n" for event in change(lines)))
    store.state_file("books").write_text(view_text(fold("books", store.history("books"))))


def without_rejection(lines):
    return [event for event in lines if event["event"] != "rejected"]


def another_reason(lines):
    return [{**event, "reason": "fine"} if event["event"] == "rejected" else event for event in lines]


@pytest.mark.parametrize(("change", "word"), [(without_rejection, "lacks"), (another_reason, "has another")])
def test_a_rewritten_history_is_told_never_repaired_and_nothing_is_built_on_it(kept, change, word):
    rewrite(kept, change)
    before = Store(kept.workspace).state_file("books").read_bytes()
    (wrong,) = verify(kept.workspace)
    assert "is not what HEAD has" in wrong["message"]
    assert wrong["changes"][0].startswith(f"{word} ")
    assert "rejected" in wrong["changes"][0]
    assert [(one["server"], one["mended"]) for one in repair(kept.workspace)] == [("books", False)]
    assert Store(kept.workspace).state_file("books").read_bytes() == before
    for use in (lambda: kept.promote("staging"), lambda: find_release(kept.workspace, "books", "staging")):
        with pytest.raises(RefusedError, match="missing or changed"):
            use()
    assert [one.outcome for one in restore(kept.workspace, ["books"])] == ["missing"]


def test_a_history_that_was_deleted_is_told(kept):
    store = Store(kept.workspace)
    store.history_file("books").unlink()
    store.state_file("books").unlink()
    assert [one["server"] for one in verify(kept.workspace)] == ["books"]


def test_a_history_that_git_cannot_read_is_not_taken_for_an_empty_one(kept):
    rewrite(kept, without_rejection)
    git(kept.workspace.root, "commit", "-qam", "nothing to see")
    blob = git_text(kept.workspace.root, "rev-parse", "kept:pipeline/history/books.jsonl")
    (kept.workspace.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(NotFoundError, match="git cannot read pipeline/history at kept"):
        refusals(kept.workspace, "kept")


def test_a_pull_request_that_brings_its_own_decision_or_takes_one_away_is_refused(kept):
    assert refusals(kept.workspace, "kept") == []
    kept.decide("approve")
    (refused,) = refusals(kept.workspace, "kept")
    assert "approved by tester" in refused.message
    rewrite(kept, without_rejection)
    assert ["missing or changed" in one.message for one in refusals(kept.workspace, "kept")] == [True, False]


def test_a_server_that_the_base_does_not_know_brings_no_history_either(kept, run):
    from tests.pipeline.fake_stages import add_server

    add_server(kept.workspace.root, "new")
    run("new")
    assert [one.server for one in refusals(kept.workspace, "kept")] == ["new"]


def test_a_push_brings_decisions_about_what_was_there_and_none_about_what_comes_with_it(kept):
    kept.decide("approve")
    assert refusals(kept.workspace, "kept", pushed=True) == [], "what the branch has may be approved on the branch"
    kept.next("two")
    kept.decide("approve")
    (one,) = refusals(kept.workspace, "kept", pushed=True)
    assert (one.server, "1 event that kept does not have: approved by" in one.message) == ("books", True)
    assert "push what was built first" in one.hint


def test_results_of_jobs_bring_events_of_stages_and_no_decision_of_a_person(kept, run):
    def told() -> list[str]:
        return [one.message for one in refusals(kept.workspace, "kept", results=True, stages=STAGES)]

    kept.next("two")
    assert refusals(kept.workspace, "kept"), "a pull request of a person must not bring them"
    assert told() == []
    kept.decide("approve")
    (words,) = told()
    assert "1 event that kept does not have: approved by tester" in words
    release = Store(kept.workspace).state("books").channels["staging"]
    by_hand(kept, event="promoted", channel="production", candidate="f" * 16, version=release.version)
    assert "no build made the candidate ffff" in told()[0]


def by_hand(space, **members) -> None:
    """Somebody writes one more event into the history, and the state that follows."""

    def add(lines):
        return [*lines, {**lines[-1], "id": new_id(lines[-1]["id"]), "actor": "Mallory", "reason": "", **members}]

    rewrite(space, add)


def with_policy(space, **channel) -> Workspace:
    """The workspace with other settings of production, as its file says them from now on."""
    lines = "".join(f"{name} = {value}\n" for name, value in channel.items())
    text = f"""[workspace]\nname = "x"\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n{lines}"""
    (space.workspace.root / "mcpfactory.toml").write_text(text)
    return Workspace.find(space.workspace.root)


def refused(space, workspace=None) -> list[str]:
    return [one.message for one in refusals(workspace or space.workspace, "kept", pushed=True, stages=STAGES)]


def test_a_push_with_a_promotion_that_its_policy_permitted_is_taken(kept):
    kept.decide("approve")
    kept.promote()
    assert refused(kept) == []


def test_a_promotion_that_somebody_wrote_into_a_push_by_hand_is_refused(kept):
    release = Store(kept.workspace).state("books").channels["staging"]
    by_hand(kept, event="promoted", channel="production", candidate=release.candidate, version=release.version)
    found = refused(kept)
    assert "rejected by tester: it leaks" in found[0]
    assert "1 of 1 approval missing" in found[1]


def test_a_promotion_of_what_no_build_made_is_refused(kept):
    by_hand(kept, event="promoted", channel="production", candidate="f" * 16, version="1")
    assert "no build made the candidate ffff" in refused(kept)[0]


def test_a_push_that_lowers_what_a_channel_asks_for_does_not_profit_from_it(kept):
    workspace = with_policy(kept, approvals=2)
    git(workspace.root, "add", "mcpfactory.toml")
    git(workspace.root, "commit", "-qm", "two approve")
    git(workspace.root, "branch", "-f", "kept")
    kept.decide("approve")
    release = Store(workspace).state("books").channels["staging"]
    by_hand(kept, event="promoted", channel="production", candidate=release.candidate, version=release.version)
    lowered = with_policy(kept, approvals=1)
    (words,) = refused(kept, lowered)
    assert "1 of 2 approvals missing" in words


def test_a_publication_of_what_no_channel_offered_is_refused(kept):
    release = Store(kept.workspace).state("books").channels["staging"]
    offer = {"channel": "production", "candidate": release.candidate, "version": release.version}
    by_hand(kept, event="published", target="pypi", **offer)
    assert refused(kept)[0].endswith(f"production never offered {release.candidate}")


def test_a_push_that_drops_signatures_does_not_profit_from_it(kept):
    workspace = with_policy(kept, approvals=1, signed="true")
    git(workspace.root, "add", "mcpfactory.toml")
    git(workspace.root, "commit", "-qm", "signed")
    git(workspace.root, "branch", "-f", "kept")
    kept.decide("approve")
    kept.promote()
    (words,) = refused(kept, with_policy(kept, approvals=1))
    assert "the approval of tester is not signed" in words


@pytest.mark.parametrize("folder", ["artifacts", "channels", "locks"])
def test_tracked_files_of_one_machine_are_refused(kept, folder):
    file = next(file for file in (kept.workspace.pipeline / folder).rglob("*") if file.is_file())
    git(kept.workspace.root, "add", "-f", str(file))
    (refused,) = refusals(kept.workspace, "kept")
    assert f"pipeline/{folder}/ must not be tracked" in refused.message
    assert refused.hint.startswith(f"git rm -r --cached -- pipeline/{folder}")
    git(kept.workspace.root, "rm", "-qr", "--cached", "--", f"pipeline/{folder}")
    assert refusals(kept.workspace, "kept") == []
