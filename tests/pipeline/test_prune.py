"""Pruning takes what nothing refers to, and nothing else."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.channels.prune import prune
from mcpfactory_pipeline.promotion import decision
from mcpfactory_pipeline.promotion.promote import promote, rollback
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.cheap import STAGES, add_server


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
    return {path.name for path in (workspace.artifacts / "books").iterdir()}


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


def test_the_newest_stay_as_many_as_are_asked_for(workspace, run):
    folder = add_server(workspace.root, "books", outcome="failed")
    made = []
    for number in range(4):
        (folder / "source.txt").write_text(str(number))
        run("books")
        made.append(Store(workspace).state("books").candidate)
    prune(workspace, keep=2)
    assert folders(workspace) == {*made[2:], "logs"}


def test_a_server_that_is_being_run_is_left_alone(workspace, run):
    add_server(workspace.root, "books")
    run("books")
    (workspace.artifacts / "books" / "0123456789abcdef").mkdir()
    with file_lock(workspace.pipeline / "locks" / "books.run.lock"):
        (entry,) = prune(workspace)
    assert "is held by another mcpfactory" in entry.kept
    assert "0123456789abcdef" in folders(workspace)


def test_where_the_state_cannot_be_read_nothing_is_taken(workspace, run):
    add_server(workspace.root, "books")
    run("books")
    before = folders(workspace)
    Store(workspace).state_file("books").write_text("{")
    (entry,) = prune(workspace, keep=1)
    assert "is not a state" in entry.kept
    assert folders(workspace) == before


def test_the_newest_candidate_always_stays(workspace):
    with pytest.raises(ConfigError):
        prune(workspace, keep=0)
