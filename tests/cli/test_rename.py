"""A server under another name: it runs, its own tests pass, `update` has nothing to say, and its history is honest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory_pipeline.decisions.decision import hold
from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
from mcpfactory_pipeline.maintenance.rename import rename
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.recorded_workspaces import contents, interrupt, make, stage


@pytest.fixture
def workspace(cli, workspace_cache):
    workspace_cache.copy(cli.folder / "ws", ("--factory", "index"))
    return cli.at(cli.folder / "ws")


def own_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_server_from_a_document_has_another_name_everywhere(workspace, document):
    assert workspace("new", "--from-openapi", document, "--name", "bookshop").code == 0
    old = workspace.folder / "servers/bookshop"
    server = old / "src/bookshop_mcp/server.py"
    server.write_text(server.read_text() + "\n# bookshop_mcp is mine; MCPF_BOOKSHOP_API_KEY opens it\n")
    (old / "src/bookshop_mcp/extra.py").write_text("from bookshop_mcp import __version__\n\nprint(__version__)\n")
    planned = workspace("rename", "bookshop", "book-store", "--dry-run", "--json").data
    assert (old / "mcpfactory.toml").exists()
    read = ("BASE_URL", "ALLOW_PRIVATE", "TIMEOUT", "CA_FILE", "API_KEY")
    assert planned["variables"] == {f"MCPF_BOOKSHOP_{one}": f"MCPF_BOOK_STORE_{one}" for one in read}
    done = workspace("rename", "bookshop", "book-store", "--json")
    assert done.data == {**planned, "dry_run": False, "next": "mcpfactory pipeline run book-store"}
    assert sorted(path.name for path in (workspace.folder / "servers").iterdir()) == [".gitkeep", "book-store"]
    new = workspace.folder / "servers/book-store"
    assert (new / "src/book_store_mcp/extra.py").read_text().startswith("from book_store_mcp import")
    assert (
        "# book_store_mcp is mine; MCPF_BOOKSHOP_API_KEY opens it" in (new / "src/book_store_mcp/server.py").read_text()
    )
    mentions = [(one["path"], one["text"]) for one in done.data["mentions"]]
    assert ("src/book_store_mcp/server.py", "# book_store_mcp is mine; MCPF_BOOKSHOP_API_KEY opens it") in mentions
    left = [path for path in new.rglob("*") if path.is_file() and b"bookshop_mcp" in path.read_bytes()]
    assert [path.relative_to(new).as_posix() for path in left if path.suffix != ".pyc"] == []
    assert workspace("update", "book-store", "--json").data["files"] == [
        {"path": path, "action": "keep", "owner": "person", "note": ""} for path in ("src/book_store_mcp/server.py",)
    ]
    ran = own_tests(new)
    assert ran.returncode == 0, ran.stdout


def test_a_server_from_a_template_has_another_name_and_its_own_tests_pass(workspace):
    assert workspace("new", "notes", "--template", "minimal").code == 0
    assert workspace("rename", "notes", "memos").code == 0
    assert "up to date" in workspace("update", "memos").out
    assert (workspace.folder / "servers/memos/README.md").read_text().startswith("# Memos")
    ran = own_tests(workspace.folder / "servers/memos")
    assert ran.returncode == 0, ran.stdout


def test_a_folder_that_was_moved_by_hand_is_brought_in_line(workspace):
    assert workspace("new", "notes", "--template", "minimal").code == 0
    servers = workspace.folder / "servers"
    (servers / "notes").rename(servers / "memos")
    assert "mcpfactory rename notes memos" in workspace("inspect", "memos").err
    assert workspace("rename", "notes", "memos").code == 0
    assert [row.get("problem") for row in workspace("inspect", "--json").data] == [None]
    assert (servers / "memos/src/memos_mcp/server.py").exists()


@pytest.fixture
def staged(cli):
    """`shop` is in staging, and somebody holds its production."""
    space = make(cli.folder / "ws", "shop")
    stage(space, "shop", "one")
    hold(space, "shop", "production", reason="audit")
    return cli.at(space.root)


def test_the_old_history_is_closed_and_the_new_one_says_where_it_comes_from(staged):
    done = staged("rename", "shop", "store")
    assert done.code == 0, done.err
    assert "staging: without shop" in done.out
    assert "production: stays held" in done.out
    last = staged("pipeline", "history", "shop", "--json").data[-1]
    assert (last["event"], last["gone"]) == ("retired", "renamed to store")
    first, second = staged("pipeline", "history", "store", "--json").data
    assert (first["event"], first["previous"]) == ("renamed", "shop")
    assert (second["event"], second["channel"], "audit" in second["reason"]) == ("held", "production", True)
    assert staged("pipeline", "verify").code == 0
    row = staged("pipeline", "status", "store", "--json").data[0]
    assert (row["candidate"], row["channels"], list(row["holds"])) == (None, {}, ["production"])
    assert not (staged.folder / "pipeline/channels/staging/simple/shop/index.html").exists()
    assert [item for item in staged("inbox", "--json").data if item["kind"] == "drift"] == []


def test_a_rename_that_is_interrupted_changed_nothing(staged):
    before = contents(staged.folder)
    with pytest.raises(KeyboardInterrupt):
        rename(Workspace.find(staged.folder), "shop", "store", read_user_paths({"HOME": "/nowhere"}), clock=interrupt)
    assert contents(staged.folder) == before
    assert staged("rename", "shop", "store").code == 0


def test_what_cannot_be_renamed_is_as_it_was(staged):
    make_other = Workspace.find(staged.folder)
    (make_other.root / "servers/taken").mkdir()
    before = contents(staged.folder)
    for words, code, said in (
        (("shop", "shop"), 1, "already has the name"),
        (("shop", "taken"), 1, "already exists"),
        (("shop", "No Name"), 4, "is not a valid server name"),
        (("shpo", "store"), 3, "did you mean 'shop'?"),
    ):
        done = staged("rename", *words)
        assert (done.code, said in done.err, "hint:" in done.err) == (code, True, True), done.err
    assert contents(staged.folder) == before
    assert staged("pipeline", "retire", "shop", "--reason", "x").code == 0
    assert staged("rename", "shop", "store").code == 1
