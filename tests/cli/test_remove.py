"""Servers go: by `remove`, or because somebody deleted a folder. State and history stay true, and nothing goes on by mistake."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
from mcpfactory_pipeline.maintenance.remove import remove
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli import terminal_capture
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import contents, interrupt, make, stage
from tests.system import git


@pytest.fixture
def shell(tmp_path):
    """`shop` is in staging, `notes` never ran; everything is committed."""
    space = make(tmp_path / "ws", "notes", "shop")
    stage(space, "shop", "one")
    for words in (["init", "-q"], ["config", "user.email", "a@example.com"], ["config", "user.name", "Ada"]):
        git(space.root, *words)
    commit(space.root)
    return InProcessCli(space.root, {"HOME": str(tmp_path / "home")})


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def events(shell, name):
    return [event["event"] for event in shell("pipeline", "history", name, "--json").data]


def page(shell):
    return shell.folder / "pipeline/channels/staging/simple/shop/index.html"


def test_nothing_is_removed_without_a_yes_and_a_dry_run_says_what_would_be(shell):
    refused = shell("remove", "shop")
    assert (refused.code, "hint: mcpfactory remove shop --yes" in refused.err) == (2, True)
    planned = shell("remove", "shop", "--dry-run")
    assert planned.code == 0
    assert [line.split(":")[0] for line in planned.out.splitlines()] == [
        "servers/shop", "pipeline/artifacts/shop", "staging", "pipeline/history/shop.jsonl",
    ]  # fmt: skip
    assert all("would be" in line for line in planned.out.splitlines())
    assert page(shell).exists()
    assert (shell.folder / "servers/shop/mcpfactory.toml").exists()
    assert "retired" not in events(shell, "shop")


def test_a_person_at_a_terminal_sees_what_would_be_removed_before_the_question(shell):
    command = ("remove", "notes")
    done = terminal_capture.run(
        command, shell.folder, terminal=True, typed="n\n", **shell.environ, MCPFACTORY_ACTOR="tester"
    )
    assert (done.code, "servers/notes: would be removed" in done.text) == (1, True), done.text
    assert "remove it? [y/N]" in done.text
    assert (shell.folder / "servers/notes").exists()


def test_a_removed_server_is_in_no_channel_and_its_history_says_who_removed_it(shell):
    done = shell("remove", "shop", "--yes", "--reason", "the API is no more", "--json")
    assert (done.code, done.data["channels"], done.data["kept"]) == (0, ["staging"], False)
    assert not (shell.folder / "servers/shop").exists()
    assert sorted(path.name for path in (shell.folder / "servers").iterdir()) == [".gitkeep", "notes"]
    assert not (shell.folder / "pipeline/artifacts/shop").exists()
    assert not page(shell).exists()
    last = shell("pipeline", "history", "shop", "--json").data[-1]
    assert (last["event"], last["gone"], last["reason"], last["actor"]) == (
        "retired", "removed", "the API is no more", "tester",
    )  # fmt: skip
    assert shell("pipeline", "verify").code == 0
    state = json.loads((shell.folder / "pipeline/state/shop.json").read_text())
    assert ("channels" in state, state["retired"]["gone"]) == (False, "removed")
    assert [item["server"] for item in shell("inbox", "--json").data] == ["notes"]
    again = shell("remove", "shop", "--yes")
    assert (again.code, "was already removed" in again.err, "hint:" in again.err) == (1, True, True)
    assert shell("inspect", "--json").data[0]["server"] == "notes"


def test_a_removal_that_is_interrupted_changed_nothing(shell):
    before = contents(shell.folder / "servers") | contents(shell.folder / "pipeline")
    with pytest.raises(KeyboardInterrupt):
        remove(Workspace.find(shell.folder), "shop", read_user_paths({"HOME": "/nowhere"}), clock=interrupt)
    assert contents(shell.folder / "servers") | contents(shell.folder / "pipeline") == before
    assert shell("remove", "shop", "--yes").code == 0


def test_channels_are_kept_by_choice_and_that_is_no_drift(shell):
    done = shell("remove", "shop", "--yes", "--keep-channels")
    assert "staging: continues to offer it" in done.out
    assert page(shell).exists()
    assert (shell.folder / "pipeline/artifacts/shop").exists()
    assert shell("pipeline", "verify").code == 0
    assert [item["server"] for item in shell("inbox", "--json").data] == ["notes"]
    assert shell("remove", "shop", "--yes").code == 0  # and later they are emptied, too
    assert not page(shell).exists()
    assert shell("pipeline", "verify").code == 0


def test_a_server_that_never_ran_leaves_nothing(shell):
    assert shell("remove", "notes", "--yes").code == 0
    assert not (shell.folder / "pipeline/history/notes.jsonl").exists()
    assert shell("remove", "notes", "--yes").code == 3


@pytest.mark.parametrize("path", ["servers/shop/idea.py", "servers/shop/mcpfactory.toml", "servers/shop/.env"])
def test_what_git_could_not_bring_back_is_not_removed_without_force(shell, path):
    file = shell.folder / path
    file.write_text(file.read_text() + "\n" if file.exists() else "x = 1\n")
    refused = shell("remove", "shop", "--yes")
    assert (refused.code, path in refused.err, "--force" in refused.err) == (1, True, True)
    assert file.exists()
    assert "retired" not in events(shell, "shop")
    assert shell("remove", "shop", "--yes", "--force").code == 0
    assert not file.exists()


def test_a_deleted_folder_is_drift_until_the_command_is_typed_that_stands_beside_it(shell):
    shutil.rmtree(shell.folder / "servers/shop")
    (item,) = (item for item in shell("inbox", "--json").data if item["kind"] == "drift")
    assert (item["server"], item["about"], item["command"]) == ("shop", "gone", "mcpfactory remove shop")
    assert "staging still offers it" in item["message"]
    assert shell("dashboard", "--export", "site").code == 0
    shown = (shell.folder / "site/index.html").read_text()
    assert item["command"] in shown
    assert "servers/shop/" not in shown.replace(item["message"], "")  # there is no page of it to go to
    assert shell(*item["command"].split()[1:], "--yes").code == 0
    assert not page(shell).exists()
    assert not [item for item in shell("inbox", "--json").data if item["kind"] == "drift"]
    assert shell("pipeline", "verify").code == 0


def test_a_channel_folder_of_this_machine_that_offers_what_somebody_else_removed_is_drift(shell):
    folder = shell.folder / "pipeline/channels"
    shutil.copytree(folder, shell.folder / "kept")
    assert shell("remove", "shop", "--yes").code == 0
    shutil.rmtree(folder)
    (shell.folder / "kept").rename(folder)  # as after a pull: the state is new, the folder is not
    (item,) = (item for item in shell("inbox", "--json").data if item["kind"] == "drift")
    assert "on this machine still offers it in staging" in item["message"]
    before = events(shell, "shop")
    assert shell("remove", "shop", "--yes").code == 0
    assert not page(shell).exists()
    assert events(shell, "shop") == before  # it was said already


def test_the_entries_of_clients_are_told_with_the_command_that_takes_them_out(shell):
    folder = shell.folder / "servers/shop"
    (folder / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1.0"\n')
    commit(shell.folder)
    for scope in ((), ("--project",)):
        assert shell("install", "shop", "--client", "cursor", "--from", "source", *scope).code == 0
    told = shell("remove", "shop", "--dry-run")
    assert "hint: mcpfactory uninstall shop --client cursor\n" in told.err
    assert "hint: mcpfactory uninstall shop --client cursor --project\n" in told.err


def test_a_repository_inside_is_not_removed_without_force(shell):
    """The workspace has its commit alone, and git is not asked in there what else is."""
    cli = shell.folder / "servers/shop/inside"
    cli.mkdir()
    subprocess.run(["git", "init", "-q", str(cli)], check=True)
    (cli / "a.txt").write_text("a")
    commit(cli)
    commit(shell.folder)
    refused = shell("remove", "shop", "--yes")
    assert (refused.code, "servers/shop/inside" in refused.err) == (1, True)
    assert (cli / "a.txt").exists()


def test_without_git_everything_would_be_lost(tmp_path):
    make(tmp_path / "ws", "shop")
    shell = InProcessCli(tmp_path / "ws")
    assert "servers/shop/" in shell("remove", "shop", "--yes").err
    assert shell("remove", "shop", "--yes", "--force").code == 0
