"""A person at a browser, who finds elements only by roles, names, labels and text."""

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
_SLOW: Final = TIMEOUT * 5  # seconds; a pipeline run on a busy machine
_TABS: Final = 120  # maximum presses of the Tab key to reach an element
_REFUSED: Final = re.compile(r"the server responded with a status of 4\d\d")  # which a task asks for


@dataclass
class Person:
    """A user, "" for a reader without login. `steps` describes the actions; `loads` counts loaded pages."""

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
        """Return the whole page, or the only row of a list or table that contains all these words."""
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

    # Actions of a person

    def open(self, address: str = "") -> None:
        """Open the front page, or a copied address."""
        self._did(f"opens {address or 'the front page'}")
        self.look.open(address or f"{self.url}/")

    def log_in(self) -> None:
        """Log in from the front page, and return to it."""
        self.open()
        self.follow("Log in to act")
        self.fill("Token", TOKENS[self.name])
        self.press("Log in")
        self.sees(f"acting as {self.name}")

    def follow(self, name: str, *row: str) -> None:
        """Follow a link by its whole name, ignoring a number after it."""
        named = re.compile(rf"^{re.escape(name)}( \d+)?$")
        self._use(self._place(row).get_by_role("link", name=named).first, f"follows {name}")

    def press(self, name: str, *row: str) -> None:
        """Press a button by the start of its name."""
        named = re.compile(rf"^{re.escape(name)}\b")
        self._use(self._place(row).get_by_role("button", name=named).first, f"presses {name}")

    def fill(self, label: str, text: str) -> None:
        """Fill a field; `label` is the start of its name."""
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
        """Press keys in the focused element."""
        for one in keys:
            self._did(f"presses the key {one}")
            self.page.keyboard.press(one)

    def write(self, text: str) -> None:
        """Type text into the focused element."""
        self._did("writes")
        self.page.keyboard.type(text)

    def reach(self, role: str, name: str) -> None:
        """Move the focus to an element with the Tab key."""
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
        """Return the address in the browser's address bar."""
        return str(self.page.url)

    # Observations of a person

    def sees(self, text: str | re.Pattern[str], *row: str, slow: bool = False) -> None:
        """Wait until the text is visible."""
        try:
            self._place(row).get_by_text(text).filter(visible=True).first.wait_for(
                timeout=(_SLOW if slow else TIMEOUT) * 1000
            )
        except Exception as error:
            raise AssertionError(f"{text!r} is not seen at {self.address}") from error

    def misses(self, text: str) -> None:
        """Wait until the text is absent."""
        try:
            self.page.get_by_text(text).filter(visible=True).first.wait_for(state="hidden")
        except Exception as error:
            raise AssertionError(f"{text!r} is still seen at {self.address}") from error

    def reads(self) -> str:
        """Return all visible text of the page."""
        return str(self.page.get_by_role("main").inner_text())

    def names(self, role: str) -> list[str]:
        """Return the texts of all visible elements with a role."""
        return [str(text) for text in self.page.get_by_role(role).all_inner_texts()]

    def region(self, name: str) -> str:
        """Return the text of a named region of the page."""
        return str(self.page.get_by_label(name, exact=True).inner_text())

    def tree(self) -> str:
        """Return the accessibility tree of the page: roles, names, levels."""
        return str(self.page.get_by_role("document").or_(self.page.locator("body")).first.aria_snapshot())

    def in_view(self, text: str) -> bool:
        """Return True if a text is on the screen without scrolling."""
        self.sees(text)
        self.page.wait_for_load_state()  # only then, the browser has scrolled to the fragment
        box, size = self.page.get_by_text(text).filter(visible=True).first.bounding_box(), self.page.viewport_size
        return bool(box) and 0 <= box["y"] <= size["height"] - box["height"]

    def focused_row(self) -> str:
        """Return the text of the row with the focus; "" if the focus is in no row."""
        rows = self.page.get_by_role("listitem").filter(has=self.page.locator(":focus"))
        return str(rows.last.inner_text()) if rows.count() else ""

    def ticked(self, label: str) -> bool:
        """Return True if a box is ticked."""
        return bool(self.page.get_by_role("checkbox", name=label).is_checked())

    @property
    def title(self) -> str:
        """Return the title of the browser tab."""
        return str(self.page.title())

    def whole(self) -> str:
        """Return the whole text of a page that is not HTML."""
        return str(self.page.locator("body").inner_text())

    def fits(self) -> bool:
        """Return True if nothing is wider than the screen."""
        self.page.get_by_role("main").wait_for()
        # Do not use innerWidth: on a phone, it grows with elements that are too wide.
        return int(self.page.evaluate("document.documentElement.scrollWidth")) <= int(self.page.viewport_size["width"])

    def dark(self) -> bool:
        """Return True if the page has light text on a dark background."""
        self.page.get_by_role("main").wait_for()
        colours = self.page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        ink, ground = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
        return ground < ink

    def complaints(self) -> list[str]:
        """Return browser errors (except refused requests) and the findings of axe-core."""
        return [one for one in (*self.look.complaints, *self.look.violations) if not _REFUSED.search(one)]


@dataclass
class Setting:
    """Setting of a task: the workspace, its dashboard, and a browser for each person."""

    shop: Shop
    browser: Any
    url: str
    tell: Callable[[str], None]
    stack: ExitStack
    people: list[Person] = field(default_factory=list)

    def person(self, name: str = "", *, inside: str = "", **options: Any) -> Person:
        """Return a person with a separate browser, 1440×900 unless the context `options` set another size."""
        look = self.stack.enter_context(looker(self.browser, inside or self.url, **{**WIDE, **options}))
        tell = self.tell if not self.people else lambda step: self.tell(f"({name or 'somebody'}) {step}")
        self.people.append(Person(look, self.url, name, bool(options.get("has_touch")), tell))
        return self.people[-1]


@contextmanager
def setting(shop: Shop, browser: Any, url: str, tell: Callable[[str], None]) -> Iterator[Setting]:
    """Yield a setting; close its browsers at the end."""
    with ExitStack() as stack:
        yield Setting(shop, browser, url, tell, stack)
