"""What the scripts of the dashboard do to a page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from mcpfactory_pipeline.base.ids import new_id
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_decision import shop
from tests.dashboard.test_export import chromium
from tests.dashboard.test_follow import going

__all__ = ["shop"]

pytestmark = pytest.mark.browser


@pytest.fixture
def tokyo() -> Iterator[Any]:
    """A page of a browser in Tokyo."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context(timezone_id="Asia/Tokyo", locale="en-GB").new_page()
        browser.close()


def test_times_in_the_zone_of_the_reader_are_never_called_utc(
    four_servers: WorkspaceBuilder, address: str, tokyo: Any
) -> None:
    for path in ("/runs/", f"/runs/{four_servers.run}/", "/servers/bookshop/", "/servers/bookshop/decide/staging/"):
        tokyo.goto(address + path)
        if tokyo.locator("#content time[datetime]:not([data-age])").count():
            assert "UTC" not in tokyo.locator("#content").text_content(), path
            assert "Asia/Tokyo" in tokyo.locator("#content").text_content(), path
    tokyo.goto(f"{address}/runs/{four_servers.run}/")
    time = tokyo.locator("h1 time")
    hour = int(time.get_attribute("datetime")[11:13])
    assert re.search(rf"\b{(hour + 9) % 24:02}:", time.text_content())
    assert tokyo.locator("h1 small").text_content().endswith(" Asia/Tokyo")


def test_a_run_is_followed_and_what_is_over_goes_when_it_ends(
    four_servers: WorkspaceBuilder, address: str, tokyo: Any
) -> None:
    run = new_id()
    with going(four_servers, run, "weather", "test") as log:
        tokyo.goto(f"{address}/runs/{run}/")
        tokyo.locator("#live", has_text="Live").wait_for()
        log.write("\x1b[32mgreen\x1b[0m and <b>plain\n")
        tokyo.locator("#tails", has_text="green").wait_for()
        assert "\x1b" not in tokyo.locator("#tails").text_content()
        assert "green and <b>plain" in tokyo.locator("#tails").text_content()
        assert tokyo.get_by_role("heading", name="At work now").count() == 1
        before = tokyo.locator("#state h1 + p").text_content()
        assert "so far" in before
        tokyo.wait_for_function("before => document.querySelector('#state h1 + p').textContent !== before", arg=before)
        assert "UTC" not in tokyo.locator("#state").text_content()  # nor in what came afterwards
        four_servers.finished("weather", "test", "passed", run=run)
    tokyo.locator("#live", has_text="The run has ended.").wait_for()
    assert tokyo.get_by_role("heading", name="At work now").count() == 0
    assert tokyo.locator("#work, #tails").count() == 0
    assert "so far" not in tokyo.locator("#content").text_content()


def log_in(page: Any, address: str, then: str) -> None:
    page.goto(f"{address}/login/?next={then}")
    page.locator("#token").fill(PEOPLE["Ada"])
    page.get_by_role("button", name="Log in").click()


def decided(shop: WorkspaceBuilder) -> list[tuple[str, str]]:
    events = shop.store.history("bookshop")
    return [(one["event"], one["actor"]) for one in events if one["event"] in {"approved", "rejected"}]


CONFIRM = "/servers/bookshop/actions/approve/%3Fchannel%3Dproduction"


class HeldKey:
    """A key that is held: the system repeats it, whatever page is there by then."""

    def __init__(self, page: Any, key: str) -> None:
        self._code = {"key": key, "code": f"Key{key.upper()}", "text": key, "windowsVirtualKeyCode": ord(key.upper())}
        self._keyboard = page.context.new_cdp_session(page)

    def press(self) -> None:
        self._keyboard.send("Input.dispatchKeyEvent", {"type": "keyDown", **self._code})

    def repeat(self, times: int = 5) -> None:
        for _ in range(times):
            self._keyboard.send("Input.dispatchKeyEvent", {"type": "keyDown", "autoRepeat": True, **self._code})


def test_a_rejection_that_nobody_has_read_is_not_overridden_by_keys(shop: WorkspaceBuilder, tokyo: Any) -> None:
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, CONFIRM)
        tokyo.get_by_role("heading", name="What will happen").wait_for()
        Browser(address).login("Grace").act("bookshop", "reject", channel="production", reason="orders fail")
        changed = tokyo.get_by_role("heading", name="Nothing was done: this has changed since you looked")
        key = HeldKey(tokyo, "y")
        key.press()
        key.repeat()
        changed.wait_for()
        key.repeat()
        tokyo.keyboard.press("y")  # and twice in a row by themselves
        tokyo.keyboard.press("y")
        assert tokyo.evaluate("document.activeElement.textContent").startswith("Nothing was done"), "it is read first"
        assert "so no key confirms it" in tokyo.get_by_role("main").inner_text()
        assert decided(shop) == [("rejected", "Grace")]
        tokyo.get_by_role("button", name="Approve bookshop").click()
        tokyo.get_by_text("Done: ").wait_for()
        assert decided(shop)[-1] == ("approved", "Ada"), "whoever has read it presses the button"


def test_what_is_confirmed_is_sent_once_however_long_or_often_the_key_is_pressed(
    shop: WorkspaceBuilder, tokyo: Any
) -> None:
    kept = "window.sent = 0; addEventListener('submit', e => { sent += !e.defaultPrevented; e.preventDefault(); })"
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, CONFIRM)
        tokyo.get_by_role("heading", name="What will happen").wait_for()
        tokyo.evaluate(kept)  # the answer takes its time
        key = HeldKey(tokyo, "y")
        key.repeat()
        assert tokyo.evaluate("sent") == 0, "it was pressed on the page before this one"
        for _ in range(3):
            key.press()
            key.repeat()
        tokyo.get_by_role("button", name="Approve bookshop").click()
        assert tokyo.evaluate("sent") == 1
        assert "the answer is on its way" in tokyo.get_by_role("main").inner_text()
        tokyo.reload()
        key.press()
        key.repeat()
        tokyo.get_by_text("Done: ").wait_for()
        key.repeat()
        assert decided(shop) == [("approved", "Ada")]
        tokyo.goto("about:blank")


def test_whoever_logs_out_is_logged_out_in_every_tab(shop: WorkspaceBuilder, tokyo: Any) -> None:
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/login/?next=/servers/bookshop/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.get_by_text("acting as Ada").wait_for()
        other = tokyo.context.new_page()
        other.goto(f"{address}/board/")
        other.get_by_role("button", name="Log out").click()
        tokyo.get_by_role("link", name="Log in to act").wait_for()
        assert tokyo.url == f"{address}/servers/bookshop/"
        assert tokyo.get_by_text("acting as").count() == 0
        for one in (tokyo, other):
            one.goto("about:blank")
