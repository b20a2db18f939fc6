"""A rejected candidate is told wherever one looks for it, and may be approved after all; the inbox does not ask, and does not deny it."""

from __future__ import annotations

import dataclasses
from html import unescape

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.inbox import RejectedCandidate, inbox
from mcpfactory_pipeline.dashboard.pages import PAGES
from mcpfactory_pipeline.dashboard.render import Links, render
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.views.status import status
from tests.dashboard.conftest import EVIL, WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_decision import shop

__all__ = ["shop"]

DECIDE = "/servers/bookshop/decide/production/"
HTML = {"Accept": "text/html"}


@pytest.fixture
def rejected_shop(shop: WorkspaceBuilder, monkeypatch: pytest.MonkeyPatch) -> WorkspaceBuilder:
    """The shop, whose 2.0.0 Ada rejected for production."""
    monkeypatch.setenv("MCPFACTORY_ACTOR", "Ada")
    decision.reject(shop.workspace, "bookshop", "production", reason=f"too soon {EVIL}")
    return shop


def test_the_page_of_the_server_the_graph_and_the_decision_say_who_rejected_it_and_why(
    rejected_shop: WorkspaceBuilder,
) -> None:
    client = TestClient(create_app(rejected_shop.root), base_url="http://127.0.0.1")
    page = client.get("/servers/bookshop/?format=json").json()
    production = page["channels"][-1]
    (said,) = production["rejected"]
    assert (production["rejected_version"], said["who"]) == ("2.0.0", "Ada")
    assert said["at"] == rejected_shop.store.history("bookshop")[-1]["at"]
    text = client.get("/servers/bookshop/", headers=HTML).text
    assert (
        "</time> UTC" not in text + client.get(DECIDE, headers=HTML).text
    )  # the script replaces a zone, and no bare word
    assert "2.0.0 was rejected by Ada" in text
    assert EVIL not in text
    places = {place["node"]["name"]: place for place in page["graph"]}
    assert places["approval for production"]["node"]["status"] == "rejected"
    assert [chip["status"] for chip in places["approval for production"]["chips"]] == ["rejected"]
    assert "bookshop 2.0.0, rejected" in client.get("/graph/", headers=HTML).text
    text = client.get(DECIDE, headers=HTML).text
    assert "Rejected by Ada" in text
    assert "No decision is pending" not in text


def test_it_is_approved_after_all_from_the_page_of_the_decision(rejected_shop: WorkspaceBuilder) -> None:
    with serving(rejected_shop.root, PEOPLE) as address:
        ada = Browser(address).login("Ada")
        assert "Approve after all" in ada.get(DECIDE).text
        assert "Approve after all" not in Browser(address).get(DECIDE).text
        page = unescape(ada.get("/servers/bookshop/actions/approve/", channel="production").text)
        assert f"it lifts the rejection by Ada: too soon {EVIL}" in page.partition("What will happen")[2]
        assert ada.act("bookshop", "approve", channel="production", reason="looked again").status == 303
        assert "Rejected by" not in ada.get(DECIDE).text
    assert status(rejected_shop.workspace)[0]["rejected"] == {}


def test_the_inbox_neither_asks_about_it_nor_says_that_it_is_where_it_may_be(rejected_shop: WorkspaceBuilder) -> None:
    view = inbox(WorkspaceReader(rejected_shop.root).workspace())
    assert [item.kind for item in view.items if item.about == "production"] == []
    assert view.rejected == (RejectedCandidate("bookshop", "2.0.0", "production"),)
    client = TestClient(create_app(rejected_shop.root), base_url="http://127.0.0.1")
    assert '<b class="risk bad">1 rejected</b>' in client.get("/", headers=HTML).text
    assert '<b class="risk bad">rejected</b>' in client.get("/board/", headers=HTML).text
    page = next(page for page in PAGES if page.name == "inbox")
    text = render(page, dataclasses.replace(view, total=0, items=(), groups=()), Links("/"))
    assert "all candidates except 1 rejected one are promoted as far as allowed" in text
    assert 'decide/production/">bookshop 2.0.0</a> for production' in text
