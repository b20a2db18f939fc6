"""The table of tasks: what a person wants, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.browser.tasks import around, decide, work
from tests.browser.tasks.person import Setting


@dataclass(frozen=True, slots=True)
class DashboardTask:
    """One thing that people do. `many`: in the workspace of a thousand servers."""

    about: str
    act: Callable[[Setting], None]
    many: bool = False


TASKS: Final = {
    "waiting": DashboardTask("finds what waits", around.waiting),
    "approve": DashboardTask("approves a candidate by what speaks for and against it", decide.approve),
    "reject": DashboardTask("rejects it, with a reason", decide.reject),
    "promote": DashboardTask("promotes what is approved", decide.promote),
    "hold": DashboardTask("holds a channel", decide.hold),
    "roll-back": DashboardTask("rolls a channel back", decide.roll_back),
    "waive": DashboardTask("waives a rule until a day", decide.waive),
    "follow": DashboardTask("follows a run to its end", work.follow_run),
    "failed-log": DashboardTask("reads the log of what failed, at the line", work.failed_log),
    "search-log": DashboardTask("finds a word in a long log", work.search_log),
    "run-again": DashboardTask("runs what failed again, once it is mended", work.run_again),
    "cancel": DashboardTask("cancels a run", work.cancel),
    "try": DashboardTask("tries a tool of a candidate", work.try_tool),
    "filter": DashboardTask("finds one of 1,000 servers", around.filter_many, many=True),
    "bulk": DashboardTask("approves three at once, one of which changed meanwhile", decide.bulk_approve),
    "keyboard": DashboardTask("approves without a mouse", around.keyboard),
    "no-javascript": DashboardTask("approves one, then several, with JavaScript off", around.without_javascript),
    "phone": DashboardTask("approves by touch on a phone", around.phone),
    "two-browsers": DashboardTask("is told of a rejection that was made while the form was open", decide.two_browsers),
    "command-line": DashboardTask("sees at once what somebody typed", around.command_line),
    "deep-links": DashboardTask("sends addresses to others", around.deep_links),
    "back": DashboardTask("goes back, and does nothing twice", around.back_button),
    "reload": DashboardTask("reloads, and does nothing twice", around.reload),
    "export": DashboardTask("reads the same as files", around.export),
    "dark": DashboardTask("reads it in the dark", around.dark),
    "json": DashboardTask("takes the page as data", around.read_json),
    "screen-reader": DashboardTask("approves by what is read out", around.screen_reader),
}
