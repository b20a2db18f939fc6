"""The page of a decision follows what somebody else decides. Over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from html.parser import HTMLParser

import pytest

from mcpfactory_pipeline.dashboard.live_updates import workspace_poll
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_decision import shop
from tests.dashboard.test_follow import Stream, followed

__all__ = ["followed", "shop"]

DECIDE = "/servers/bookshop/decide/production/"


@pytest.fixture
def address(shop: WorkspaceBuilder) -> Iterator[str]:
    with serving(shop.root, PEOPLE) as address:
        yield address


def stream(browser: Browser, path: str = DECIDE) -> Stream:
    """What the page of somebody follows, from what it shows on."""
    page = browser.get(path).text
    source = page.partition('data-source="')[2].partition('"')[0].removeprefix("../../../../").replace("&amp;", "&")
    assert source.startswith("live/?from="), page
    return Stream(browser.address, f"/{source}", cookie="; ".join(f"{k}={v}" for k, v in browser.cookies.items()))


def test_a_decision_of_somebody_else_is_told_to_whoever_looks(address: str, followed: ExitStack) -> None:
    ada, grace = Browser(address).login("Ada"), Browser(address).login("Grace")
    told = followed.enter_context(stream(ada))
    assert grace.act("bookshop", "approve", channel="production", reason="fine").status == 303
    while "approved</b> by Grace: fine" not in ada.get(DECIDE).text:
        told.until("state")


class Still(HTMLParser):
    """What of a page stays as it is while it is open: all that is in no part which follows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.depth, self.kept = 0, list[str]()
        self.feed(page.replace("&amp;", "&"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"meta", "link", "input", "br"}:  # what has no end
            return
        if self.depth or "data-live" in dict(attrs):
            self.depth += 1
        else:
            self.kept.append(f"{tag} {[(name, value) for name, value in attrs if name != 'data-source']}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.depth = max(0, self.depth - 1)

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.kept.append(data)


def test_nothing_that_a_decision_changes_is_outside_of_what_follows(shop: WorkspaceBuilder, address: str) -> None:
    ada = Browser(address).login("Ada")
    before = ada.get(DECIDE).text
    grace = Browser(address).login("Grace")
    for action in ("approve", "reject", "approve", "promote"):
        assert grace.act("bookshop", action, channel="production", reason="fine").status == 303
        after = ada.get(DECIDE).text
        assert after != before
        assert Still(after).kept == Still(before).kept, action
        before = after
    assert "production already offers this candidate" in after


def test_a_server_folder_that_goes_or_comes_back_is_noticed(shop: WorkspaceBuilder) -> None:
    reader = WorkspaceReader(shop.root, age=60.0)
    poll, folder, away = workspace_poll(reader), shop.root / "servers/bookshop", shop.root / "away"
    names = []
    for move in (lambda: None, lambda: folder.rename(away), lambda: away.rename(folder)):
        move()
        assert poll() is not None
        names.append([server.name for server in reader.workspace().servers])
        assert poll() is None
    assert names == [["bookshop"], [], ["bookshop"]]
