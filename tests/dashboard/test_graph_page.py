"""The picture of the pipeline on the pages: chips lead to decisions, numbers to lists, and all of it without JavaScript."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.locks import run_lock
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.board import graph_page
from mcpfactory_pipeline.dashboard.export import export
from mcpfactory_pipeline.dashboard.facts import ServerFacts, WorkspaceFacts
from mcpfactory_pipeline.dashboard.pages import PAGES
from mcpfactory_pipeline.dashboard.render import Links, asset, render
from mcpfactory_pipeline.stages import STAGES
from mcpfactory_pipeline.workspace.policy import DEFAULT
from tests.cli.terminal_capture import run
from tests.dashboard.conftest import WorkspaceBuilder
from tests.dashboard.test_size import LIMIT, NAME, TEXT

HTML = {"Accept": "text/html"}


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1", headers=HTML)


def chips(page: str) -> dict[str, str]:
    """The chips of the wide picture of a page: where each leads, by what is read out for it."""
    wide = page.partition('class="wide graph across"')[2].partition("</svg>")[0]
    found = re.findall(r'<a class="chip[^"]*" href="([^"]*)"><title>([^:<]*)', wide)
    return {unescape(title): unescape(href) for href, title in found}


def test_the_picture_of_the_workspace_has_every_candidate_where_it_is(client: TestClient) -> None:
    assert chips(client.get("/graph/").text) == {
        "bookshop 1.2.0, offered": "../servers/bookshop/decide/production/",
        "bookshop 1.2.0, to approve": "../servers/bookshop/decide/production/",
        "atlas 0.3.0, failed": "../servers/atlas/#candidate-0.3.0-0123456789ab",
        "weather, stale": "../servers/weather/",
        "zebra, not run": "../servers/zebra/",
    }


def test_the_picture_is_filtered_by_name(client: TestClient) -> None:
    page = client.get("/graph/?q=book").text
    assert set(chips(page)) == {"bookshop 1.2.0, offered", "bookshop 1.2.0, to approve"}
    assert "1 of 4 servers shown" in page


def test_the_page_of_a_server_has_the_same_picture_of_it_alone(client: TestClient) -> None:
    page = client.get("/servers/bookshop/").text
    decide = "../../servers/bookshop/decide/production/"
    assert chips(page) == {"1.2.0, offered": decide, "1.2.0, to approve": decide}
    assert page.count('<svg class="flow"') == 2
    failed = client.get("/servers/atlas/").text
    assert chips(failed) == {"0.3.0, failed": "#candidate-0.3.0-0123456789ab"}
    assert 'id="candidate-0.3.0-0123456789ab"' in failed


def test_what_runs_now_is_marked_and_the_pages_follow_it(four_servers: WorkspaceBuilder, client: TestClient) -> None:
    for path in ("/graph/", "/servers/zebra/"):
        page = client.get(path).text
        assert 'id="live"' in page
        assert "busy" not in page.partition('<svg class="flow"')[2].partition("</svg>")[0]
    locks = four_servers.store.locks
    with run_lock(locks, "zebra", "R", waiting=lambda _holder: None, stopped=lambda: False) as announce:
        announce(four_servers.starts("zebra", "R", "generate"))
        for path, label in (("/graph/", "zebra, running"), ("/servers/zebra/", "next, running")):
            page = client.get(path).text
            assert label in chips(page)
            assert '<g class="stage busy"' in page
        assert "1 at work now" in client.get("/graph/").text


def big(number: int) -> WorkspaceFacts:
    done = {"outcome": "passed", "verdict": "up-to-date", "reasons": [], "message": ""}
    failed = {**done, "outcome": "failed", "verdict": "blocked", "message": TEXT}
    servers = []
    for count in range(number):
        stages = {stage.name: done for stage in STAGES} | ({"test": failed} if count % 10 == 0 else {})
        name = f"{NAME}{count:04}"
        row = {"server": name, "version": "1.0", "candidate": "c", "stages": stages, "at_work": [], "holds": {},
               "channels": {"staging": {"candidate": "c", "version": "1.0"}}}  # fmt: skip
        servers.append(ServerFacts("big", name, row))
    return WorkspaceFacts("big", tuple(servers), DEFAULT, stages=STAGES)


@pytest.mark.parametrize("number", [30, 1000])
def test_the_pages_are_small_however_many_servers_there_are(number: int) -> None:
    view, page = graph_page(big(number)), next(page for page in PAGES if page.name == "graph")
    for static in (False, True):
        assert len(render(page, view, Links("/graph/", static=static)).encode()) < LIMIT
    if number == 1000:
        assert chips(render(page, view, Links("/graph/"))) == {
            "100, failed": "../board/?status=failed",
            "1,000, offered": "../board/?status=offered",
        }


def test_the_export_and_the_command_line_have_the_picture_too(four_servers: WorkspaceBuilder, tmp_path: Path) -> None:
    export(four_servers.root, tmp_path / "site")
    page = (tmp_path / "site/graph/index.html").read_text()
    assert chips(page)["bookshop 1.2.0, to approve"] == "../servers/bookshop/decide/production/index.html"
    assert chips(page)["atlas 0.3.0, failed"] == "../servers/atlas/index.html#candidate-0.3.0-0123456789ab"
    assert ".flow .card" in (tmp_path / "site/assets/style.css").read_text()
    assert b".flow" not in asset("page.js")
    whole = run(("pipeline", "status", "--graph", "svg"), four_servers.root, terminal=False)
    assert "bookshop 1.2.0, to approve" in whole.text
    assert "zebra, not run" in whole.text
    one = run(("pipeline", "status", "bookshop", "--graph", "svg"), four_servers.root, terminal=False)
    assert "approval for production: 1 approval (1.2.0, to approve)" in one.text
    assert "zebra" not in one.text
    assert run(("pipeline", "status", "--graph", "pdf"), four_servers.root, terminal=False).code == 2
