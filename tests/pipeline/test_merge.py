"""Two clones that worked apart: different servers merge without a conflict, the same server merges to what both histories say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.integrity import channel_folder_faults
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import refresh_views, verify
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


def test_contradicting_decisions_merge_without_a_conflict_and_the_later_one_counts(clones):
    left, right = clones("left"), clones("right")
    for space, reason in ((left, "audit"), (right, "holidays")):
        decision.hold(space, "a", "production", reason=reason, stages=STAGES)
        commit(space)
    assert git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main").returncode == 0
    merged = Store(left).state_file("a").read_text()
    assert ("audit" in merged, "holidays" in merged) == (True, True), "Git kept the lines of both"
    assert verify(left) == []
    assert Store(left).state("a").holds["production"]["reason"] == "holidays"
    decision.unhold(left, "a", "production", stages=STAGES)
    assert "holds" not in Store(left).state_file("a").read_text()


@pytest.mark.parametrize("tracked", [True, False])
def test_a_server_that_both_branches_ran_merges_without_a_conflict(clones, tracked):
    left, right = clones("left"), clones("right")
    for space, text in ((left, "two"), (right, "three")):
        (space.root / "servers" / "a" / "source.txt").write_text(text)
        if not tracked:
            git(space.root, "rm", "-q", "pipeline/state/a.json")
            (space.root / "mcpfactory.toml").write_text('[workspace]\nname = "x"\n[state]\ntracked = false\n')
        run_pipeline(Workspace.find(space.root), ["a"], stages=STAGES, executor=InProcessExecutor())
        commit(space)
    assert git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main").returncode == 0
    left = Workspace.find(left.root)
    assert verify(left) == []
    assert [note["server"] for note in refresh_views(left)] == ["a"] * tracked
    assert verify(left) == refresh_views(left) == []
    assert Store(left).state_file("a").exists() == tracked


def test_a_decision_about_a_candidate_that_the_other_branch_replaced_before_is_no_damage(clones):
    left, right = clones("left"), clones("right")
    (right.root / "servers" / "a" / "source.txt").write_text("two")
    run_pipeline(Workspace.find(right.root), ["a"], stages=STAGES, executor=InProcessExecutor())
    decision.approve(left, "a", "production", stages=STAGES)
    for space in (left, right):
        commit(space)
    assert git(left.root, "pull", "--no-rebase", "--quiet", str(right.root), "main").returncode == 0
    assert '"approvals"' in Store(left).state_file("a").read_text()
    assert verify(left) == []


@pytest.mark.parametrize("options", [("-c", "core.autocrlf=true"), ("--depth", "1"), ("--sparse",), ("worktree",)])
def test_every_kind_of_clone_has_the_same_bytes(clones, tmp_path, options):
    left = clones("left")
    root, other = left.root, tmp_path / "other"
    if options == ("worktree",):
        assert git(root, "worktree", "add", "--quiet", str(other)).returncode == 0
    else:
        assert git(tmp_path, "clone", "--quiet", *options, root.as_uri(), str(other)).returncode == 0
    if options == ("--sparse",):
        git(other, "sparse-checkout", "set", "pipeline", "servers/a")
    space = Workspace.find(other)
    assert verify(space) == refresh_views(space) == channel_folder_faults(space) == []
    for place in ("servers/a/source.txt", "pipeline/history/a.jsonl", "pipeline/state/a.json"):
        assert (other / place).read_bytes() == (root / place).read_bytes()
    assert (other / "servers/b").exists() == (options != ("--sparse",))


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
    with Store(left).transaction("a") as transaction:
        assert list(transaction.state.holds) == ["staging"]
