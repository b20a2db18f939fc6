from __future__ import annotations

from functools import partial
from hashlib import sha256

import pytest

from mcpfactory_pipeline.base.ids import new_id
from tests.cli import recorded_workspaces
from tests.system import git


@pytest.fixture
def shell(empty):
    recorded_workspaces.make(empty.folder / "ws", "books", "tea")
    return empty.at(empty.folder / "ws")


def test_the_workflow_is_written_and_said_to_be_stale_when_it_is(shell):
    place = ".github/workflows/mcpfactory.yml"
    assert shell("ci", "--check").code == 0, "init wrote it"
    (shell.folder / place).write_text("name: mine\n")
    stale = shell("ci", "--check")
    assert (stale.code, stale.out) == (1, "")
    assert "hint: mcpfactory ci" in stale.err
    assert (shell.folder / place).read_text() == "name: mine\n"
    assert shell("ci").out == f"wrote {place}\n"
    assert shell("ci", "--check").code == 0


def test_a_pull_request_that_lowers_a_policy_is_noted_and_not_refused(shell):
    git(shell.folder, "init", "-q")
    git(shell.folder, "add", "-A")
    git(shell.folder, "commit", "-qm", "base")
    assert shell("ci", "--check", "--summary", "summary.md").code == 2
    assert "No changes of policies" in reviewed(shell)
    with (shell.folder / "mcpfactory.toml").open("a") as file:
        file.write("[waivers]\nlimit = 99\n")
    waiver = '[[waivers]]\nrule = "a.b"\nperson = "Ada"\nreason = "later"\nuntil = 2031-01-31\n'
    (shell.folder / "servers/books/waivers.toml").write_text(waiver)
    git(shell.folder, "add", "-A")
    git(shell.folder, "commit", "-qm", "a change")
    told = shell("ci", "--check", "--against", "HEAD^1")
    assert (told.code, told.out.splitlines()[:2]) == (
        0,
        [
            "new waiver: servers/books/waivers.toml: a.b (all tools) until 2031-01-31 by Ada: later",
            "relaxed or changed setting: mcpfactory.toml: waivers.limit: 10 → 99",
        ],
    )
    assert "| new waiver | servers/books/waivers.toml | a.b (all tools)" in reviewed(shell, "HEAD^1")
    kinds = [note["kind"] for note in shell("ci", "--check", "--against", "HEAD^1", "--json").data["notes"]]
    assert kinds == ["new waiver", "relaxed or changed setting"]
    assert shell("ci", "--check", "--against", "unknown").code == 3


def reviewed(shell, base="HEAD") -> str:
    (shell.folder / "summary.md").unlink(missing_ok=True)
    assert shell("ci", "--check", "--against", base, "--summary", "summary.md").code == 0
    return (shell.folder / "summary.md").read_text()


def test_the_workflow_for_releases_is_written_when_it_is_asked_for(shell):
    missing = shell("ci", "--release", "--check")
    assert (missing.code, "hint: mcpfactory ci --release" in missing.err) == (1, True)
    assert shell("ci", "--release").out == "wrote .github/workflows/mcpfactory-release.yml\n"


def test_another_provider_has_files_of_its_own(shell):
    assert shell("ci", "--provider", "nobody").code == 2
    assert shell("ci", "--provider", "gitlab").out == "wrote .gitlab/mcpfactory.yml\n"


def test_servers_of_a_job_come_as_one_text_and_never_as_options(shell):
    refused = shell("ci", "run", "shard", "--servers=--force --jobs 99")
    assert (refused.code, "no server '--force'" in refused.err) == (3, True)


def test_changed_servers_are_assigned(shell):
    made = shell("ci", "matrix", "--json").data
    assert made.pop("run"), "what the jobs run under, and what is folded"
    assert made == {"include": [{"shard": 1, "servers": "books tea"}]}
    *lines, run = shell("ci", "matrix", "--provider", "github").out.splitlines()
    assert lines == ['matrix={"include": [{"shard": 1, "servers": "books tea"}]}', "jobs=1"]
    assert run.startswith("run=")
    with (shell.folder / "mcpfactory.toml").open("a") as file:
        file.write("\n[ci]\nservers = 1\n")
    assert shell("ci", "matrix").out == "1: books\n2: tea\n"


def test_a_folder_that_can_be_no_server_costs_the_others_nothing(shell):
    (shell.folder / "servers/x --force").mkdir()
    (shell.folder / "servers/x --force/mcpfactory.toml").write_text("")
    made = shell("ci", "matrix")
    assert (made.code, made.out) == (0, "1: books tea\n")
    assert "'servers/x --force' cannot be the folder of a server; no CI job includes it" in made.err


def test_results_are_folded_with_a_summary(shell, empty, monkeypatch):
    run_id = new_id()
    monkeypatch.setattr(recorded_workspaces, "finish", partial(recorded_workspaces.finish, run=run_id))
    other = recorded_workspaces.make(empty.folder / "other", "books")
    recorded_workspaces.stage(other, "books", "one")
    packed = empty.at(other.root)("ci", "pack", str(empty.folder / "shard-result"), "books")
    assert (packed.code, packed.out) == (0, "books: 1 file, 3 bytes\n")
    shard_result, assigned = str(empty.folder / "shard-result"), ("--run", run_id, "--server", "books")
    assert shell("ci", "fold", shard_result).code == 2, "of which run and server it is has to be said"
    done = shell("ci", "fold", shard_result, *assigned, "--summary", "summary.md")
    assert (done.code, done.out) == (0, "books: 5 events, 1 file, passed\n"), done.err
    offers = (shell.folder / "pipeline/channels/staging/simple/books/index.html").read_text()
    assert sha256(b"one").hexdigest() in offers, "the bytes that the job checked"
    assert "1 server ran, 1 passed." in (shell.folder / "summary.md").read_text()
    assert shell("pipeline", "verify").code == 0
    assert shell("ci", "fold", "nowhere", *assigned).code == 3
