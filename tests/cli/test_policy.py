"""Approving, promoting, rolling back and holding from the shell: exit codes, what is printed, and the next command to type."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import make, stage


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace whose one server is in staging; to be copied."""
    space = make(tmp_path_factory.mktemp("policy") / "ws", "books")
    stage(space, "books", "one")
    return space.root


@pytest.fixture
def shell(made, tmp_path):
    return InProcessCli(shutil.copytree(made, tmp_path / "ws", symlinks=True))


def history(shell: InProcessCli) -> list[dict]:
    return shell("pipeline", "history", "books", "--json").data


def test_what_is_not_approved_is_refused_with_the_command_that_approves_it(shell):
    done = shell("pipeline", "promote", "books", "--channel", "production")
    assert (done.code, done.out) == (1, "")
    assert "1 of 1 approval missing" in done.err
    hint = next(line for line in done.err.splitlines() if line.startswith("hint: "))
    command = hint.removeprefix("hint: mcpfactory ").split()
    assert shell(*command, "--reason", "looked at it").code == 0
    moved = shell("pipeline", "promote", "books", "--channel", "production")
    assert moved.code == 0
    assert moved.out.startswith("books 1.0 (")
    assert [event["event"] for event in history(shell)][-2:] == ["approved", "promoted"]
    assert history(shell)[-2]["reason"] == "looked at it"
    assert shell("pipeline", "verify").code == 0


def test_a_rollback_holds_the_channel_until_it_is_released(shell):
    from mcpfactory_pipeline.workspace.workspace import Workspace

    first = shell("pipeline", "promote", "books", "--channel", "staging", "--json").data["candidate"]
    stage(Workspace.find(shell.folder), "books", "two")
    back = shell("pipeline", "rollback", "books", "--channel", "staging", "--reason", "two is bad")
    assert (back.code, first in back.out) == (0, True)
    assert "when the channel may move again: mcpfactory pipeline unhold books --channel staging\n" in back.err
    refused = shell("pipeline", "promote", "books", "--channel", "staging")
    assert (refused.code, "staging is held by tester: two is bad" in refused.err) == (1, True)
    assert shell("pipeline", "status", "--json").data[0]["holds"] == {
        "staging": {"actor": "tester", "reason": "two is bad"}
    }
    assert shell("pipeline", "unhold", "books", "--channel", "staging").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("approve", "books"),
        ("promote", "books", "--channel", "staging"),
        ("promote", "--due", "--channel", "production"),
    ],
    ids=" ".join,
)
def test_a_dry_run_says_what_would_be_and_records_nothing(shell, command):
    before = history(shell)
    done = shell("pipeline", *command, "--dry-run")
    assert done.code == 0, done.err
    assert history(shell) == before


def test_a_server_retires_and_comes_back(shell):
    assert shell("pipeline", "retire", "books", "-m", "replaced").out == "books is retired, and out of staging\n"
    (row,) = shell("pipeline", "status", "--json").data
    assert (row["channels"], row["retired"]["reason"]) == ({}, "replaced")
    assert shell("pipeline", "run").code == 0
    assert shell("pipeline", "revive", "books").code == 0


def test_an_edited_state_is_shown_fact_by_fact_and_mended_on_request(shell):
    file = shell.folder / "pipeline/state/books.json"
    right = file.read_text()
    file.write_text(right.replace('"version": "1.0"', '"version": "9.9"'))
    done = shell("pipeline", "verify", "books")
    assert (done.code, '  channels.staging.version: "9.9" → "1.0"' in done.out.splitlines()) == (1, True)
    assert "hint: mcpfactory pipeline verify --repair books" in done.err
    assert shell("pipeline", "hold", "books", "--channel", "staging", "--reason", "r").code == 5
    mended = shell("pipeline", "verify", "--repair", "--json", "books")
    assert (mended.code, [entry["mended"] for entry in mended.data]) == (0, [True])
    assert file.read_text() == right
    assert shell("pipeline", "verify").code == 0
    assert shell("pipeline", "verify", "boks").code == 3
