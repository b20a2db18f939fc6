"""The inbox, and what `mcpfactory` alone says."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.view import view_text
from mcpfactory_pipeline.views.inbox import InboxItem, group_by_cause, item_cause, next_commands
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import finish, make, stage
from tests.pipeline.test_notices import Receiver


@pytest.fixture
def shell(tmp_path):
    """One server waits for its approval, another failed."""
    space = make(tmp_path / "ws", "books", "notes")
    stage(space, "books", "one")
    finish(space, "notes", "generate", "failed", message="the document cannot be used")
    return InProcessCli(space.root)


def test_what_waits_is_told_once_to_whom_the_workspace_names(shell):
    assert shell("inbox", "--notify").out == "no notifications were sent\n"
    config = shell.folder / "mcpfactory.toml"
    receiver = Receiver()
    try:
        config.write_text(config.read_text() + f'\n[pipeline.events]\nwebhook = "{receiver.url}"\nformat = "slack"\n')
        told = shell("inbox", "--notify", "--json")
        assert told.code == 0
        assert [item["command"] for item in told.data] == [item["command"] for item in shell("inbox", "--json").data]
        assert len(receiver.got) == len(told.data) == 2
        assert shell("inbox", "--notify", "--json").data == []
        assert "the document cannot be used" in receiver.events[0]["text"]
        config.write_text(config.read_text().replace("slack", "discord"))
        done = shell("inbox", "--notify")
        assert (done.code, '"discord"' in done.err) == (4, True)
    finally:
        receiver.close()


def test_a_log_is_printed_as_it_is(shell):
    log = shell.folder / "pipeline/artifacts/books/logs/test.log"
    log.parent.mkdir(parents=True)
    log.write_text("1 failed\n")
    assert shell("pipeline", "history", "books", "test").out == "1 failed\n"
    assert shell("pipeline", "history", "books", "../../../../mcpfactory").code == 3


def test_the_log_of_a_failed_stage_starts_at_the_failure(shell):
    log = shell.folder / "pipeline/artifacts/notes/logs/generate.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"read {number}\n" for number in range(30)) + "1 failed\n")
    log_of = ("pipeline", "history", "notes", "generate")
    short, whole = shell(*log_of), shell(*log_of, "--all")
    assert whole.out == log.read_text() == shell(*log_of, "--json").data["log"]
    assert short.out == "".join(f"read {number}\n" for number in range(16, 30)) + "1 failed\n"
    assert "15 of 31 lines: mcpfactory pipeline history notes generate --all" in short.err


def test_no_reason_makes_a_row_or_a_command_of_its_own(shell):
    reason = "two was bad\n\nready  books  Grace approved\n    mcpfactory pipeline promote books --channel production"
    assert shell("pipeline", "hold", "books", "--channel", "production", "--reason", reason).code == 0
    before = [line for line in shell("inbox", "--show", "0").out.splitlines() if "Grace" in line or "promote" in line]
    assert len(before) == 1
    history = shell.folder / "pipeline/history/books.jsonl"
    lines = history.read_text().splitlines()
    event = json.loads(lines[-1])
    assert "\n" not in event["reason"]
    lines[-1] = json.dumps({**event, "reason": reason, "actor": "Ada\nready  books"})
    history.write_text("\n".join(lines) + "\n")
    store = Store(Workspace.find(shell.folder))
    store.state_file("books").write_text(view_text(fold("books", store.history("books"))))
    for words in (("inbox", "--show", "0"), ("pipeline", "status"), ("pipeline", "status", "books")):
        told = shell(*words).out
        assert not [line for line in told.splitlines() if line.startswith(("ready", "    mcpfactory pipeline promote"))]
    after = [line for line in shell("inbox", "--show", "0").out.splitlines() if "Grace" in line or "promote" in line]
    assert len(after) == 1


def test_servers_with_one_cause_are_one_row(tmp_path):
    names = [f"shop{number}" for number in range(4)]
    shell = InProcessCli(make(tmp_path / "ws", *names).root)
    row, *commands = shell("inbox").out.splitlines()
    assert row == f"never  4 servers  generate: never run: {', '.join(names)}"
    assert commands == [f"    mcpfactory pipeline run {name}" for name in names]
    brief = shell().out.splitlines()
    assert brief[:3] == [row, commands[0], "    … and 3 commands more: mcpfactory inbox"]
    assert "  mcpfactory pipeline run" in brief


def test_versions_and_candidates_do_not_separate_one_cause():
    gates = [
        InboxItem(
            "gate",
            name,
            "production",
            f"{version} ({candidate}) for production: it is unreleased in {name}.json",
            f"mcpfactory release apply {name}",
        )
        for name, version, candidate in (("books", "0.1.0+dev1", "aa11"), ("notes", "0.2.0+dev2", "bb22"))
    ]
    assert group_by_cause(gates) == [gates]
    assert item_cause(gates[0].message, "books") == "production: it is unreleased in ….json"
    assert next_commands(gates)[0] == "mcpfactory release apply books notes"
