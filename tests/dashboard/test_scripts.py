"""What the scripts of the dashboard do to a page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from mcpfactory_pipeline.base.ids import new_id
from tests.dashboard.conftest import Bench, serving
from tests.dashboard.person import PEOPLE, Browser
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


def test_times_in_the_zone_of_the_reader_are_never_called_utc(library: Bench, address: str, tokyo: Any) -> None:
    for path in ("/runs/", f"/runs/{library.run}/", "/servers/bookshop/", "/servers/bookshop/decide/staging/"):
        tokyo.goto(address + path)
        if tokyo.locator("#content time[datetime]:not([data-age])").count():
            assert "UTC" not in tokyo.locator("#content").text_content(), path
            assert "Asia/Tokyo" in tokyo.locator("#content").text_content(), path
    tokyo.goto(f"{address}/runs/{library.run}/")
    time = tokyo.locator("h1 time")
    hour = int(time.get_attribute("datetime")[11:13])
    assert re.search(rf"\b{(hour + 9) % 24:02}:", time.text_content())
    assert tokyo.locator("h1 small").text_content().endswith(" Asia/Tokyo")


def test_trends_are_in_utc_and_say_so_wherever_the_reader_is(library: Bench, address: str, tokyo: Any) -> None:
    at = library.store.history("atlas")[-1]["at"]
    tokyo.goto(f"{address}/servers/atlas/trends/")
    assert "times in UTC" in tokyo.locator("h1").text_content()
    assert tokyo.locator("#content time").count() == 0
    assert at[:16].replace("T", " ") in tokyo.locator("#content").text_content()


def test_a_run_is_followed_in_colours_and_what_is_over_goes_when_it_ends(
    library: Bench, address: str, tokyo: Any
) -> None:
    run = new_id()
    with going(library, run, "weather", "test") as log:
        tokyo.goto(f"{address}/runs/{run}/")
        tokyo.locator("#live", has_text="Live").wait_for()
        log.write("\x1b[32mgreen\x1b[0m and <b>plain\n")
        tokyo.locator("#tails .green", has_text="green").wait_for()
        assert "\x1b" not in tokyo.locator("#tails").text_content()
        assert "green and <b>plain" in tokyo.locator("#tails").text_content()
        assert tokyo.get_by_role("heading", name="At work now").count() == 1
        before = tokyo.locator("#state h1 + p").text_content()
        assert "so far" in before
        tokyo.wait_for_function("before => document.querySelector('#state h1 + p').textContent !== before", arg=before)
        assert "UTC" not in tokyo.locator("#state").text_content()  # nor in what came afterwards
        library.finished("weather", "test", "passed", run=run)
    tokyo.locator("#live", has_text="The run has ended.").wait_for()
    assert tokyo.get_by_role("heading", name="At work now").count() == 0
    assert tokyo.locator("#work, #tails").count() == 0
    assert "so far" not in tokyo.locator("#content").text_content()


def test_whoever_has_a_decision_open_sees_somebody_come_and_what_they_decide(shop: Bench, tokyo: Any) -> None:
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/login/?next=/servers/bookshop/decide/production/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.locator("#live", has_text="Live").wait_for()
        tokyo.locator("#reason").fill("half a sentence")
        grace = Browser(address).login("Grace")
        grace.get("/servers/bookshop/decide/production/")
        tokyo.get_by_text("Grace is looking at this too").wait_for()
        assert "UTC" not in tokyo.locator("[data-live=onlookers]").text_content()
        grace.act("bookshop", "approve", channel="production", reason="fine")
        tokyo.locator("[data-live=asked]", has_text="by Grace: fine").wait_for()
        assert tokyo.locator("#reason").input_value() == "half a sentence"
        tokyo.goto("about:blank")
