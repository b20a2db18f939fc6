"""Two clones that worked apart: different servers merge without a conflict, the same server conflicts readably."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor

SERVERS = ("a", "b", "c", "d")


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def clones(workspace, run, tmp_path):
    """Two clones of a workspace with four servers in staging, with the artifacts that a run leaves beside them."""
    for name in SERVERS:
        add_server(workspace.root, name)
    run()
    git(workspace.root, "init", "--quiet", "--initial-branch", "main")
    git(workspace.root, "add", ".")
    assert git(workspace.root, "commit", "--quiet", "-m", "made").returncode == 0

    def clone(name: str) -> Workspace:
        assert git(tmp_path, "clone", "--quiet", str(workspace.root), name).returncode == 0
        (tmp_path / name / "pipeline" / "artifacts").symlink_to(workspace.artifacts)
        return Workspace.find(tmp_path / name)

    return clone


def commit(space: Workspace) -> None:
    git(space.root, "add", "pipeline/state", "pipeline/history")
    assert git(space.root, "commit", "--quiet", "-m", "work").returncode == 0


def test_different_decisions_about_the_same_server_merge_to_what_both_histories_say(clones):
    left, right = clones("left"), clones("right")
    decision.approve(left, "a", "production", stages=STAGES)
    promote(left, "a", "production", stages=STAGES)
    commit(left)
    decision.hold(right, "a", "production", reason="audit", stages=STAGES)
    commit(right)
    assert git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main").returncode == 0
    state = Store(left).state("a")
    assert ("production" in state.channels, list(state.holds)) == (True, ["production"])
    assert verify(left) == []


def test_contradicting_decisions_conflict_readably_and_the_history_settles_it(clones):
    left, right = clones("left"), clones("right")
    for space, reason in ((left, "audit"), (right, "holidays")):
        decision.hold(space, "a", "production", reason=reason, stages=STAGES)
        commit(space)
    merged = git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main")
    assert "CONFLICT" in merged.stdout
    assert "pipeline/state/a.json" in merged.stdout
    assert "conflict in pipeline/history" not in merged.stdout
    conflict = Store(left).state_file("a").read_text()
    assert conflict[conflict.index("<<<<<<<") : conflict.index(">>>>>>>")].count('"reason"') == 2
    (difference,) = verify(left)
    assert "merge conflict" in difference["message"]
    assert "verify --repair a" in difference["hint"]
    with pytest.raises(StateError, match="merge conflict"):
        Store(left).state("a")
    Store(left).state_file("a").unlink()
    restore(left)
    assert Store(left).state("a").holds["production"]["reason"] == "holidays", "the later word"
    assert verify(left) == []


def test_a_rollback_on_one_branch_and_a_run_on_another_leave_the_hold_standing(clones):
    left, right = clones("left"), clones("right")
    for space in (left, right):
        (space.root / "servers" / "a" / "source.txt").write_text("two")
    run_pipeline(left, ["a"], stages=STAGES, executor=InProcessExecutor())
    rollback(left, "a", "staging", reason="bad", stages=STAGES)
    run_pipeline(right, ["a"], stages=STAGES, executor=InProcessExecutor())
    for space in (left, right):
        commit(space)
    git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main")
    Store(left).state_file("a").unlink()
    with Store(left).transaction("a") as transaction:
        assert list(transaction.state.holds) == ["staging"]
