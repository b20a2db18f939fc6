"""What a new user meets in the first hour: next steps, identity of git, arguments of calls, profiles."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, InProcessCli, WorkspaceCache
from tests.system import git

BOOKS = ("9780141439518", "9780441013593")


def test_without_arguments_a_new_workspace_shows_three_first_steps(empty: InProcessCli) -> None:
    outside = empty()
    assert outside.code == 2
    assert "mcpfactory init " in outside.out
    empty("init", "ws", "--factory", "index")
    inside = InProcessCli(empty.folder / "ws")()
    assert inside.code == 0
    steps = inside.out.splitlines()
    assert len(steps) == 3
    assert all("mcpfactory " in step for step in steps)


def test_doctor_warns_if_git_has_no_identity(empty: InProcessCli) -> None:
    anonymous = {"HOME": str(empty.folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(empty.folder / "none")}
    unset = dict.fromkeys(("EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "")
    strict = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.useConfigOnly", "GIT_CONFIG_VALUE_0": "true"}
    known = {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    for environ, warned in ((anonymous | unset | strict, True), (anonymous | known, False)):
        found = InProcessCli(empty.folder, environ)("doctor", "--json").data
        hints = [one["hint"] for one in found if one["about"] == "git" and one["level"] == "warning"]
        assert [("user.name" in hint, "user.email" in hint) for hint in hints] == [(True, True)] * warned


def test_doctor_warns_once_about_a_server_that_nobody_named(
    workspace_cache: WorkspaceCache, tmp_path: Path, document: str
) -> None:
    made = ("new", "--from-openapi", document, "--name", "bookshop")
    cli = InProcessCli(workspace_cache.copy(tmp_path / "ws", ("--factory", "index"), made))
    warnings = {
        names: sum(line.startswith("warning bookshop:") for line in cli("doctor", *names).out.splitlines())
        for names in ((), ("bookshop",))
    }
    assert warnings == {(): 1, ("bookshop",): 2}
    assert "mcpfactory doctor bookshop" in cli("doctor").out


def test_a_repeated_argument_of_a_call_makes_a_list(shop: InProcessCli) -> None:
    for given in (BOOKS, BOOKS[:1]):
        stock = shop("call", "bookshop", "get_stock", *(word for isbn in given for word in ("-a", f"isbn={isbn}")))
        assert list(json.loads(stock.out)) == list(given), stock.err
    refused = shop("call", "bookshop", "get_book", "-a", "isbn=1", "-a", "isbn=2")
    assert (refused.code, "--arg isbn" in refused.err) == (2, True)


def test_a_repeated_argument_that_may_be_null_makes_a_list(shop: InProcessCli, tmp_path: Path) -> None:
    workspace = InProcessCli(tmp_path / "ws", shop.environ)
    shutil.copytree(shop.folder, workspace.folder, symlinks=True)
    (module,) = workspace.folder.glob("servers/bookshop/src/*/server.py")
    tool = 'def find(labels: list[str] | None = None) -> list[str]:\n    """Find."""\n    return labels or []\n'
    module.write_text(module.read_text().replace("\n\ndef main", f"\n@server.tool\n{tool}\n\ndef main"))
    for labels in (["new"], ["new", "used"]):
        pairs = (word for label in labels for word in ("-a", f"labels={label}"))
        found = workspace("call", "bookshop", "find", *pairs)
        assert json.loads(found.out) == labels, found.err


def test_an_invalid_argument_of_a_call_comes_with_an_example_to_type(shop: InProcessCli) -> None:
    call = ("call", "bookshop", "place_order", "-a", "idempotency_key=order-1")
    refused = shop(*call, "-a", "lines=x", "-a", 'address={"name": "Ada"}')
    assert refused.code == 1
    examples = [line.partition("for example: ")[2] for line in refused.err.splitlines() if "for example" in line]
    typed = [shlex.split(one) for one in examples]
    assert [pair.partition("=")[0] for _, pair in typed] == ["lines", "address"]
    again = shop(*call, *(word for words in typed for word in words))
    assert "Invalid arguments" not in again.out


def test_the_profile_of_a_server_binds_calls(shop: InProcessCli, tmp_path: Path) -> None:
    workspace = InProcessCli(tmp_path / "ws", shop.environ)
    shutil.copytree(shop.folder, workspace.folder, symlinks=True)
    config = workspace.folder / "servers/bookshop/mcpfactory.toml"
    config.write_text(config.read_text().replace("[server]\n", '[server]\nprofile = "read-only"\n'))
    assert workspace("update", "bookshop").code == 0
    change = ("call", "bookshop", "change_book", "-a", f"isbn={BOOKS[0]}", "-a", "stock=4")
    refused = workspace(*change)
    assert (refused.code, "'read-only'" in refused.err, "--profile full" in refused.err) == (3, True, True)
    assert workspace(*change, "--profile", "full").code == 0
    assert workspace("call", "bookshop", "list_books").code == 0


def test_an_optional_credential_says_how_many_tools_need_it(shop: InProcessCli) -> None:
    row = next(
        line for line in shop("inspect", "bookshop").out.splitlines() if line.startswith("MCPF_BOOKSHOP_API_KEY")
    )
    assert "needed by 7 of 11 tools" in row


def test_inspect_names_the_header_of_an_argument(shop: InProcessCli) -> None:
    assert "idempotency_key(header Idempotency-Key), lines(body)" in shop("inspect", "bookshop").out


def test_a_setting_that_new_suggests_comes_with_file_and_command(
    shop: InProcessCli, tmp_path: Path, document: str
) -> None:
    InProcessCli(tmp_path)("init", "ws", "--factory", "index")
    made = InProcessCli(tmp_path / "ws")("new", "--from-openapi", document, "--name", "books")
    assert "servers/books/mcpfactory.toml: mcpfactory update books" in made.out
    assert made.err.splitlines()[-1].startswith("next: mcpfactory inspect books")


def test_an_exported_dashboard_that_git_would_track_is_noted(shop: InProcessCli, tmp_path: Path) -> None:
    InProcessCli(tmp_path)("init", "ws", "--factory", "index")
    workspace = InProcessCli(tmp_path / "ws")
    noted = workspace("dashboard", "--export", "pages")
    assert (noted.code, "echo /pages/ >> " in noted.err) == (0, True)
    assert ".gitignore" not in workspace("dashboard", "--export", "site").err
    assert git(workspace.folder, "status", "--short", "site") == ""


def test_a_run_names_the_worst_findings_and_a_partial_run_no_decision(tmp_path: Path) -> None:
    InProcessCli(tmp_path)("init", "ws", "--factory", "index")
    workspace = InProcessCli(tmp_path / "ws")
    assert workspace("new", "hello", "--template", "minimal").code == 0
    whole = workspace("pipeline", "run")
    assert whole.code == 0, whole.err
    notes = [line for line in whole.err.splitlines() if line.startswith("hello: ")]
    assert any("packaging.license" in line for line in notes)
    assert "mcpfactory pipeline history hello validate" in whole.err
    assert "next: mcpfactory pipeline approve hello" in whole.err
    partial = workspace("pipeline", "run", "--until", "generate", "--force")
    assert (partial.code, "next:" in partial.err) == (0, False)


@pytest.mark.parametrize("known", [False, True])
def test_installing_again_prints_no_error_of_uv(tmp_path: Path, known: bool) -> None:
    said = {"CODE": "2", "SAID": "error: already there"} if known else {"CODE": "0", "SAID": "Updated .profile"}
    (tmp_path / "bin").mkdir()
    for name, text in (
        ("uv", 'case "$2" in dir) echo "$TOOLS" ;; *) echo "$SAID" >&2; exit "$CODE" ;; esac'),
        ("mcpfactory", "echo mcpfactory 1"),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environ = {**os.environ, "HOME": str(tmp_path), "TOOLS": str(tmp_path / "bin"), "SHELL": "", **said}
    done = subprocess.run(
        ["bash", str(ROOT / "factory/shell.sh"), "add", str(tmp_path / "bin/uv")],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "error" not in done.stdout + done.stderr
    assert ("Updated .profile" in done.stdout) is not known
    assert (f'export PATH="{tmp_path}/bin' in done.stdout) is known
