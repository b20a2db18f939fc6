"""One server whose folder has another name than its configuration, and one whose file is no TOML: the others go on."""

from __future__ import annotations

import pytest

from tests.cli.recorded_workspaces import make

BROKEN = ("books", "shelf")


@pytest.fixture
def shell(cli):
    """A workspace with one good server between two broken ones."""
    root = cli.folder / "ws"
    make(root, "books", "notes", "shelf")
    (root / "servers/books/mcpfactory.toml").write_text("[server\n")
    (root / "servers/shelf/mcpfactory.toml").write_text('[server]\nname = "rack"\npackage = "rack"\n')
    return cli.at(root)


def test_list_status_and_inbox_show_all_three(shell):
    rows = shell("inspect", "--json").data
    assert [row["server"] for row in rows] == ["books", "notes", "shelf"]
    assert all(row["problem"]["hint"] for row in rows if row["server"] in BROKEN)
    rows = {row["server"]: row for row in shell("pipeline", "status", "--json").data}
    assert rows["notes"].get("problem") is None
    assert set(rows["books"]) == set(rows["notes"]) | {"problem"}
    assert "folder is 'shelf'" in rows["shelf"]["problem"]["message"]
    items = shell("inbox", "--json").data
    assert [item["server"] for item in items if item["kind"] == "problem"] == list(BROKEN)
    assert all("hint:" in item["message"] and item["command"] for item in items if item["kind"] == "problem")
    told = shell("pipeline", "status")
    assert "hint: books:" in told.err
    assert "hint: shelf:" in told.err


def test_a_plan_has_the_good_one_and_says_which_cannot_be_planned(shell):
    done = shell("pipeline", "plan", "--json")
    assert done.code == 5
    verdicts = {(step["server"], step["verdict"]) for step in done.data}
    assert verdicts >= {("books", "broken"), ("shelf", "broken"), ("notes", "run")}
    assert shell("pipeline", "plan", "notes").code == 0


def test_a_run_runs_the_good_one_and_ends_as_broken(shell):
    done = shell("pipeline", "run", "--until", "generate", "--json")
    assert done.code == 5
    lines = done.out.splitlines()
    assert sum('"trouble"' in line for line in lines) == 2
    assert '"notes": "passed"' in lines[-1]


def test_doctor_names_each_with_a_hint(shell):
    done = shell("doctor", "--json")
    assert done.code == 5
    assert {row["about"] for row in done.data if row["level"] == "error" and row["hint"]} == set(BROKEN)


def test_doctor_says_what_is_wrong_with_the_workspace_itself_beside_the_rest(shell):
    with (shell.folder / "mcpfactory.toml").open("a") as file:
        file.write("[pipelin]\n")
    done = shell("doctor", "--json")
    found = {row["about"]: row for row in done.data}
    assert (done.code, found["workspace"]["level"], found["python"]["level"]) == (5, "error", "ok")
    assert "did you mean 'pipeline'?" in found["workspace"]["hint"]
