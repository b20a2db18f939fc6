"""What is looked at for those who follow: a run, all of it or at one server, and the workspace."""

from __future__ import annotations

from dataclasses import replace

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.follow import Look
from mcpfactory_pipeline.dashboard.library import Library
from mcpfactory_pipeline.dashboard.live import Snapshot, Tail, read_tail
from mcpfactory_pipeline.dashboard.pages import Page, path_of
from mcpfactory_pipeline.dashboard.render import Links, render_state
from mcpfactory_pipeline.dashboard.runs import Run

__all__ = ["watch_run", "watch_workspace"]


def watch_workspace(library: Library) -> Look:
    """Sees that some server has another state, or that a run began or ended; what that is, pages say."""
    last = ""

    def look() -> Snapshot | None:
        nonlocal last
        if (now := library.glance()) == last:
            return None
        last = now
        library.forget()
        return Snapshot(now)

    return look


class _RunWatch:
    """Looks at a run: its page is made anew when a file tells of a change, and the logs of steps at work are read each time."""

    def __init__(self, library: Library, page: Page, values: dict[str, str], number: str) -> None:
        self._library, self._page, self._values, self._number = library, page, values, number
        self._links = Links(path_of(page, values), query={"page": number} if number else {})
        self._glance = ""
        self._view: Run | None = None
        self._last: Snapshot | None = None

    def __call__(self) -> Snapshot | None:
        glance, now = self._library.glance(), self._last
        if now is None or self._view is None or glance != self._glance:
            now = self._anew()
        else:
            now = replace(now, tails=self._tails(self._view))
        same = now == self._last
        self._glance, self._last = glance, now
        return None if same else now

    def _anew(self) -> Snapshot:
        try:
            self._view = view = self._page.view(self._library, self._values, {"page": self._number})
        except NotFoundError:
            if self._last is None:
                raise
            return replace(self._last, tails=(), over=True)  # it ended, and nothing had been due
        return Snapshot(render_state(view, self._links), self._tails(view), over=not view.going)

    def _tails(self, view: Run) -> tuple[Tail, ...]:
        return tuple(
            read_tail(step.name, self._library.log_file(step.server, step.stage))
            for step in view.steps
            if step.status.key == "running"
        )


def watch_run(library: Library, page: Page, values: dict[str, str], number: str) -> Look:
    """Sees what happens in a run: its page as it is then, and what the steps at work print. Raises `NotFoundError`."""
    return _RunWatch(library, page, values, number)
