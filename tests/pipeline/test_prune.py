"""Pruning takes what nothing refers to, and nothing else."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import RunFinished
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.channels.candidate import prune
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.conftest import Recorder
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured


@pytest.fixture
def history(workspace, run) -> list[str]:
    """Five candidates of which the first two were in production; gives their ids."""
    folder, made = add_server(workspace.root, "books"), []
    for number in range(5):
        (folder / "source.txt").write_text(str(number))
        run("books")
        made.append(Store(workspace).state("books").candidate)
        if number < 2:
            decision.approve(workspace, "books", "production", stages=STAGES)
            promote(workspace, "books", "production", stages=STAGES)
    return made


def folders(workspace) -> set[str]:
    return {path.name for path in (workspace.artifacts / "books").iterdir() if path.name != "manifests"}


def test_what_is_in_a_channel_or_can_be_rolled_back_to_stays_and_the_rest_goes(workspace, history):
    lost = workspace.artifacts / "books" / "0123456789abcdef"
    lost.mkdir()
    (lost / "x.whl").write_text("12345")
    found = prune(workspace, keep=1, dry_run=True)
    assert ("books/0123456789abcdef", 5) in {(entry.path, entry.bytes) for entry in found}
    assert lost.exists(), "a dry run takes nothing"
    assert prune(workspace, keep=1) == found
    assert folders(workspace) == {*history, "logs"}, "staging offered all of them, and can go back"
    assert prune(workspace, keep=1) == []
    assert verify(workspace) == []
    rollback(workspace, "books", "production", reason="bad", stages=STAGES)


def test_a_server_that_is_being_run_is_left_alone(workspace, run):
    add_server(workspace.root, "books")
    run("books")
    (workspace.artifacts / "books" / "0123456789abcdef").mkdir()
    with file_lock(workspace.pipeline / "locks" / "books.run.lock"):
        (entry,) = prune(workspace)
    assert "is locked by another mcpfactory process" in entry.kept
    assert "0123456789abcdef" in folders(workspace)


def test_where_the_state_cannot_be_read_nothing_is_taken(workspace, run):
    add_server(workspace.root, "books")
    run("books")
    before = folders(workspace)
    Store(workspace).state_file("books").write_text("[]")
    (entry,) = prune(workspace, keep=1)
    assert "does not match its history" in entry.kept
    assert folders(workspace) == before


def kept(workspace, keep: str):
    """The workspace, with what `[artifacts]` says."""
    return configured(workspace, f"[artifacts]\nkeep = {keep}\n")


def runs(workspace, folder, count: int) -> tuple[list[str], list]:
    """Gives the candidates of so many runs, and what each run said it pruned."""
    made, said = [], []
    for number in range(count):
        (folder / "source.txt").write_text(f"run {number}")
        recorder = Recorder()
        run_pipeline(workspace, ["books"], stages=STAGES, executor=InProcessExecutor(), jobs=1, reporter=recorder)
        said += [list(event.pruned) for event in recorder.of(RunFinished)]
        made.append(Store(workspace).state("books").candidate)
    return made, said


def test_a_run_takes_what_its_policy_does_not_keep_and_says_so(workspace):
    space = kept(workspace, "2")
    folder = add_server(space.root, "books", outcome="failed")
    made, said = runs(space, folder, 4)
    assert folders(space) == {*made[2:], "logs"}
    assert said == [[], [], [f"books/{made[0]}"], [f"books/{made[1]}"]]


def test_what_is_offered_held_or_can_be_gone_back_to_stays_whatever_the_policy(workspace):
    space = kept(workspace, "1")
    folder = add_server(space.root, "books")
    offered, _ = runs(space, folder, 3)
    decision.hold(space, "books", "staging", reason="audit", stages=STAGES)
    (folder / "tests" / "outcome.txt").write_text("failed")
    failed, _ = runs(space, folder, 3)
    assert folders(space) == {*offered, failed[-1], "logs"}
    rollback(space, "books", "staging", reason="bad", stages=STAGES)


def test_a_promotion_takes_what_no_channel_can_go_back_to_any_more_and_says_so(workspace, monkeypatch):
    folder = add_server(workspace.root, "books")
    monkeypatch.setattr("mcpfactory_pipeline.run.run.prune_by_policy", lambda *_: {})
    offered, _ = runs(workspace, folder, 8)
    space = kept(workspace, "1")
    assert len(folders(space)) == 9
    decision.approve(space, "books", "production", stages=STAGES)
    assert promote(space, "books", "production", stages=STAGES, dry_run=True)["pruned"] == {}
    found = promote(space, "books", "production", stages=STAGES)["pruned"]
    assert sorted(found) == sorted(f"books/{name}" for name in offered[:2]), "staging can go back to five"
    assert folders(space) == {*offered[2:], "logs"}


@pytest.mark.parametrize("keep", ["0", "true", '"some"', "1.5"])
def test_a_policy_that_cannot_be_used_ends_a_run_before_anything_runs(workspace, keep):
    with pytest.raises(ConfigError, match=r"artifacts\.keep: ") as caught:
        kept(workspace, keep)
    assert caught.value.hint
