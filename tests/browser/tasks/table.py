"""Table of tasks: the goal of a person, and the function for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.browser.tasks import decisions, navigation, runs_and_logs
from tests.browser.tasks.person import Setting


@dataclass(frozen=True, slots=True)
class DashboardTask:
    """A task. `many`: it needs the workspace with a thousand servers."""

    about: str
    act: Callable[[Setting], None]
    many: bool = False


TASKS: Final = {
    "waiting": DashboardTask("finds what waits", navigation.waiting),
    "approve": DashboardTask("approves a candidate by what speaks for and against it", decisions.approve),
    "reject": DashboardTask("rejects it, with a reason", decisions.reject),
    "promote": DashboardTask("promotes what is approved", decisions.promote),
    "hold": DashboardTask("holds a channel", decisions.hold),
    "roll-back": DashboardTask("rolls a channel back", decisions.roll_back),
    "waive": DashboardTask("waives a rule until a day", decisions.waive),
    "follow": DashboardTask("follows a run to its end", runs_and_logs.follow_run),
    "failed-log": DashboardTask("reads the log of what failed, at the line", runs_and_logs.failed_log),
    "search-log": DashboardTask("finds a word in a long log", runs_and_logs.search_log),
    "run-again": DashboardTask("runs what failed again, once it is mended", runs_and_logs.run_again),
    "cancel": DashboardTask("cancels a run", runs_and_logs.cancel),
    "try": DashboardTask("tries a tool of a candidate", runs_and_logs.try_tool),
    "filter": DashboardTask("finds one of 1,000 servers", navigation.filter_many, many=True),
    "bulk": DashboardTask("approves three at once, one of which changed meanwhile", decisions.bulk_approve),
    "keyboard": DashboardTask("approves without a mouse", navigation.keyboard),
    "no-javascript": DashboardTask("approves one, then several, with JavaScript off", navigation.without_javascript),
    "phone": DashboardTask("approves by touch on a phone", navigation.phone),
    "two-browsers": DashboardTask(
        "is told of a rejection that was made while the form was open", decisions.two_browsers
    ),
    "command-line": DashboardTask("sees at once what somebody typed", navigation.command_line),
    "deep-links": DashboardTask("sends addresses to others", navigation.deep_links),
    "back": DashboardTask("goes back, and does nothing twice", navigation.back_button),
    "reload": DashboardTask("reloads, and does nothing twice", navigation.reload),
    "export": DashboardTask("reads the same as files", navigation.export),
    "dark": DashboardTask("reads it in the dark", navigation.dark),
    "json": DashboardTask("takes the page as data", navigation.read_json),
    "approve-stage": DashboardTask("approves a stage by its question and content", decisions.approve_stage),
    "lift-hold": DashboardTask("reads who holds a channel, and is refused to lift it", decisions.lift_refused),
    "who-decided": DashboardTask("finds who decided what, and why", navigation.who_decided),
    "deleted-folder": DashboardTask("notices that a folder goes and comes back", navigation.deleted_folder),
    "no-secrets": DashboardTask("exports without logs and paths", navigation.export_without_secrets),
    "phone-history": DashboardTask("reads decisions with reasons on a phone", navigation.phone_history),
    "screen-reader": DashboardTask("approves by what is read out", navigation.screen_reader),
}
