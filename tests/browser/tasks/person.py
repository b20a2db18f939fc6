"""A person at a browser: finds things by what is seen or read out (roles, names, labels, text), and in no other way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.browser.demo_workspace import TOKENS
from tests.browser.page_audit import Looker, looker
from tests.browser.tasks.workspace import Shop
from tests.timeouts import TIMEOUT

WIDE: Final = {"viewport": {"width": 1440, "height": 900}}
PHONE: Final = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_SLOW: Final = TIMEOUT * 5  # seconds of a run of the pipeline on a busy machine
_TABS: Final = 120  # keys after which nobody presses the tabulator once more
_REFUSED: Final = re.compile(r"the server responded with a status of 4\d\d")  # which a task asks for


@dataclass
class Person:
    """Somebody by name, "" for somebody who only looks. `steps` is what was done, in words; `loads` counts the pages that were loaded."""

    look: Looker
    url: str
    name: str = ""
    touches: bool = False
    tell: Callable[[str], None] = lambda _step: None
    steps: list[str] = field(default_factory=list)
    loads: int = 0

    def __post_init__(self) -> None:
        self.page = self.look.page
        self.page.set_default_timeout(TIMEOUT * 1000)
        self.page.on("load", lambda _page: self._loaded())

    def _loaded(self) -> None:
        self.loads += 1

    def _did(self, step: str) -> None:
        self.steps.append(step)
        self.tell(step)

    def _place(self, row: tuple[str, ...]) -> Any:
        """Where to look: on the whole page, or in the one row of a list or table that has all these words."""
        if not row:
            return self.page
        found = self.page.get_by_role("listitem").or_(self.page.get_by_role("row"))
        for word in row:
            found = found.filter(has_text=word)
        return found.last

    def _use(self, target: Any, step: str) -> None:
        self._did(step)
        if self.touches:
            target.tap()
        else:
            target.click()

    # What a person does

    def open(self, address: str = "") -> None:
        """Open the front page, or an address that somebody copied."""
        self._did(f"opens {address or 'the front page'}")
        self.look.open(address or f"{self.url}/")

    def log_in(self) -> None:
        """From the front page, and back to it."""
        self.open()
        self.follow("Log in to act")
        self.fill("Token", TOKENS[self.name])
        self.press("Log in")
        self.sees(f"acting as {self.name}")

    def follow(self, name: str, *row: str) -> None:
        """Follow a link by its whole name, a number behind it aside."""
        named = re.compile(rf"^{re.escape(name)}( \d+)?$")
        self._use(self._place(row).get_by_role("link", name=named).first, f"follows {name}")

    def press(self, name: str, *row: str) -> None:
        """Press a button by how its name begins."""
        named = re.compile(rf"^{re.escape(name)}\b")
        self._use(self._place(row).get_by_role("button", name=named).first, f"presses {name}")

    def fill(self, label: str, text: str) -> None:
        """Write into a field; the label is how its name begins."""
        self._did(f"writes into {label}")
        self.page.get_by_label(re.compile(rf"^{re.escape(label)}\b")).first.fill(text)

    def choose(self, label: str, value: str) -> None:
        """Choose from a list."""
        self._did(f"chooses {value} as {label}")
        self.page.get_by_role("combobox", name=re.compile(rf"^{re.escape(label)}\b")).select_option(value)

    def tick(self, label: str) -> None:
        """Tick a box."""
        self._did(f"ticks {label}")
        self.page.get_by_role("checkbox", name=label).check()

    def key(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for one in keys:
            self._did(f"presses the key {one}")
            self.page.keyboard.press(one)

    def write(self, text: str) -> None:
        """Write where the focus is."""
        self._did("writes")
        self.page.keyboard.type(text)

    def reach(self, role: str, name: str) -> None:
        """Move the focus there by the tabulator."""
        named = re.compile(rf"^{re.escape(name)}\b")
        self._did(f"tabs to {name}")
        for _ in range(_TABS):
            self.page.keyboard.press("Tab")
            target = self.page.get_by_role(role, name=named).first
            if target.count() and target.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"the tabulator does not lead to the {role} {name!r}")

    def back(self) -> None:
        """The browser's own button."""
        self._did("goes back")
        self.page.go_back()

    def reload(self) -> None:
        """The browser's own button."""
        self._did("reloads")
        self.page.reload()

    @property
    def address(self) -> str:
        """What stands in the browser's bar of addresses."""
        return str(self.page.url)

    # What a person sees

    def sees(self, text: str | re.Pattern[str], *row: str, slow: bool = False) -> None:
        """There is such a text, or there will be."""
        try:
            self._place(row).get_by_text(text).filter(visible=True).first.wait_for(
                timeout=(_SLOW if slow else TIMEOUT) * 1000
            )
        except Exception as error:
            raise AssertionError(f"{text!r} is not seen at {self.address}") from error

    def misses(self, text: str) -> None:
        """There is no such text, or soon there will not be."""
        try:
            self.page.get_by_text(text).filter(visible=True).first.wait_for(state="hidden")
        except Exception as error:
            raise AssertionError(f"{text!r} is still seen at {self.address}") from error

    def reads(self) -> str:
        """All that is seen of the page."""
        return str(self.page.get_by_role("main").inner_text())

    def names(self, role: str) -> list[str]:
        """The texts of all that have a role and are seen."""
        return [str(text) for text in self.page.get_by_role(role).all_inner_texts()]

    def region(self, name: str) -> str:
        """The text of a part of the page that has a name."""
        return str(self.page.get_by_label(name, exact=True).inner_text())

    def tree(self) -> str:
        """What a screen reader is told of the page: roles, names, levels."""
        return str(self.page.get_by_role("document").or_(self.page.locator("body")).first.aria_snapshot())

    def in_view(self, text: str) -> bool:
        """Whether a text is on the screen without scrolling."""
        self.sees(text)
        self.page.wait_for_load_state()  # before, the browser has not moved to what the address names
        box, size = self.page.get_by_text(text).filter(visible=True).first.bounding_box(), self.page.viewport_size
        return bool(box) and 0 <= box["y"] <= size["height"] - box["height"]

    def focused_row(self) -> str:
        """The text of the row in which the focus is, "" where it is in none."""
        rows = self.page.get_by_role("listitem").filter(has=self.page.locator(":focus"))
        return str(rows.last.inner_text()) if rows.count() else ""

    def ticked(self, label: str) -> bool:
        """Whether a box is ticked."""
        return bool(self.page.get_by_role("checkbox", name=label).is_checked())

    @property
    def title(self) -> str:
        """What stands in the tab of the browser."""
        return str(self.page.title())

    def whole(self) -> str:
        """All text of a page that is no page of HTML."""
        return str(self.page.locator("body").inner_text())

    def fits(self) -> bool:
        """Whether nothing is wider than the screen."""
        self.page.get_by_role("main").wait_for()
        # Not by innerWidth, which grows on a phone with what is too wide.
        return int(self.page.evaluate("document.documentElement.scrollWidth")) <= int(self.page.viewport_size["width"])

    def dark(self) -> bool:
        """Whether the page is light letters on a dark ground."""
        self.page.get_by_role("main").wait_for()
        colours = self.page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        ink, ground = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
        return ground < ink

    def complaints(self) -> list[str]:
        """What the browser complained of, and what axe-core found; a request that was refused is no complaint."""
        return [one for one in (*self.look.complaints, *self.look.violations) if not _REFUSED.search(one)]


@dataclass
class Setting:
    """Where a task is done: the workspace, its dashboard, and a browser for each person who takes part."""

    shop: Shop
    browser: Any
    url: str
    tell: Callable[[str], None]
    stack: ExitStack
    people: list[Person] = field(default_factory=list)

    def person(self, name: str = "", *, inside: str = "", **options: Any) -> Person:
        """Somebody at a browser of their own, 1440×900 unless `options` of a context say otherwise."""
        look = self.stack.enter_context(looker(self.browser, inside or self.url, **{**WIDE, **options}))
        tell = self.tell if not self.people else lambda step: self.tell(f"({name or 'somebody'}) {step}")
        self.people.append(Person(look, self.url, name, bool(options.get("has_touch")), tell))
        return self.people[-1]


@contextmanager
def setting(shop: Shop, browser: Any, url: str, tell: Callable[[str], None]) -> Iterator[Setting]:
    """A setting whose browsers are closed in the end."""
    with ExitStack() as stack:
        yield Setting(shop, browser, url, tell, stack)
