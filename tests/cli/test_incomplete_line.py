"""A write that broke off leaves half a line in a history: it counts for nothing, stops nothing, and is told until it is taken away."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.state.store import Store
from tests.cli.recorded_workspaces import finish, make

HALF = '{"at": "2026-01-01T00:00:00Z", "event": "he'
SAYS = f"pipeline/history/books.jsonl ends in half a line of {len(HALF)} bytes"


@pytest.fixture
def broken_off(cli):
    """Two servers that passed a stage; a write into the history of one broke off."""
    root = cli.folder / "ws"
    space = make(root, "books", "notes")
    for name in ("books", "notes"):
        finish(space, name, "generate")
    with Store(space).history_file("books").open("a", encoding="utf-8") as stream:
        stream.write(HALF)
    return cli.at(root)


def test_it_is_told_and_says_nothing_about_where_the_server_stands(broken_off):
    rows = {row["server"]: row for row in broken_off("pipeline", "status", "--json").data}
    assert rows["books"]["half_written"]["message"].startswith(SAYS)
    assert rows["notes"]["half_written"] is None
    assert "problem" not in rows["books"]
    assert rows["books"]["stages"]["generate"]["outcome"] == rows["notes"]["stages"]["generate"]["outcome"] == "passed"
    told = broken_off("pipeline", "status")
    assert f"books: {SAYS}" in told.err
    assert "hint: the next write takes it away, or: mcpfactory pipeline verify books --repair" in told.err
    first = broken_off("inbox", "--json").data[0]
    assert (first["kind"], first["server"], first["about"]) == ("problem", "books", "history")
    assert first["command"] == "mcpfactory pipeline verify books --repair"
    client = TestClient(create_app(broken_off.folder), base_url="http://127.0.0.1")
    page = client.get("/servers/books/", headers={"Accept": "text/html"}).text
    assert SAYS in page
    assert "mcpfactory pipeline verify books --repair</code>" in page
    assert SAYS not in client.get("/servers/notes/", headers={"Accept": "text/html"}).text


def test_verify_tells_it_and_its_repair_takes_it_away(broken_off):
    done = broken_off("pipeline", "verify")
    assert (done.code, f"books: {SAYS}" in done.out) == (0, True)
    file = broken_off.folder / "pipeline/history/books.jsonl"
    before = file.read_text(encoding="utf-8")
    mended = broken_off("pipeline", "verify", "--repair")
    assert (mended.code, "1 repaired" in mended.err) == (0, True)
    assert file.read_text(encoding="utf-8") == before.removesuffix(HALF)
    assert "half a line" not in broken_off("pipeline", "verify").out
    assert {row["half_written"] for row in broken_off("pipeline", "status", "--json").data} == {None}
