"""Manifests: details that only this machine has. A fresh clone decides and shows all the rest without them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.state.manifest import with_details
from mcpfactory_pipeline.state.store import Store
from tests.cli.terminal_capture import run as command
from tests.pipeline.staged_workspace import two_in_production

HTML = {"Accept": "text/html"}


def manifest(workspace, stage: str) -> Path:
    record = Store(workspace).state("books").stages[stage]
    return workspace.artifacts / "books" / "manifests" / f"{record.manifest}.json"


def verify(workspace, *arguments: str):
    return command(["pipeline", "verify", *arguments], workspace.root, terminal=False)


def test_a_manifest_has_what_the_line_leaves_out(books):
    event = next(one for one in Store(books.workspace).history("books") if one["stage"] == "test")
    assert {"artifacts", "reasons", "made_from", "fingerprint"}.isdisjoint(event)
    detailed = with_details(event, manifest(books.workspace, "test").parent)
    assert detailed["reasons"] == ["never run"]
    assert set(detailed["artifacts"]) == {"logs/test.log", f"{books.state.candidate}/test/report.txt"}


@pytest.mark.parametrize("changed", ["manifest", "report"])
def test_a_changed_manifest_or_report_is_damage_and_a_missing_one_is_not(books, changed):
    assert verify(books.workspace).code == 0
    report = books.workspace.artifacts / "books" / str(books.state.candidate) / "test" / "report.txt"
    file = manifest(books.workspace, "test") if changed == "manifest" else report
    before = file.read_bytes()
    file.write_bytes(before.replace(b"e", b"3"))
    done = verify(books.workspace)
    assert (done.code, file.name in done.text) == (1, True), done.text
    file.unlink()
    assert verify(books.workspace).code == 0


def test_a_manifest_that_cannot_be_written_ends_the_run_of_its_server_and_nothing_is_recorded(books):
    before = Store(books.workspace).history_file("books").read_bytes()
    folder = manifest(books.workspace, "test").parent
    shutil.rmtree(folder)
    folder.write_text("in the way")
    (books.workspace.root / "servers" / "books" / "source.txt").write_text("two")
    assert books.run("books").servers == {"books": "errored"}
    assert Store(books.workspace).history_file("books").read_bytes() == before


def test_a_log_of_a_later_attempt_is_no_damage(books):
    (books.workspace.artifacts / "books" / "logs" / "test.log").write_text("another attempt")
    assert verify(books.workspace).code == 0


def test_a_fresh_clone_decides_and_shows_everything_without_manifests(books):
    first, second = two_in_production(books)
    root = books.workspace.root
    with_pages = TestClient(create_app(root), base_url="http://127.0.0.1", headers=HTML)
    run = Store(books.workspace).history("books")[0]["run"]
    paths = ("/", "/board/", "/servers/books/", "/runs/", f"/runs/{run}/", f"/runs/{run}/books/", "/graph/")
    shutil.rmtree(books.workspace.artifacts / "books" / "manifests")
    shutil.rmtree(books.workspace.artifacts / "books" / "logs")
    shutil.rmtree(books.workspace.pipeline / "locks")
    assert {path: with_pages.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
    (row,) = json.loads(command(["pipeline", "status", "books", "--json"], root, terminal=False).text)
    assert "problem" not in row
    assert verify(books.workspace).code == 0
    books.rollback()
    assert books.state.offered("production") == first
    assert {one.outcome for one in restore(books.workspace, ["books"], rebuild=False)} <= {"there", "restored"}
    assert second != first
