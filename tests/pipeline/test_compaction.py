"""Compaction: old results leave the history, and no decision, offer or fact of the state with them."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcpfactory_pipeline.decisions.integrity import faults
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import compact_histories, refresh_views, verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli
from tests.cli.terminal_capture import run as command
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.system import git

ATTRIBUTES = "pipeline/history/*.jsonl -text merge=union\npipeline/state/*.json -text merge=union\n"


def build(space: Workspace, *sources: str, outcome: str = "passed") -> None:
    from mcpfactory_pipeline.run.run import run_pipeline

    folder = space.root / "servers" / "books"
    for source in sources:
        (folder / "source.txt").write_text(source)
        (folder / "tests" / "outcome.txt").write_text(outcome)
        run_pipeline(space, ["books"], stages=STAGES, executor=InProcessExecutor(), jobs=1)


@pytest.fixture
def old(workspace: Workspace) -> Workspace:
    """A committed server with many candidates, of which the first is still in production."""
    add_server(workspace.root, "books")
    build(workspace, "one")
    store = Store(workspace)
    with store.transaction("books") as transaction:
        candidate = str(transaction.state.candidate)
        about = {"channel": "production", "candidate": candidate, "version": "1.0"}
        transaction.append("approved", **about, reason="fine")
        transaction.append("promoted", **about)
    build(workspace, "bad", outcome="failed")
    build(workspace, *(f"source {number}" for number in range(14)))
    (workspace.root / ".gitattributes").write_text(ATTRIBUTES)
    git(workspace.root, "init", "-q")
    commit(workspace)
    return workspace


def commit(space: Workspace) -> None:
    git(space.root, "add", ".gitattributes", "mcpfactory.toml", "servers", "pipeline/history", "pipeline/state")
    git(space.root, "commit", "-qm", "all")


def facts(space: Workspace) -> object:
    state = fold("books", Store(space).history("books"))
    return state, state.timeline


def test_what_nothing_needs_becomes_one_event_and_the_state_is_the_same(old):
    store, before, whole = Store(old), facts(old), Store(old).history("books")
    view, lines = store.state_file("books").read_bytes(), store.history_file("books").read_bytes().splitlines()
    assert compact_histories(old, (), days=30) == ({}, []), "another branch may need what is new"
    wait_a_second()
    planned, _ = compact_histories(old, (), days=0, dry_run=True)
    assert store.history_file("books").read_bytes().splitlines() == lines
    assert compact_histories(old, (), days=0) == (planned, [])
    replaced = planned["books"]
    left = Store(old).history("books")
    assert facts(old) == before
    assert len(left) == len(whole) - replaced + 1
    assert left[-1]["event"] == "compacted"
    assert {e["id"] for e in whole if not e["event"].startswith("stage.")} <= {e["id"] for e in left}
    assert set(store.history_file("books").read_bytes().splitlines()[:-1]) <= set(lines), (
        "lines that stay are as they were"
    )
    assert store.state_file("books").read_bytes() == view
    assert faults(old) == []
    build(old, "the next")
    assert max(one.number for one in Store(old).state("books").candidates.values()) == 17
    assert verify(old) == []
    commit(old)
    assert verify(old) == []


def wait_a_second() -> None:
    """Times of events have no fractions: let what was recorded be older than now."""
    from tests.timeouts import wait_until

    second = datetime.now(UTC).second
    wait_until(lambda: datetime.now(UTC).second != second)


def test_a_branch_with_all_lines_and_a_compacted_one_merge_to_the_same_state(old, tmp_path):
    for name in ("compacted", "whole"):
        git(old.root, "clone", "-q", str(old.root), str(tmp_path / name))
    compacted, whole = (Workspace.find(tmp_path / name) for name in ("compacted", "whole"))
    build(whole, "of the other branch")
    commit(whole)
    expected = facts(whole)
    wait_a_second()
    assert compact_histories(compacted, (), days=0)[0]
    commit(compacted)
    git(compacted.root, "pull", "-q", "--no-rebase", "--no-edit", str(whole.root), "HEAD")
    refresh_views(compacted)
    assert facts(compacted) == expected
    assert verify(compacted) == []
    lines = Store(compacted).history_file("books")
    lines.write_bytes(Store(whole).history_file("books").read_bytes() + lines.read_bytes())  # all old lines come back
    assert facts(Workspace.find(compacted.root)) == expected


def test_uncommitted_events_are_refused_and_the_other_servers_are_compacted(old):
    shutil.copytree(old.root / "servers/books", old.root / "servers/shelves")
    shutil.copy(old.pipeline / "history/books.jsonl", old.pipeline / "history/shelves.jsonl")
    (old.pipeline / "history/damaged.jsonl").write_text("{}\n")
    commit(old)
    build(old, "not committed")
    lines = Store(old).history_file("books").read_bytes()
    wait_a_second()
    done = InProcessCli(old.root)("pipeline", "prune", "--history", "--days", "0")
    assert done.code == 5
    assert "books: pipeline/history/books.jsonl has uncommitted changes" in done.err
    assert "damaged: " in done.err
    assert re.fullmatch(r"shelves: \d+ events replaced by one\n", done.out)
    assert Store(old).history_file("books").read_bytes() == lines


@pytest.mark.parametrize("forgery", ["a rejection", "a failure", "another hash", "another reason"])
def test_a_compaction_hides_nothing_that_counts(old, forgery):
    store = Store(old)
    with store.transaction("books") as transaction:
        known = str(transaction.state.candidate)
        transaction.append("rejected", channel="production", candidate=known, version="1.0", reason="it leaks")
    build(old, "last", outcome="failed")
    commit(old)
    wait_a_second()
    assert compact_histories(old, (), days=0)[0]
    events = Store(old).history("books")
    kinds = {"a rejection": "rejected", "a failure": "stage.finished"}
    changes = {
        "another hash": ("compacted", {"sha256": "sha256:" + "0" * 64}),
        "another reason": ("approved", {"reason": "?"}),
    }
    gone = [one for one in events if one["event"] == kinds.get(forgery)][-1:]
    kind, change = changes.get(forgery, ("", {}))
    left = [one | (change if one["event"] == kind else {}) for one in events if one not in gone]
    store.history_file("books").write_text("".join(json.dumps(one) + "\n" for one in left))
    assert "is not what HEAD has" in verify(Workspace.find(old.root))[0]["message"]


def test_the_command_says_what_it_does(old):
    wait_a_second()
    planned = command(["pipeline", "prune", "--history", "--days", "0", "--dry-run"], old.root, terminal=False)
    done = command(["pipeline", "prune", "--history", "--days", "0"], old.root, terminal=False)
    assert (planned.code, done.code) == (0, 0)
    assert planned.text == done.text.replace("replaced", "would be replaced")
    assert re.fullmatch(r"books: \d+ events replaced by one\n", done.text)
    shown = command(
        ["pipeline", "history", "books"], Path(shutil.copytree(old.root, old.root.parent / "copy")), terminal=False
    )
    assert "compacted" in shown.text
