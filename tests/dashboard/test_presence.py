"""Who decides about a candidate sees who else looks at it: people who are logged in, and only as long as they do. Over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from html.parser import HTMLParser

import pytest

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard import presence
from mcpfactory_pipeline.dashboard.follow import watch_decision
from mcpfactory_pipeline.dashboard.presence import Presence
from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from tests.dashboard.conftest import EVIL, Bench, serving
from tests.dashboard.person import PEOPLE, Browser
from tests.dashboard.test_decision import shop
from tests.dashboard.test_follow import Stream, followed
from tests.dashboard.test_proxy import ORIGIN, PROXY, through

__all__ = ["followed", "shop"]

DECIDE = "/servers/bookshop/decide/production/"
TOO = "is looking at this too"


@pytest.fixture
def address(shop: Bench) -> Iterator[str]:
    with serving(shop.root, PEOPLE, proxy=PROXY, origin=ORIGIN) as address:
        yield address


def stream(browser: Browser, path: str = DECIDE) -> Stream:
    """What the page of somebody follows, from what it shows on."""
    page = browser.get(path).text
    source = page.partition('data-source="')[2].partition('"')[0].removeprefix("../../../../").replace("&amp;", "&")
    assert source.startswith("live/servers/bookshop/decide/production/?from="), page
    return Stream(browser.address, f"/{source}", cookie="; ".join(f"{k}={v}" for k, v in browser.cookies.items()))


def test_others_who_look_at_the_same_decision_are_named_and_oneself_is_not(address: str) -> None:
    ada, grace = Browser(address).login("Ada"), Browser(address).login("Grace")
    assert TOO not in ada.get(DECIDE).text
    assert TOO not in Browser(address).login("Ada").get(DECIDE).text, "another browser of hers"
    page = grace.get(DECIDE).text
    assert f"Ada {TOO} (since <time datetime=" in page
    assert f"Grace {TOO}" in ada.get(DECIDE).text
    assert TOO not in grace.get("/servers/bookshop/decide/staging/").text, "that is another one"
    assert ada.get("/servers/bookshop/decide/staging/?format=json").status == 200


def test_who_is_not_logged_in_is_neither_named_nor_told(address: str) -> None:
    anybody, ada = Browser(address), Browser(address).login("Ada")
    assert "data-source" not in anybody.get(DECIDE).text
    page = ada.get(DECIDE).text
    assert TOO not in page
    assert "Ada" not in anybody.get(DECIDE).text
    with Stream(address, f"/live{DECIDE}") as told:
        assert told.answer.status == 401


def test_who_confirms_looks_at_it_still_and_a_name_from_the_proxy_stays_text(address: str) -> None:
    ada, mallory = Browser(address).login("Ada"), through(address, EVIL)
    mallory.get("/servers/bookshop/actions/approve/", channel="production")
    page = ada.get(DECIDE).text
    assert EVIL not in page
    assert f"&lt;script&gt;alert(1)&lt;/script&gt; {TOO}" in page


def test_whoever_follows_is_told_when_somebody_comes_and_when_they_leave(
    address: str, followed: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "_STAYS", 0.0)
    monkeypatch.setattr(presence, "_LEAVES", 0.0)
    ada, grace = Browser(address).login("Ada"), Browser(address).login("Grace")
    told = followed.enter_context(stream(ada))
    with stream(grace):
        while f"Grace {TOO}" not in ada.get(DECIDE).text:
            told.until("state")
    while f"Grace {TOO}" in ada.get(DECIDE).text:
        told.until("state")


def test_a_stream_has_something_to_tell_when_somebody_comes_or_leaves_and_nothing_else(shop: Bench) -> None:
    now = 0.0
    there, reader = Presence(clock=lambda: now), WorkspaceReader(shop.root)
    poll = watch_decision(reader, "bookshop", "production", partial(there.mark, DECIDE))
    first = poll()
    assert first is not None
    assert poll() is None
    there.look(DECIDE, "Ada")
    came = poll()
    assert came is not None
    assert poll() is None
    assert "Ada" not in came.state
    now = 60.0
    left = poll()
    assert left is not None
    assert (left.digest, came.digest != first.digest) == (first.digest, True)
    with pytest.raises(NotFoundError):
        watch_decision(reader, "bookshop", "nowhere", lambda: "")()


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


def test_nothing_that_a_decision_changes_is_outside_of_what_follows(shop: Bench, address: str) -> None:
    ada = Browser(address).login("Ada")
    before = ada.get(DECIDE).text
    grace = Browser(address).login("Grace")
    for action in ("approve", "reject", "approve", "promote"):
        assert grace.act("bookshop", action, channel="production", reason="fine").status == 303
        after = ada.get(DECIDE).text
        assert after != before
        assert Still(after).kept == Still(before).kept, action
        before = after
    assert "production offers it" in after


def test_a_decision_that_is_none_is_not_followed(address: str) -> None:
    ada = Browser(address).login("Ada")
    cookie = "; ".join(f"{k}={v}" for k, v in ada.cookies.items())
    for path in ("/live/servers/nobody/decide/production/", "/live/servers/bookshop/decide/nowhere/"):
        with Stream(address, path, cookie=cookie) as told:
            assert told.answer.status == 404
    assert "Ada" not in Browser(address).login("Grace").get(DECIDE).text


def test_a_page_counts_for_some_seconds_and_as_long_as_it_is_followed() -> None:
    now = 0.0
    there = Presence(clock=lambda: now)

    def who() -> list[str]:
        return [one.name for one in there.others("/x/", "Grace")]

    there.look("/x/", "Ada")
    there.look("/x/", "ADA ")
    first = there.mark("/x/")
    assert (who(), [one.name for one in there.others("/x/", "ada")]) == (["Ada"], [])
    now = 14.0
    assert who() == ["Ada"]
    with there.watching("/x/", "Ada"):
        now = 3600.0
        assert who() == ["Ada"]
        assert there.mark("/x/") == first
        there.look("/y/", "Linus")
    now += 4.0
    assert who() == ["Ada"], "it may be loaded anew"
    now += 2.0
    assert who() == []
    assert there.mark("/x/") != first
    now += 100.0
    assert who() == []
    assert there._looks == {}
