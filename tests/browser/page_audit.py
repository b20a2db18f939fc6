"""Browser that records console errors, failed and external requests, and the findings of axe-core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser.browser_install import AXE

# color schemes and window sizes of users
SHAPES = {
    f"{scheme}-{name}": {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
    for scheme in ("light", "dark")
    for name, width, height in (("wide", 1440, 900), ("phone", 390, 844))
}


@dataclass
class Looker:
    """A browser page. `complaints` are its errors, `violations` the findings of axe-core, each with its location."""

    page: Any
    inside: str  # every request must begin with this
    complaints: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    requests: int = 0
    judged: int = 0

    def listen(self) -> None:
        """Record all errors of the browser from now on."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))
        self.page.on("request", self._request)
        self.page.on("requestfailed", self._failed)

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{self.page.url}: {message.text}")

    def _request(self, request: Any) -> None:
        self.requests += 1
        if not request.url.startswith((self.inside, "data:")):
            self.complaints.append(f"{self.page.url}: a request leaves: {request.url}")

    def _failed(self, request: Any) -> None:
        if request.resource_type != "eventsource" and "ERR_ABORTED" not in str(request.failure):
            self.complaints.append(f"{self.page.url}: {request.url} failed: {request.failure}")

    def open(self, url: str) -> None:
        """Open a page, which must exist."""
        answer = self.page.goto(url)
        if answer is not None and answer.status >= 400:
            self.complaints.append(f"{url}: answered with {answer.status}")

    def judge(self) -> None:
        """Check the current page with all rules of axe-core."""
        self.judged += 1
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {preload: false}).then(({violations}) => violations)")
        for one in found:
            places = "; ".join(" ".join(map(str, node["target"])) for node in one["nodes"][:3])
            self.violations.append(f"{self.page.url}: {one['id']} ({one['impact']}) at {places}: {one['help']}")

    def picture(self, folder: Path, name: str) -> None:
        """Save a screenshot of the whole page."""
        self.page.screenshot(path=str(folder / f"{name}.png"), full_page=True)


@contextmanager
def looker(browser: Any, inside: str, **options: Any) -> Iterator[Looker]:
    """Yield a separate browser without cookies."""
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    look = Looker(context.new_page(), inside)
    look.listen()
    yield look
    context.close()
