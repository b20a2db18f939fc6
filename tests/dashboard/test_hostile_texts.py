"""Texts as others write them, of any length and without a space: every page shows where they begin, and none grows by them."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.pages import PAGES, path_of
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from tests.dashboard.conftest import WorkspaceBuilder

HTML = {"Accept": "text/html"}
LIMIT = 100_000


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1", headers=HTML)


def recorded(builder: WorkspaceBuilder, event: str, reason: str, **facts: str) -> None:
    """A decision as an older version recorded it."""
    about = {"channel": "production", "candidate": "1.2.0-0123456789ab", "version": "1.2.0"} | facts
    with builder.store.transaction("bookshop") as transaction:
        transaction.append(event, **about, reason=reason)


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/servers/bookshop/", ["was rejected by", "Wrongg", "Haltt"]),
        ("/servers/bookshop/decide/production/", ["Rejected by", "Wrongg"]),
        ("/board/", ["Haltt"]),
        ("/graph/", ["Wrongg"]),
        ("/", ["Haltt"]),
    ],
)
def test_of_one_long_word_the_beginning_is_shown(
    four_servers: WorkspaceBuilder, client: TestClient, path: str, shown: list[str]
) -> None:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(
        config.read_text() + '\n[[pipeline.channels]]\nname = "staging"\n'
        '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\n'
    )
    recorded(four_servers, "rejected", "Wrong" + "g" * 3_000)
    recorded(four_servers, "held", "Halt" + "t" * 3_000)
    page = words(client.get(path).text)
    assert [word for word in shown if word not in page] == []
    assert not re.search(r"\w{402}", re.sub(r"<details>.*?</details>", "", client.get(path).text, flags=re.DOTALL))
    assert "..." not in page


def test_a_reason_of_an_older_history_is_cut_and_its_whole_is_there_to_be_opened(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    recorded(four_servers, "held", "because " + "y" * 2_000 + " it is so")
    page = client.get("/servers/bookshop/").text
    folded = re.search(r"<details><summary>([^<]*)</summary>([^<]*)</details></td>", page)
    assert folded is not None
    assert (folded[1][-1], folded[2][-8:]) == ("…", "it is so")
    assert page.count("y" * 1_000) == 2  # 2,000 of them, once


@pytest.mark.parametrize("event", ["held", "rejected"])
def test_no_page_grows_by_what_an_older_version_took_for_a_reason(
    four_servers: WorkspaceBuilder, client: TestClient, event: str
) -> None:
    recorded(four_servers, event, "x" * 100_000)
    if event == "held":
        recorded(four_servers, event, "x" * 100_000, channel="staging")
    reader = WorkspaceReader(four_servers.root)
    for page in PAGES:
        for values in page.instances(reader, ["bookshop"]):
            answer = client.get(path_of(page, values))
            assert len(answer.content) < LIMIT, path_of(page, values)
    assert "mcpfactory pipeline history bookshop" in client.get("/servers/bookshop/").text


def test_a_run_that_was_cancelled_says_so_and_what_did_not_run(
    four_servers: WorkspaceBuilder, client: TestClient
) -> None:
    run = new_id()
    four_servers.passed("weather", "generate", run=run)
    with four_servers.store.transaction("weather") as transaction:
        transaction.append("stage.interrupted", stage="build", run=run, message="the run was ended")
    for path in (f"/runs/{run}/", f"/runs/{run}/weather/"):
        page = words(client.get(path).text)
        assert "It was cancelled: stages that had not started did not run: test, validate, staging." in page
        assert "up to date" not in page


def test_a_run_that_died_says_that_it_broke_off(four_servers: WorkspaceBuilder, client: TestClient) -> None:
    run = new_id()
    with four_servers.store.transaction("weather") as transaction:
        transaction.append("stage.started", stage="test", run=run, pid=1, reasons=["never run"])
    page = words(client.get(f"/runs/{run}/").text)
    assert "It crashed: stages that had not started did not run: staging." in page
    assert "up to date" not in page
