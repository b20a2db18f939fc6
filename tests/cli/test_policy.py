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


def test_a_rollback_holds_the_channel_until_it_is_released(shell):
    from mcpfactory_pipeline.workspace.workspace import Workspace

    first = shell("pipeline", "promote", "books", "--channel", "staging", "--json").data["candidate"]
    stage(Workspace.find(shell.folder), "books", "two")
    back = shell("pipeline", "rollback", "books", "--channel", "staging", "--reason", "two is bad")
    assert (back.code, first in back.out) == (0, True)
    assert (
        "when the channel may move again: mcpfactory pipeline unhold books --channel staging --reason '…'\n" in back.err
    )
    refused = shell("pipeline", "promote", "books", "--channel", "staging")
    assert (refused.code, "staging is held by tester: two is bad" in refused.err) == (1, True)
    assert shell("pipeline", "status", "--json").data[0]["holds"] == {
        "staging": {"actor": "tester", "reason": "two is bad"}
    }
    assert shell("pipeline", "unhold", "books", "--channel", "staging", "-m", "over").code == 0


def test_a_server_retires_and_comes_back(shell):
    assert shell("pipeline", "retire", "books", "-m", "replaced").out == "books is retired, and out of staging\n"
    (row,) = shell("pipeline", "status", "--json").data
    assert (row["channels"], row["retired"]["reason"]) == ({}, "replaced")
    assert shell("pipeline", "run").code == 0
    assert shell("pipeline", "revive", "books").code == 0
