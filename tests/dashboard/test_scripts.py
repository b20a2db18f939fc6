"""What the scripts of the dashboard do to a page, in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.promotion import decision
from tests.dashboard.conftest import Bench, serving
from tests.dashboard.person import PEOPLE, Browser
from tests.dashboard.test_action_routes import offered
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


def test_a_run_is_followed_and_what_is_over_goes_when_it_ends(library: Bench, address: str, tokyo: Any) -> None:
    run = new_id()
    with going(library, run, "weather", "test") as log:
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
        library.finished("weather", "test", "passed", run=run)
    tokyo.locator("#live", has_text="The run has ended.").wait_for()
    assert tokyo.get_by_role("heading", name="At work now").count() == 0
    assert tokyo.locator("#work, #tails").count() == 0
    assert "so far" not in tokyo.locator("#content").text_content()


def test_whoever_has_a_decision_open_sees_what_others_decide(shop: Bench, tokyo: Any) -> None:
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/login/?next=/servers/bookshop/decide/production/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.locator("#live", has_text="Live").wait_for()
        tokyo.locator("#reason").fill("half a sentence")
        grace = Browser(address).login("Grace")
        grace.act("bookshop", "approve", channel="production", reason="fine")
        tokyo.locator("[data-live=evidence]", has_text="by Grace: fine").wait_for()
        assert tokyo.locator("#reason").input_value() == "half a sentence"
        tokyo.goto("about:blank")


def test_all_of_an_open_decision_follows_what_somebody_types_elsewhere(shop: Bench, tokyo: Any) -> None:
    config = shop.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("approvals = 1", "approvals = 2"))
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/login/?next=/servers/bookshop/decide/production/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.locator("#live", has_text="Live").wait_for()
        asked = tokyo.get_by_role("heading", name="approvals missing")
        assert "2 of 2 approvals missing" in asked.text_content()
        seen = tokyo.locator("[name=expect]").input_value()
        tokyo.locator("#reason").fill("half a sentence")
        tokyo.evaluate("document.getElementById('reason').setSelectionRange(4, 8)")
        decision.approve(shop.workspace, "bookshop", "production", reason="typed")
        tokyo.locator("#question", has_text="1 of 2 approvals missing").wait_for()
        assert tokyo.get_by_text("2 of 2 approvals").count() == 0
        assert "typed" in tokyo.locator("[data-live=evidence]").text_content()
        assert tokyo.locator("[name=expect]").input_value() != seen, "what is sent is what is shown"
        assert tokyo.evaluate("(e => [e.id, e.value, e.selectionStart, e.selectionEnd])(document.activeElement)") == [
            "reason", "half a sentence", 4, 8
        ]  # fmt: skip
        tokyo.get_by_role("button", name="Reject").focus()
        Browser(address).login("Grace").act("bookshop", "approve", channel="production", reason="fine")
        tokyo.locator("#question", has_text="is ready for production").wait_for()
        assert tokyo.evaluate("document.activeElement.textContent").startswith("Reject")
        assert tokyo.locator("#reason").input_value() == "half a sentence"
        Browser(address).login("Grace").act("bookshop", "promote", channel="production")
        tokyo.get_by_role("heading", name="production offers it: nothing is to be decided").wait_for()
        assert "which offers 2.0.0" in tokyo.locator("h1").text_content()
        assert tokyo.evaluate("document.activeElement.id") == "content"
        tokyo.goto("about:blank")


def log_in(page: Any, address: str, then: str) -> None:
    page.goto(f"{address}/login/?next={then}")
    page.locator("#token").fill(PEOPLE["Ada"])
    page.get_by_role("button", name="Log in").click()


def decided(shop: Bench) -> list[tuple[str, str]]:
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


def test_a_rejection_that_nobody_has_read_is_not_overridden_by_keys(shop: Bench, tokyo: Any) -> None:
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
        assert "No key confirms it here" in tokyo.get_by_role("main").inner_text()
        assert decided(shop) == [("rejected", "Grace")]
        tokyo.get_by_role("button", name="Approve bookshop").click()
        tokyo.get_by_text("Done: ").wait_for()
        assert decided(shop)[-1] == ("approved", "Ada"), "whoever has read it presses the button"


def test_what_is_confirmed_is_sent_once_however_long_or_often_the_key_is_pressed(shop: Bench, tokyo: Any) -> None:
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


@pytest.mark.parametrize("width", [1280, 1440])
def test_parts_of_a_decision_stand_below_each_other_without_holes(shop: Bench, tokyo: Any, width: int) -> None:
    tokyo.set_viewport_size({"width": width, "height": 800})
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/servers/bookshop/decide/production/")
        names = ("Tools", "Findings", "Who asks", "Tests and figures")
        tools, findings, asked, figures = (tokyo.get_by_role("region", name=name).bounding_box() for name in names)
        tokyo.evaluate("document.querySelector('[aria-labelledby=figures]').style.minHeight = '1500px'")
        for _ in range(2):
            assert figures["y"] == tools["y"]
            assert findings["y"] - tools["y"] - tools["height"] == pytest.approx(16, abs=1)
            assert asked["y"] - findings["y"] - findings["height"] == pytest.approx(16, abs=1)
            tools, findings, asked, figures = (tokyo.get_by_role("region", name=name).bounding_box() for name in names)
        assert figures["height"] >= 1500


def test_the_name_of_a_server_is_whole_on_a_phone_also_where_one_has_approved(shop: Bench, tokyo: Any) -> None:
    config = shop.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("approvals = 1", "approvals = 2"))
    shop.add(long := "a_server_with_a_name_that_is_longer_than_a_phone_is_wide")
    tokyo.set_viewport_size({"width": 390, "height": 844})
    with serving(shop.root, PEOPLE) as address:
        Browser(address).login("Ada").act("bookshop", "approve", channel="production", reason="fine")
        tokyo.goto(f"{address}/login/?next=/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.get_by_text("you have approved it already").wait_for()
        for name in ("bookshop", long):
            place = tokyo.locator(".who-waits", has_text=name)
            assert (
                place.evaluate("e => [e.scrollWidth <= e.clientWidth, e.scrollHeight <= e.clientHeight]") == [True] * 2
            )
            assert tokyo.get_by_role("link", name=name, exact=True).bounding_box()["width"] > 50
        assert tokyo.evaluate("document.documentElement.scrollWidth") == 390
        tokyo.goto("about:blank")


def test_a_mark_that_is_lost_is_told_and_the_bar_is_there_only_for_marks(shop: Bench, tokyo: Any) -> None:
    config = shop.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("approvals = 1", "approvals = 2"))
    shop.add("zebra")
    shop.passed("zebra", "generate")
    offered(shop, "zebra", "1.0.0")
    tokyo.set_viewport_size({"width": 390, "height": 844})
    with serving(shop.root, PEOPLE) as address:
        tokyo.goto(f"{address}/login/?next=/")
        tokyo.locator("#token").fill(PEOPLE["Ada"])
        tokyo.get_by_role("button", name="Log in").click()
        tokyo.locator("#live", has_text="Live").wait_for()
        bar = tokyo.locator("#several")
        assert bar.is_hidden()
        for name in ("bookshop", "zebra"):
            tokyo.get_by_role("checkbox", name=f"Mark {name} for production").check()
        assert "2 marked" in bar.inner_text()
        Browser(address).login("Grace").act("zebra", "approve", channel="production", reason="fine")
        bar.get_by_role("status").filter(has_text="1 of 2 marked changed meanwhile: zebra; 1 marked").wait_for()
        bar.get_by_role("button", name="Approve marked").click()
        tokyo.get_by_role("heading", name="Approve 1 candidate").wait_for()
        assert tokyo.get_by_role("cell", name="zebra").count() == 0
        tokyo.go_back()
        tokyo.locator("#live", has_text="Live").wait_for()
        tokyo.get_by_role("checkbox", name="Mark zebra for production").set_checked(True)
        tokyo.get_by_role("checkbox", name="Mark bookshop for production").set_checked(False)
        decision.reject(shop.workspace, "zebra", "production", reason="no")
        bar.get_by_role("status").filter(has_text="1 of 1 marked not listed any more: zebra").wait_for()
        assert bar.is_visible()
        tokyo.goto("about:blank")


def test_a_mark_that_the_filter_hides_is_there_again_with_its_row(shop: Bench, tokyo: Any) -> None:
    shop.add("zebra")
    shop.passed("zebra", "generate")
    offered(shop, "zebra", "1.0.0")
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, "/")
        tokyo.locator("#live", has_text="Live").wait_for()
        said = tokyo.locator("#several").get_by_role("status")
        for name in ("bookshop", "zebra"):
            tokyo.get_by_role("checkbox", name=f"Mark {name} for production").check()
        word = tokyo.get_by_role("searchbox")
        word.fill("book")
        said.filter(has_text="1 marked hidden by the filter; 1 marked").wait_for()
        decision.reject(shop.workspace, "bookshop", "production", reason="no")
        said.filter(has_text="1 of 2 marked not listed any more: bookshop; 1 marked hidden by the filter").wait_for()
        word.fill("")
        tokyo.locator("input:checked[name=item]").wait_for()
        assert tokyo.get_by_role("checkbox", name="Mark zebra for production").is_checked()
        assert said.text_content() == "1 of 2 marked not listed any more: bookshop; 1 marked"
        tokyo.goto("about:blank")


def test_several_are_offered_only_what_fits_what_is_marked(shop: Bench, tokyo: Any) -> None:
    shop.add("zebra")
    shop.passed("zebra", "generate")
    offered(shop, "zebra", "1.0.0")
    decision.approve(shop.workspace, "zebra", "production")
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, "/")
        tokyo.locator("#live", has_text="Live").wait_for()
        bar = tokyo.locator("#several")
        approve, promote = (bar.get_by_role("button", name=f"{name} marked") for name in ("Approve", "Promote"))
        asked, ready = (tokyo.get_by_role("checkbox", name=f"Mark {name} for") for name in ("bookshop", "zebra"))
        asked.check()
        assert (approve.is_visible(), promote.is_visible()) == (True, False)
        ready.check()
        assert (approve.is_visible(), promote.is_visible()) == (True, True)
        asked.uncheck()
        assert (approve.is_visible(), promote.is_visible()) == (False, True)
        decision.reject(shop.workspace, "zebra", "production", reason="no")
        bar.get_by_role("status").filter(has_text="not listed any more: zebra").wait_for()
        assert (approve.is_visible(), promote.is_visible()) == (True, False)
        tokyo.goto("about:blank")


def test_a_mark_that_the_filter_hides_is_not_taken_for_another_row_of_its_server(shop: Bench, tokyo: Any) -> None:
    decision.hold(shop.workspace, "bookshop", "staging", reason="wait")
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, "/")
        tokyo.locator("#live", has_text="Live").wait_for()
        mark = tokyo.get_by_role("checkbox", name="Mark bookshop for production")
        mark.check()
        tokyo.locator(".chip", has_text="hold").click()
        said = tokyo.locator("#several").get_by_role("status")
        said.filter(has_text="1 marked hidden by the filter").wait_for()
        tokyo.locator(".chip", has_text="all").click()
        mark.wait_for()
        assert mark.is_checked()
        assert said.text_content() == "1 marked"
        tokyo.goto("about:blank")


def test_whoever_comes_back_to_the_inbox_stands_at_the_row_that_was_left(shop: Bench, tokyo: Any) -> None:
    for name in ("yak", "zebra"):
        shop.add(name)
    with serving(shop.root) as address:
        tokyo.goto(f"{address}/")
        rows = tokyo.locator(".row .open")
        names = rows.all_text_contents()
        assert len(names) >= 3
        for key in ("j", "j", "Enter"):
            tokyo.keyboard.press(key)
        tokyo.wait_for_url(f"**/servers/{names[1]}/**")
        tokyo.go_back()
        tokyo.locator(".row.current").wait_for()
        assert tokyo.evaluate("document.activeElement.textContent") == names[1]
        tokyo.keyboard.press("j")
        assert tokyo.evaluate("document.activeElement.textContent") == names[2]
        tokyo.goto(f"{address}/board/")
        tokyo.goto(f"{address}/")
        assert tokyo.locator(".row.current").count() == 0, "that is a new look"


def test_whoever_logs_out_is_logged_out_in_every_tab(shop: Bench, tokyo: Any) -> None:
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


def test_hashes_in_tables_are_in_one_line(shop: Bench, tokyo: Any) -> None:
    tokyo.set_viewport_size({"width": 1280, "height": 800})
    with serving(shop.root) as address:
        tokyo.goto(f"{address}/servers/bookshop/")
        cell = tokyo.locator("td:has(> .hash)").first
        cell.evaluate("e => { e.firstChild.textContent = '123456789012…'; e.style.width = '1px'; }")
        one = tokyo.locator("td > .hash").first
        assert one.bounding_box()["height"] < 22


def test_that_a_run_has_begun_is_not_said_any_more_when_it_has_ended(library: Bench, address: str, tokyo: Any) -> None:
    run = new_id()
    with going(library, run, "weather", "test"):
        tokyo.goto(f"{address}/runs/{run}/")
        tokyo.locator("#live", has_text="Live").wait_for()
        tokyo.evaluate(
            "document.querySelector('.crumbs').insertAdjacentHTML('afterend', '<section id=done>Done: it has begun.</section>')"
        )
        library.finished("weather", "test", "failed", run=run)
    tokyo.locator("#live", has_text="The run has ended.").wait_for()
    assert tokyo.get_by_text("it has begun").count() == 0


def test_news_take_back_no_way_that_somebody_goes(bench: Bench, tokyo: Any) -> None:
    """A page without a list is loaded again when something happens, but not under somebody who waits for another one."""
    with serving(bench.root) as address:
        tokyo.clock.install()
        tokyo.goto(f"{address}/")
        loads: list[str] = []
        tokyo.on("request", lambda request: loads.append(request.url) if request.is_navigation_request() else None)
        tokyo.evaluate("dispatchEvent(new Event('beforeunload')); refresh()")
        tokyo.clock.run_for(5_000)
        assert loads == []
        with tokyo.expect_navigation():
            tokyo.clock.run_for(6_000)  # whoever waited got a file, say, and the page stayed
        assert loads == [f"{address}/"]
        tokyo.goto("about:blank")


def test_a_page_that_confirms_fits_a_window_of_320_pixels(shop: Bench, tokyo: Any) -> None:
    """A window of 640 pixels at 200 % (WCAG 2.2, 1.4.10)."""
    shop.add("zebra")
    shop.passed("zebra", "generate")
    offered(shop, "zebra", "1.0.0")
    tokyo.set_viewport_size({"width": 320, "height": 640})
    with serving(shop.root, PEOPLE) as address:
        log_in(tokyo, address, "/")
        for name in ("bookshop", "zebra"):
            for action in ("approve", "reject"):
                tokyo.goto(f"{address}/servers/{name}/actions/{action}/?channel=production&reason=fine")
                assert tokyo.evaluate("document.documentElement.scrollWidth") == 320, (name, action)
        tokyo.goto("about:blank")
